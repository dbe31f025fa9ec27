#include <gtest/gtest.h>

#include <set>

#include "lib/keys/hash.h"
#include "lib/keys/key_file.h"
#include "lib/keys/published.h"
#include "lib/receipt/payload.h"
#include "lib/receipt/verify_set.h"
#include "tests/rpc/service.h"
#include "tests/support/rules/rules.h"

// Parked calls, as reconcilers and people have them: real lanes, real PostgreSQL.
namespace tally::test {
namespace {

using Parked = v1::ParkedCalls::Stub;

class ParkedCallsTest : public testing::Test {
 protected:
  ParkedCallsTest() { permit_ = service_.Mint(service_.Terms("acme")); }

  const Principal& Reconciler() { return service_.Of("acme", v1::RECONCILER); }
  const Principal& Operator() { return service_.Of("acme", v1::OPERATOR); }

  // A call that is parked, as its reconciler names it.
  struct Case {
    std::string call_id, attempt_id, supersedes, claim_id;
  };
  Case Park(const std::string& key) {
    const v1::AuthorizeResponse granted = service_.Granted(permit_, key);
    return {granted.call_id(), granted.attempt_id(), Commit(granted, v1::OUTCOME_UNCERTAIN), ""};
  }
  // The receipt's id.
  std::string Commit(const v1::AuthorizeResponse& granted, v1::CommitOutcome outcome) {
    v1::CommitRequest commit;
    commit.set_call_id(granted.call_id());
    commit.set_attempt_id(granted.attempt_id());
    commit.set_outcome(outcome);
    v1::CommitResponse response;
    const Outcome committed = service_.Commit(service_.Of("acme", v1::GATEWAY), commit, response);
    EXPECT_TRUE(committed.ok()) << committed.status.error_message();
    return response.receipts_size() > 0 ? response.receipts(0).receipt_id() : "";
  }
  Case Claimed(const std::string& key) {
    Case parked = Park(key);
    Claim(parked);
    return parked;
  }
  v1::ParkedCall Claim(Case& parked) { return Claim(parked, Reconciler()); }
  v1::ParkedCall Claim(Case& parked, const Principal& who) {
    v1::ClaimRequest request;
    request.set_call_id(parked.call_id);
    request.set_claim_ms(60'000);
    v1::ClaimResponse response;
    const Outcome claimed = Call(&Parked::Claim, *service_.parked, who, request, response);
    EXPECT_TRUE(claimed.ok()) << claimed.status.error_message();
    parked.claim_id = response.claim_id();
    return response.parked();
  }

  static v1::NoteLookUpRequest Note(const Case& parked, v1::Finding finding = v1::FINDING_ABSENT) {
    v1::NoteLookUpRequest request;
    Name(parked, request);
    request.mutable_look_up()->set_kind("http");
    request.mutable_look_up()->set_provider("bank");
    request.mutable_look_up()->set_finding(finding);
    request.mutable_look_up()->set_detail("no charge with this metadata");
    request.mutable_look_up()->set_body("{\"data\":[]}");
    return request;
  }
  template <typename Request>
  static void Name(const Case& parked, Request& request) {
    request.set_call_id(parked.call_id);
    request.set_attempt_id(parked.attempt_id);
    request.set_supersedes(parked.supersedes);
    request.set_claim_id(parked.claim_id);
  }
  Outcome Say(const v1::NoteLookUpRequest& request, const Principal& who) {
    v1::NoteLookUpResponse response;
    return Call(&Parked::NoteLookUp, *service_.parked, who, request, response);
  }
  Outcome Say(const v1::NoteLookUpRequest& request) { return Say(request, Reconciler()); }
  Outcome Replay(const Case& parked, const Principal& who, v1::BeginReplayResponse& response) {
    v1::BeginReplayRequest request;
    Name(parked, request);
    return Call(&Parked::BeginReplay, *service_.parked, who, request, response);
  }
  Outcome Replay(const Case& parked) {
    v1::BeginReplayResponse response;
    return Replay(parked, Reconciler(), response);
  }
  Outcome Resolve(const Case& parked, v1::Verdict verdict, const Principal& who, const std::string& result = "") {
    v1::ResolveRequest request;
    Name(parked, request);
    request.set_verdict(verdict);
    request.mutable_evidence()->set_source("bank");
    request.mutable_evidence()->set_reference("ch_7");
    request.mutable_evidence()->set_reason("seen");
    request.mutable_evidence()->set_body("what the bank showed");
    if (!result.empty()) request.mutable_evidence()->set_result(result);
    v1::ResolveResponse response;
    return Call(&Parked::Resolve, *service_.parked, who, request, response);
  }
  std::vector<v1::ParkedCall> List(v1::ListParkedRequest request = {}) {
    v1::ListParkedResponse response;
    const Outcome listed = Call(&Parked::List, *service_.parked, Reconciler(), request, response);
    EXPECT_TRUE(listed.ok()) << listed.status.error_message();
    return {response.parked().begin(), response.parked().end()};
  }
  v1::ParkedCall One(const Case& parked) {
    v1::ListParkedRequest request;
    request.set_call_id(parked.call_id);
    const auto list = List(request);
    EXPECT_EQ(list.size(), 1u);
    return list.empty() ? v1::ParkedCall() : list[0];
  }
  std::set<std::string> Claimable() {
    v1::ListParkedRequest request;
    request.set_claimable_only(true);
    std::set<std::string> keys;
    for (const v1::ParkedCall& parked : List(request)) keys.insert(parked.call().key());
    return keys;
  }
  v1::AuthorizeResponse AskAgain(const std::string& key) {
    v1::AuthorizeResponse response;
    const Outcome asked = service_.Authorize(service_.Of("acme", v1::GATEWAY), Service::Asking(permit_, key), response);
    EXPECT_TRUE(asked.ok()) << asked.status.error_message();
    return response;
  }
  std::vector<v1::Receipt> Chain() {
    v1::ListReceiptsRequest request;
    request.set_permit_id(permit_.permit_id());
    const auto context = Service::Context(service_.Of("acme", v1::AUDITOR).credential);
    const auto reader = service_.receipts->List(context.get(), request);
    std::vector<v1::Receipt> chain;
    v1::Receipt receipt;
    while (reader->Read(&receipt)) chain.push_back(receipt);
    EXPECT_TRUE(reader->Finish().ok());
    return chain;
  }
  int Kinds(v1::ReceiptKind kind) {
    int count = 0;
    for (const v1::Receipt& receipt : Chain()) count += receipt::Parse(receipt.payload())->kind() == kind;
    return count;
  }

  Service service_;
  v1::MintResponse permit_;
};

// ---- NoteLookUp ----

TEST_F(ParkedCallsTest, ALookUpIsKeptAndShownToWhoeverComesNext) {
  const Case parked = Claimed("k");
  v1::NoteLookUpRequest note = Note(parked);
  note.set_next_look_ms(60'000);
  v1::NoteLookUpResponse noted;
  ASSERT_TRUE(Call(&Parked::NoteLookUp, *service_.parked, Reconciler(), note, noted).ok());
  ASSERT_TRUE(Say(Note(parked, v1::FINDING_UNCLEAR)).ok());

  v1::ParkedCall one = One(parked);
  ASSERT_EQ(one.look_ups_size(), 2);
  const v1::LookUp& first = one.look_ups(0);
  EXPECT_EQ(first.kind(), "http");
  EXPECT_EQ(first.provider(), "bank");
  EXPECT_EQ(first.finding(), v1::FINDING_ABSENT);
  EXPECT_EQ(first.detail(), "no charge with this metadata");
  EXPECT_EQ(first.body(), "{\"data\":[]}");
  EXPECT_EQ(first.principal_id(), Reconciler().id);
  EXPECT_EQ(first.attempt_id(), parked.attempt_id);
  EXPECT_EQ(noted.next_look_us(), first.time_us() + 60'000'000);
  EXPECT_EQ(one.look_ups(1).finding(), v1::FINDING_UNCLEAR);
  EXPECT_EQ(one.next_look_us(), 0) << "the last one had no wish";
  EXPECT_EQ(Kinds(v1::CALL_REPLAY_SENT) + Kinds(v1::CALL_ESCALATED), 0) << "nothing was decided";

  const auto list = List();
  ASSERT_EQ(list.size(), 1u);
  ASSERT_EQ(list[0].look_ups_size(), 2);
  EXPECT_EQ(list[0].look_ups(0).body(), "") << "lists are without bodies";
  EXPECT_EQ(list[0].look_ups(0).detail(), "");
  EXPECT_EQ(list[0].look_ups(1).detail(), "no charge with this metadata");
}

TEST_F(ParkedCallsTest, WhatOneNeedsToKnowOfAParkedCallIsThere) {
  Case parked = Park("k");
  const v1::ParkedCall claimed = Claim(parked);
  EXPECT_GT(claimed.now_us(), claimed.parked_at_us());
  EXPECT_GT(claimed.parked_at_us(), 0);
  EXPECT_TRUE(claimed.permit_active());
  EXPECT_EQ(claimed.claimed_by(), Reconciler().id);
  EXPECT_GT(claimed.claim_until_us(), claimed.now_us());
  EXPECT_FALSE(claimed.late_not_sent());
  EXPECT_EQ(claimed.hold(), 5);
  EXPECT_FALSE(claimed.call().arguments().empty());
}

TEST_F(ParkedCallsTest, APermitThatHasEndedIsToldAsNotActive) {
  const Case parked = Park("k");
  v1::RevokePermitRequest revoke;
  revoke.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse response;
  ASSERT_TRUE(Call(&v1::Permits::Stub::Revoke, *service_.permits, Operator(), revoke, response).ok());
  EXPECT_FALSE(One(parked).permit_active());
}

// What a gateway says after its lease is evidence; the reconciler may conclude from it.
TEST_F(ParkedCallsTest, ALateNotSentIsToldAndMayBeTheReconcilersEvidence) {
  const v1::AuthorizeResponse granted = service_.Granted(permit_, "k");
  Case parked{granted.call_id(), granted.attempt_id(), Commit(granted, v1::OUTCOME_UNCERTAIN), ""};
  EXPECT_FALSE(One(parked).late_not_sent());
  Commit(granted, v1::OUTCOME_NOT_SENT);
  const v1::ParkedCall told = Claim(parked);
  EXPECT_TRUE(told.late_not_sent());
  ASSERT_EQ(told.call().evidence_size(), 1);
  EXPECT_EQ(told.call().evidence(0).source(), "gateway_journal");
  EXPECT_EQ(told.call().evidence(0).receipt_id(), "") << "a note: no receipt cites it";
  EXPECT_EQ(told.call().evidence(0).salt(), "");
  EXPECT_TRUE(Resolve(parked, v1::VERDICT_NOT_HAPPENED, Reconciler()).ok());
}

TEST_F(ParkedCallsTest, LimitsOfALookUpAreTakenAtTheirEdgeAndRefusedBeyond) {
  const Case parked = Claimed("k");
  const auto with = [&](auto set) {
    v1::NoteLookUpRequest note = Note(parked);
    set(note, *note.mutable_look_up());
    const Outcome said = Say(note);
    return said.ok() ? "" : said.code();
  };
  using R = v1::NoteLookUpRequest;
  using L = v1::LookUp;
  EXPECT_EQ(with([](R&, L& l) { l.set_body(std::string(64 * 1024, '\0')); }), "");
  EXPECT_EQ(with([](R&, L& l) { l.set_body(std::string(64 * 1024 + 1, 'x')); }), "LIMIT");
  EXPECT_EQ(with([](R&, L& l) { l.set_detail(std::string(1024, 'x')); }), "");
  EXPECT_EQ(with([](R&, L& l) { l.set_detail(std::string(1025, 'x')); }), "LIMIT");
  EXPECT_EQ(with([](R&, L& l) { l.set_detail(std::string("a\0b", 3)); }), "MALFORMED");
  EXPECT_EQ(with([](R&, L& l) { l.set_detail("two\nlines"); }), "");
  EXPECT_EQ(with([](R&, L& l) { l.set_kind(std::string(16, 'x')); }), "");
  EXPECT_EQ(with([](R&, L& l) { l.set_kind(std::string(17, 'x')); }), "MALFORMED");
  EXPECT_EQ(with([](R&, L& l) { l.clear_kind(); }), "MALFORMED");
  EXPECT_EQ(with([](R&, L& l) { l.set_provider(std::string(128, 'x')); }), "");
  EXPECT_EQ(with([](R&, L& l) { l.set_provider(std::string(129, 'x')); }), "MALFORMED");
  EXPECT_EQ(with([](R&, L& l) { l.clear_finding(); }), "MALFORMED");
  EXPECT_EQ(with([](R&, L& l) { l.set_finding(static_cast<v1::Finding>(6)); }), "MALFORMED");
  EXPECT_EQ(with([](R& r, L&) { r.set_next_look_ms(24 * 3600 * 1000); }), "");
  EXPECT_EQ(with([](R& r, L&) { r.set_next_look_ms(24 * 3600 * 1000 + 1); }), "LIMIT");
  EXPECT_EQ(with([](R& r, L&) { r.set_next_look_ms(-1); }), "LIMIT");
  EXPECT_EQ(with([](R& r, L&) { r.set_claim_id("short"); }), "MALFORMED");
  EXPECT_EQ(with([](R& r, L&) { r.set_supersedes(""); }), "MALFORMED");
  EXPECT_EQ(with([](R& r, L&) { r.set_attempt_id(""); }), "MALFORMED");
  EXPECT_EQ(One(parked).look_ups_size(), 6) << "what was refused is not kept";
  EXPECT_EQ(One(parked).look_ups(0).body(), std::string(64 * 1024, '\0'));
}

TEST_F(ParkedCallsTest, AHundredLookUpsAreKeptAndTheOldestGo) {
  const Case parked = Claimed("k");
  for (int i = 0; i <= 101; ++i) {
    v1::NoteLookUpRequest note = Note(parked);
    note.mutable_look_up()->set_detail("number " + std::to_string(i));
    ASSERT_TRUE(Say(note).ok());
    if (i == 99) {
      EXPECT_EQ(One(parked).look_ups(0).detail(), "number 0");
    }
  }
  const v1::ParkedCall one = One(parked);
  ASSERT_EQ(one.look_ups_size(), 100);
  EXPECT_EQ(one.look_ups(0).detail(), "number 2");
  EXPECT_EQ(one.look_ups(99).detail(), "number 101");
}

TEST_F(ParkedCallsTest, LookUpsOfAnotherAttemptOrCallAreNotTouchedOrShown) {
  const Case other = Claimed("other");
  ASSERT_TRUE(Say(Note(other)).ok());
  const Case first = Claimed("k");
  ASSERT_TRUE(Say(Note(first)).ok());
  ASSERT_TRUE(Resolve(first, v1::VERDICT_NOT_HAPPENED, Reconciler()).ok());
  Case second = Park("k");
  ASSERT_EQ(second.call_id, first.call_id);
  EXPECT_EQ(One(second).look_ups_size(), 0);
  Claim(second);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Say(Note(second)).ok());
  EXPECT_EQ(One(second).look_ups_size(), 2);
  EXPECT_EQ(One(other).look_ups_size(), 1);
}

TEST_F(ParkedCallsTest, OnlyALiveClaimOfItsOwnNotesAnything) {
  Case parked = Park("k");
  parked.claim_id = keys::RandomBytes(16);
  EXPECT_EQ(Say(Note(parked)).code(), "STALE_RESOLUTION") << "not claimed";
  Claim(parked);
  const Principal another = service_.NewPrincipal("acme", v1::RECONCILER);
  EXPECT_EQ(Say(Note(parked), another).code(), "STALE_RESOLUTION");
  Case wrong = parked;
  wrong.claim_id = keys::RandomBytes(16);
  EXPECT_EQ(Say(Note(wrong)).code(), "STALE_RESOLUTION");
  wrong = parked;
  wrong.supersedes = keys::RandomBytes(32);
  EXPECT_EQ(Say(Note(wrong)).code(), "STALE_RESOLUTION");
  wrong = parked;
  wrong.attempt_id = keys::RandomBytes(16);
  EXPECT_EQ(Say(Note(wrong)).code(), "STALE_RESOLUTION");
  EXPECT_EQ(One(parked).look_ups_size(), 0);
  // The claim runs out.
  Query(service_.conninfo(), "UPDATE calls SET claim_until_us = 1 WHERE claim_id IS NOT NULL");
  EXPECT_EQ(Say(Note(parked)).code(), "STALE_RESOLUTION");
  EXPECT_EQ(Replay(parked).code(), "STALE_RESOLUTION");
}

TEST_F(ParkedCallsTest, AClaimThatIsGivenBackIsAnothersToTake) {
  Case parked = Claimed("k");
  v1::NoteLookUpRequest note = Note(parked);
  note.set_release_claim(true);
  ASSERT_TRUE(Say(note).ok());
  EXPECT_EQ(One(parked).claimed_by(), "");
  EXPECT_EQ(Say(note).code(), "STALE_RESOLUTION");
  EXPECT_EQ(Resolve(parked, v1::VERDICT_HAPPENED, Reconciler()).code(), "STALE_RESOLUTION");
  const Principal another = service_.NewPrincipal("acme", v1::RECONCILER);
  Claim(parked, another);
  EXPECT_TRUE(Resolve(parked, v1::VERDICT_HAPPENED, another).ok());
}

TEST_F(ParkedCallsTest, ClaimableAreThoseThatNobodyHasAndThatAreDue) {
  Case now = Park("now");
  Case later = Claimed("later");
  Case held = Claimed("held");
  Park("escalated");
  EXPECT_EQ(Claimable(), (std::set<std::string>{"now", "escalated"}));
  v1::NoteLookUpRequest note = Note(later);
  note.set_release_claim(true);
  note.set_next_look_ms(24 * 3600 * 1000);
  ASSERT_TRUE(Say(note).ok());
  EXPECT_EQ(Claimable(), (std::set<std::string>{"now", "escalated"})) << "not due yet";
  Query(service_.conninfo(), "UPDATE look_ups SET next_look_us = 1");
  EXPECT_EQ(Claimable(), (std::set<std::string>{"now", "later", "escalated"})) << "due";
  Query(service_.conninfo(), "UPDATE calls SET claim_until_us = 1 WHERE claim_id IS NOT NULL");
  EXPECT_EQ(Claimable().size(), 4u) << "a claim that ran out";
  ASSERT_TRUE(Resolve(now, v1::VERDICT_HAPPENED, Operator()).ok());
  EXPECT_EQ(Claimable(), (std::set<std::string>{"later", "held", "escalated"}));
}

// ---- BeginReplay ----

TEST_F(ParkedCallsTest, EveryReplayWritesAReceiptAndTheChainVerifies) {
  const Case parked = Claimed("k");
  v1::BeginReplayResponse response;
  ASSERT_TRUE(Replay(parked, Reconciler(), response).ok());
  ASSERT_EQ(response.receipts_size(), 1);
  const auto payload = receipt::Parse(response.receipts(0).payload());
  ASSERT_TRUE(payload.ok());
  EXPECT_EQ(payload->kind(), v1::CALL_REPLAY_SENT);
  EXPECT_EQ(payload->effect_known(), v1::UNKNOWN);
  EXPECT_EQ(payload->supersedes(), "");
  EXPECT_EQ(One(parked).uncertain_receipt_id(), parked.supersedes);
  ASSERT_TRUE(Replay(parked).ok());
  EXPECT_EQ(Kinds(v1::CALL_REPLAY_SENT), 2);
  ASSERT_TRUE(Resolve(parked, v1::VERDICT_HAPPENED, Reconciler()).ok());

  v1::KeysResponse keys;
  ASSERT_TRUE(
      Call(&v1::Receipts::Stub::Keys, *service_.receipts, service_.Of("acme", v1::AUDITOR), v1::KeysRequest(), keys)
          .ok());
  std::string vkeys;
  for (const v1::PublishedKey& key : keys.keys()) {
    vkeys += keys::ToVkey(*keys::PublicKey::Create(key.name(), key.public_key())) + "\n";
  }
  std::vector<receipt::Input> inputs;
  for (v1::Receipt& receipt : Chain()) inputs.push_back({"receipt", std::move(receipt)});
  const auto report = receipt::VerifySet(inputs, *keys::KeyRing::Parse(vkeys));
  EXPECT_EQ(report.outcome, receipt::Outcome::kGood);
}

TEST_F(ParkedCallsTest, UnderARevokedPermitNothingIsSentAgain) {
  const Case parked = Claimed("k");
  v1::RevokePermitRequest revoke;
  revoke.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse revoked;
  ASSERT_TRUE(Call(&v1::Permits::Stub::Revoke, *service_.permits, Operator(), revoke, revoked).ok());
  v1::BeginReplayResponse response;
  const Outcome refused = Replay(parked, Reconciler(), response);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(refused.code(), "PERMIT_REVOKED");
  EXPECT_EQ(Kinds(v1::CALL_REPLAY_SENT), 0);
  EXPECT_TRUE(Say(Note(parked)).ok()) << "looking goes on";
  EXPECT_TRUE(Resolve(parked, v1::VERDICT_HAPPENED, Reconciler()).ok());
}

TEST_F(ParkedCallsTest, UnderAClosingPermitNothingIsSentAgain) {
  const Case parked = Claimed("k");
  v1::ClosePermitRequest close;
  close.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse closed;
  ASSERT_TRUE(Call(&v1::Permits::Stub::Close, *service_.permits, Operator(), close, closed).ok());
  EXPECT_EQ(Replay(parked).code(), "PERMIT_CLOSED");
}

// ---- Who may ----

TEST_F(ParkedCallsTest, NobodyButAReconcilerOfTheTenantNotesOrReplays) {
  const Case parked = Claimed("k");
  v1::BeginReplayResponse response;
  for (const v1::Role role : {v1::GATEWAY, v1::OPERATOR, v1::AUDITOR, v1::ADMIN}) {
    EXPECT_EQ(Say(Note(parked), service_.Of("acme", role)).code(), "PERMISSION_DENIED") << v1::Role_Name(role);
    EXPECT_EQ(Replay(parked, service_.Of("acme", role), response).code(), "PERMISSION_DENIED") << v1::Role_Name(role);
  }
  EXPECT_EQ(Say(Note(parked), service_.Of("globex", v1::OPERATOR)).code(), "PERMISSION_DENIED");
  EXPECT_EQ(Replay(parked, service_.Of("globex", v1::OPERATOR), response).code(), "PERMISSION_DENIED");
  EXPECT_EQ(Resolve(parked, v1::VERDICT_HAPPENED, service_.Of("globex", v1::OPERATOR)).code(), "NOT_FOUND");
  EXPECT_EQ(Say(Note(parked), service_.Of("globex", v1::RECONCILER)).code(), "NOT_FOUND");
  EXPECT_EQ(Replay(parked, service_.Of("globex", v1::RECONCILER), response).code(), "NOT_FOUND");
  // The agent holds only a permit token.
  const Principal agent{"", permit_.permit_token()};
  EXPECT_EQ(Say(Note(parked), agent).code(), "UNAUTHENTICATED");
  EXPECT_EQ(Replay(parked, agent, response).code(), "UNAUTHENTICATED");
  EXPECT_EQ(Resolve(parked, v1::VERDICT_HAPPENED, agent).code(), "UNAUTHENTICATED");
  for (const v1::Role role : {v1::GATEWAY, v1::AUDITOR}) {
    EXPECT_EQ(Resolve(parked, v1::VERDICT_NOT_HAPPENED, service_.Of("acme", role)).code(), "PERMISSION_DENIED");
  }
  EXPECT_EQ(One(parked).look_ups_size(), 0);
  EXPECT_EQ(Kinds(v1::CALL_REPLAY_SENT), 0);
}

// ---- What comes of it ----

TEST_F(ParkedCallsTest, WhatIsSaidOfAttemptOneAfterAttemptTwoWasParkedIsStale) {
  const Case first = Claimed("k");
  ASSERT_TRUE(Resolve(first, v1::VERDICT_NOT_HAPPENED, Operator()).ok());
  Case second = Park("k");
  ASSERT_EQ(second.call_id, first.call_id);
  ASSERT_NE(second.attempt_id, first.attempt_id);
  Claim(second);
  Case slow = first;  // with the claim it had, and with the live one
  for (const std::string& claim_id : {first.claim_id, second.claim_id}) {
    slow.claim_id = claim_id;
    EXPECT_EQ(Say(Note(slow)).code(), "STALE_RESOLUTION");
    EXPECT_EQ(Replay(slow).code(), "STALE_RESOLUTION");
    EXPECT_EQ(Resolve(slow, v1::VERDICT_HAPPENED, Reconciler()).code(), "STALE_RESOLUTION");
  }
  slow = first;
  slow.claim_id = "";
  EXPECT_EQ(Resolve(slow, v1::VERDICT_HAPPENED, Operator()).code(), "STALE_RESOLUTION");
  EXPECT_EQ(One(second).call().state(), v1::UNCERTAIN);
  EXPECT_TRUE(Resolve(second, v1::VERDICT_HAPPENED, Reconciler()).ok());
}

TEST_F(ParkedCallsTest, AfterNotHappenedTheSameKeyIsGrantedAsAttemptTwo) {
  const Case parked = Claimed("k");
  EXPECT_EQ(AskAgain("k").disposition(), v1::PENDING);
  ASSERT_TRUE(Resolve(parked, v1::VERDICT_NOT_HAPPENED, Reconciler()).ok());
  const v1::AuthorizeResponse again = AskAgain("k");
  EXPECT_EQ(again.disposition(), v1::DISPATCH);
  EXPECT_EQ(again.call_id(), parked.call_id);
  EXPECT_EQ(again.attempt_number(), 2);
}

TEST_F(ParkedCallsTest, AfterHappenedTheSameKeyReplaysWhatTheEvidenceGaveAsResult) {
  const Case parked = Claimed("k");
  ASSERT_TRUE(Resolve(parked, v1::VERDICT_HAPPENED, Reconciler(), R"({"refund":"r_1"})").ok());
  const v1::AuthorizeResponse again = AskAgain("k");
  EXPECT_EQ(again.disposition(), v1::REPLAY);
  EXPECT_EQ(again.result(), R"({"refund":"r_1"})");
}

TEST_F(ParkedCallsTest, AfterEscalationAReconcilerMayBringHappenedAndAPersonEither) {
  for (const bool by_person : {false, true}) {
    Case parked = Claimed(by_person ? "a" : "b");
    ASSERT_TRUE(Resolve(parked, v1::VERDICT_CANNOT_TELL, Reconciler()).ok());
    EXPECT_TRUE(One(parked).escalated());
    Claim(parked);
    EXPECT_EQ(Resolve(parked, v1::VERDICT_NOT_HAPPENED, Reconciler()).code(), "PERMISSION_DENIED");
    ASSERT_TRUE(Say(Note(parked)).ok());
    if (!by_person) {
      EXPECT_TRUE(Resolve(parked, v1::VERDICT_HAPPENED, Reconciler()).ok());
    } else {
      parked.claim_id = "";
      EXPECT_TRUE(Resolve(parked, v1::VERDICT_NOT_HAPPENED, Operator()).ok());
    }
  }
}

// ---- Evidence ----

TEST_F(ParkedCallsTest, AnOperatorGetsWithTheEvidenceWhatProvesItAgainstTheReceipt) {
  const Case parked = Claimed("k");
  ASSERT_TRUE(Resolve(parked, v1::VERDICT_HAPPENED, Reconciler()).ok());
  v1::GetCallRequest request;
  request.set_call_id(parked.call_id);
  v1::CallInfo call;
  ASSERT_TRUE(Call(&v1::Calls::Stub::GetCall, *service_.calls, Operator(), request, call).ok());
  ASSERT_EQ(call.evidence_size(), 1);
  const v1::EvidenceInfo& evidence = call.evidence(0);
  EXPECT_EQ(evidence.body(), "what the bank showed");
  for (const v1::Receipt& receipt : Chain()) {
    if (receipt.receipt_id() != evidence.receipt_id()) continue;
    const auto payload = receipt::Parse(receipt.payload());
    EXPECT_EQ(payload->kind(), v1::CALL_RESOLVED_HAPPENED);
    EXPECT_EQ(payload->supersedes(), parked.supersedes);
    EXPECT_EQ(keys::Commit(keys::Domain::kEvidence, evidence.salt(), evidence.body()).view(),
              payload->evidence_commitment());
    ASSERT_TRUE(Call(&v1::Calls::Stub::GetCall, *service_.calls, service_.Of("acme", v1::GATEWAY), request, call).ok());
    EXPECT_EQ(call.evidence_size(), 0) << "no gateway gets it";
    return;
  }
  FAIL() << "the evidence's receipt is not in the chain";
}

}  // namespace
}  // namespace tally::test
