#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <set>
#include <thread>

#include "tests/support/rules/rules.h"
#include "tests/support/tallyd/tallyd.h"

// Two reconcilers and a person close the same parked calls at once, through two tallyd processes on one database.
namespace tally::test {
namespace {

constexpr int kRounds = 150;
constexpr size_t kJudges = 3;
constexpr int kTriesMax = 50;
constexpr int kWrongToldMax = 5;

struct Parked {
  std::string call_id, attempt_id, uncertain;
};

// Asked again only where the race was lost and nothing was done.
template <typename Ask>
grpc::Status Insist(const std::string& credential, Ask ask) {
  grpc::Status status;
  for (int i = 0; i < kTriesMax; ++i) {
    grpc::ClientContext context;
    Prepare(context, credential, 60);
    status = ask(&context);
    if (status.error_code() != grpc::StatusCode::ABORTED) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + 7 * (i % 5)));
  }
  return status;
}

Parked Park(v1::Calls::Stub& calls, const std::string& gateway, const std::string& token, int round) {
  v1::AuthorizeRequest ask;
  ask.set_permit_token(token);
  ask.set_key("k" + std::to_string(round));
  ask.set_attempt_id(RandomAttemptId());
  ask.set_tool("pay");
  ask.set_arguments("{\"amount\":" + std::to_string(round + 1) + "}");
  v1::AuthorizeResponse granted;
  grpc::Status status = Insist(gateway, [&](auto* context) { return calls.Authorize(context, ask, &granted); });
  EXPECT_TRUE(status.ok() && granted.disposition() == v1::DISPATCH) << status.error_message();
  v1::CommitRequest commit;
  commit.set_call_id(granted.call_id());
  commit.set_attempt_id(granted.attempt_id());
  commit.set_outcome(v1::OUTCOME_UNCERTAIN);
  v1::CommitResponse committed;
  status = Insist(gateway, [&](auto* context) { return calls.Commit(context, commit, &committed); });
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {granted.call_id(), granted.attempt_id(),
          committed.receipts_size() > 0 ? committed.receipts(0).receipt_id() : ""};
}

template <typename Request>
void Name(const Parked& parked, const std::string& claim_id, Request& request) {
  request.set_call_id(parked.call_id);
  request.set_attempt_id(parked.attempt_id);
  request.set_supersedes(parked.uncertain);
  request.set_claim_id(claim_id);
}

// A reconciler claims, notes what it found, and resolves; a person resolves at once. What the one was told.
std::string Judge(v1::ParkedCalls::Stub& stub, const std::string& credential, const Parked& parked, bool person,
                  v1::Verdict verdict, std::string* receipt_id) {
  std::string claim_id;
  if (!person) {
    v1::ClaimRequest claim;
    claim.set_call_id(parked.call_id);
    claim.set_claim_ms(60'000);
    v1::ClaimResponse claimed;
    grpc::Status status = Insist(credential, [&](auto* context) { return stub.Claim(context, claim, &claimed); });
    if (!status.ok()) return ReasonOf(status);
    claim_id = claimed.claim_id();
    v1::NoteLookUpRequest note;
    Name(parked, claim_id, note);
    note.mutable_look_up()->set_kind("http");
    note.mutable_look_up()->set_provider("bank");
    note.mutable_look_up()->set_finding(v1::FINDING_HAPPENED);
    v1::NoteLookUpResponse noted;
    status = Insist(credential, [&](auto* context) { return stub.NoteLookUp(context, note, &noted); });
    if (!status.ok() && ReasonOf(status) != "STALE_RESOLUTION") return "note " + ReasonOf(status);
  }
  v1::ResolveRequest resolve;
  Name(parked, claim_id, resolve);
  resolve.set_verdict(verdict);
  resolve.mutable_evidence()->set_source("bank");
  resolve.mutable_evidence()->set_reference("ch_7");
  resolve.mutable_evidence()->set_reason("seen");
  resolve.mutable_evidence()->set_body("shown");
  v1::ResolveResponse resolved;
  const grpc::Status status =
      Insist(credential, [&](auto* context) { return stub.Resolve(context, resolve, &resolved); });
  if (!status.ok()) return ReasonOf(status);
  *receipt_id = resolved.receipts_size() > 0 ? resolved.receipts(0).receipt_id() : "none";
  return "resolved";
}

TEST(ResolveRace, TwoReconcilersAndAPersonMakeOneResolutionAndOneReceipt) {
  Fleet fleet(Postgres::Shared(), 2);
  v1::MintRequest terms;
  terms.set_subject("agent");
  terms.set_unit("USD/2");
  terms.mutable_budget()->set_unlimited(true);
  terms.set_expires_in_ms(3'600'000);
  v1::GrantTerms& grant = *terms.add_grants();
  grant.set_tool("pay");
  grant.mutable_cap()->set_unlimited(true);
  grant.mutable_budget()->set_unlimited(true);
  grant.mutable_cost()->set_pointer("/amount");
  const v1::MintResponse permit = fleet.Mint(terms);
  const auto calls = v1::Calls::NewStub(fleet.replica(0).Channel());

  Parked parked;
  std::array<std::string, kJudges> told, receipts;
  std::barrier together(kJudges + 1);
  std::vector<std::thread> judges;
  for (size_t j = 0; j < kJudges; ++j) {
    judges.emplace_back([&, j] {
      const auto stub = v1::ParkedCalls::NewStub(fleet.replica(j % 2).Channel());
      const bool person = j == 2;
      for (int round = 0; round < kRounds; ++round) {
        together.arrive_and_wait();
        // Verdicts that differ, in turn. Who says the same as was resolved already is given that receipt.
        const bool happened = (j + static_cast<size_t>(round)) % 2 == 0;
        told[j] = Judge(*stub, fleet.credential(person ? v1::OPERATOR : v1::RECONCILER), parked, person,
                        happened ? v1::VERDICT_HAPPENED : v1::VERDICT_NOT_HAPPENED, &receipts[j]);
        together.arrive_and_wait();
      }
    });
  }
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    parked = Park(*calls, fleet.credential(v1::GATEWAY), permit.permit_token(), round);
    receipts.fill("");
    together.arrive_and_wait();
    together.arrive_and_wait();
    std::set<std::string> distinct;
    bool right = true;
    for (size_t j = 0; j < kJudges; ++j) {
      if (told[j] == "resolved") distinct.insert(receipts[j]);
      // Nobody is told anything but what is so: resolved, moved on, or somebody else's.
      right = right && (told[j] == "resolved" || told[j] == "STALE_RESOLUTION" || told[j] == "CLAIMED");
    }
    if (right && distinct.size() == 1) continue;
    if (++wrong > kWrongToldMax) continue;
    ADD_FAILURE() << "round " << round << ": " << distinct.size() << " resolutions; " << told[0] << ", " << told[1]
                  << ", " << told[2];
  }
  for (std::thread& judge : judges) judge.join();

  EXPECT_EQ(BrokenRule(fleet.conninfo()), "");
  EXPECT_EQ(fleet.VerifyChain(permit.permit_id()), "");
  // One receipt of minting, and for each call allowed, uncertain, resolved: nothing more.
  EXPECT_EQ(fleet.Chain(permit.permit_id()).size(), 1u + 3u * kRounds);
  EXPECT_EQ(Query(fleet.conninfo(), "SELECT count(*) FROM evidence"), std::to_string(kRounds));
  EXPECT_EQ(Query(fleet.conninfo(), "SELECT count(*) FROM calls WHERE claim_id IS NOT NULL"), "0");
}

}  // namespace
}  // namespace tally::test
