#include "lib/receipt/verify_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "lib/receipt/payload.h"
#include "tests/receipt/story.h"

namespace tally::receipt {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

keys::KeyRing Ring() {
  return keys::KeyRing({{.name = samples::Key().public_key().name(), .bytes = samples::Key().public_key().bytes()}});
}

SetReport Check(const std::vector<Input>& inputs) { return VerifySet(inputs, Ring()); }

std::string Why(const SetReport& report) {
  std::string out;
  for (const auto& receipt : report.receipts) out += receipt.fault ? receipt.source + ": " + *receipt.fault + "\n" : "";
  for (const auto& chain : report.chains) {
    for (const auto& fault : chain.faults) out += fault + "\n";
  }
  return out;
}

void ExpectGood(const Story& story) {
  const SetReport report = Check(story.Inputs());
  EXPECT_EQ(report.outcome, Outcome::kGood) << Why(report);
  for (const auto& chain : report.chains) {
    for (const auto& line : chain.not_checked) EXPECT_THAT(line, HasSubstr("goes on after")) << line;
  }
}

// The last receipt is well signed, well linked and impossible, and for this reason.
void ExpectImpossible(const Story& story, const std::string& why) {
  const SetReport report = Check(story.Inputs());
  EXPECT_EQ(report.outcome, Outcome::kBad) << "not found: " << why;
  for (const auto& receipt : report.receipts) EXPECT_EQ(receipt.outcome, Outcome::kGood) << *receipt.fault;
  const std::string number = "number " + std::to_string(story.receipts().size()) + " ";
  EXPECT_THAT(Why(report), ::testing::AllOf(HasSubstr(why), HasSubstr(number)));
}

// A chain in which nearly everything happens.
Story Long() {
  Story s;
  s.Mint().Allow("a").Succeed("a").Allow("b", 200).Release("b").Allow("b", 200).Park("b").Escalate("b");
  s.Resolve("b", true, v1::OPERATOR).Allow("r", 0, 2).NoAnswer("r").Succeed("r").Deny("c", "AMOUNT_OVER_CALL_LIMIT");
  s.Void("lost").Allow("m", 5, 3).Error("m", 0).Contradict("m").Correct("m", false).Allow("m", 5, 3).Succeed("m", 7);
  s.Repeat("a/2", "a").Revoke().Closing().Closed();
  return s;
}

// ---- What is legal ----

TEST(Set, AWholeLifeIsGoodAndComplete) {
  const SetReport report = Check(Long().Inputs());
  EXPECT_EQ(report.outcome, Outcome::kGood) << Why(report);
  ASSERT_EQ(report.chains.size(), 1u);
  EXPECT_TRUE(report.chains[0].complete);
  EXPECT_TRUE(report.chains[0].not_checked.empty());
  EXPECT_THAT(report.not_checked, Contains(HasSubstr("outside world")));
  EXPECT_THAT(report.not_checked, Contains(HasSubstr("permits that were not given")));
  EXPECT_THAT(report.not_checked, Contains(HasSubstr("arguments, results and evidence")));
}

TEST(Set, EveryLegalTransitionIsGood) {
  const auto start = [] { return Story().Mint().Allow("a"); };
  ExpectGood(start().Release("a").Allow("a").Release("a").Allow("a").Succeed("a"));
  ExpectGood(start().Error("a"));
  ExpectGood(start().Error("a", 0));  // no_effect
  ExpectGood(start().Park("a").Succeed("a"));
  ExpectGood(start().Park("a").Error("a"));
  ExpectGood(start().Park("a").Resolve("a", false).Allow("a").Succeed("a"));
  ExpectGood(start().Park("a").Resolve("a", true, v1::RECONCILER, 60));
  ExpectGood(start().Park("a").Resolve("a", true).Attach("a", false));
  ExpectGood(start().Park("a").Resolve("a", true).Attach("a", true));
  ExpectGood(start().Park("a").Resolve("a", false).Attach("a", true));
  ExpectGood(start().Park("a").ReplaySent("a").Resolve("a", true));
  ExpectGood(start().Park("a").Escalate("a").Resolve("a", true, v1::RECONCILER));
  ExpectGood(start().Park("a").Escalate("a").Resolve("a", false, v1::OPERATOR));
  ExpectGood(start().Park("a").Resolve("a", true).Correct("a", false).Allow("a"));
  ExpectGood(start().Park("a").Resolve("a", false).Correct("a", true).Attach("a", false));
  ExpectGood(start().Release("a").Contradict("a"));
  ExpectGood(start().Error("a").Contradict("a"));
  ExpectGood(start().Release("a").Allow("a").Contradict("a", 1).Release("a"));
  ExpectGood(start().Release("a").Allow("a").Contradict("a", 1).Succeed("a"));
  ExpectGood(Story().Mint().Allow("r", 0, 2).NoAnswer("r").Error("r"));
  ExpectGood(Story().Mint().Allow("m", 5, 3).Succeed("m", 50));  // ten times the hold, as reported
  ExpectGood(Story().Mint().Deny("x", "TOOL_NOT_GRANTED", 0).Deny("x", "PERMIT_EXPIRED", 0, [](auto& p) {
    p.set_time_us(samples::kTime + 3600 * Story::kSecond);
  }));
  ExpectGood(start().Revoke().Succeed("a").Closing().Closed());
  ExpectGood(start().Release("a").Closing().Closed().Contradict("a").Correct("a", false));
}

TEST(Set, AContradictionBeyondTheCapIsGoodAsOverrunAndNeverRaisesALimit) {
  Story s;
  s.Mint().Allow("a", 1000).Release("a").Allow("b", 1000).Allow("c", 1000).Allow("d", 1000).Contradict("a");
  ExpectGood(s);
  const v1::ReceiptPayload last = *Parse(s.receipts().back().payload());
  EXPECT_EQ(last.slot_overrun(), 1);
  EXPECT_EQ(last.cap().used(), 4);
  EXPECT_EQ(last.overrun(), 1000);
  ExpectImpossible(s.Release("b").Allow("e", 0), "a grant beyond the cap");
}

// ---- What is not ----

TEST(Set, IllegalTransitionsShow) {
  const auto start = [] { return Story().Mint().Allow("a"); };
  ExpectImpossible(start().Allow("a"), "while an earlier one is open");
  ExpectImpossible(start().Succeed("a").Allow("a"), "answered");
  ExpectImpossible(start().Succeed("a").Succeed("a"), "CALL_SUCCEEDED from SUCCEEDED");
  ExpectImpossible(start().Park("a").Release("a"), "CALL_RELEASED from UNCERTAIN");
  ExpectImpossible(start().Park("a").Allow("a"), "while an earlier one is open");
  ExpectImpossible(start().Resolve("a", false), "CALL_RESOLVED_NOT_HAPPENED from AUTHORIZED");
  ExpectImpossible(start().Park("a").Resolve("a", false, v1::GATEWAY), "neither a reconciler nor an operator");
  ExpectImpossible(start().Park("a").Escalate("a").Resolve("a", false), "someone else than a person");
  ExpectImpossible(start().Park("a").Escalate("a").Escalate("a"), "second CALL_ESCALATED");
  ExpectImpossible(start().Escalate("a"), "CALL_ESCALATED from AUTHORIZED");
  ExpectImpossible(start().ReplaySent("a"), "CALL_REPLAY_SENT from AUTHORIZED");
  ExpectImpossible(start().Park("a").Revoke().ReplaySent("a"), "under a permit that had ended");
  ExpectImpossible(start().Park("a").Closing().ReplaySent("a"), "under a permit that had ended");
  ExpectImpossible(start().Park("a").ReplaySent("a", [](auto& p) { p.set_principal_role(v1::OPERATOR); }),
                   "a replay that no reconciler sent");
  ExpectImpossible(start().Park("a").ReplaySent("a", [](auto& p) { p.set_effect_known(v1::ANSWERED); }),
                   "a CALL_REPLAY_SENT whose effect is not unknown");
  ExpectImpossible(start().Contradict("a"), "CALL_CONTRADICTED from AUTHORIZED");
  ExpectImpossible(start().Succeed("a").Correct("a", false), "which no verdict made");
  ExpectImpossible(start().Succeed("a").Correct("a", true), "corrected to happened from SUCCEEDED");
  ExpectImpossible(start().Park("a").Resolve("a", true).Attach("a", false).Attach("a", false), "a second answer");
  ExpectImpossible(start().Release("a").Allow("a").Release("a").Allow("a").Release("a").Allow("a"), "more attempts");
  ExpectImpossible(Story().Mint().Allow("r", 0, 2).Park("r"), "a READ that is parked");
  ExpectImpossible(start().NoAnswer("a"), "READ_NO_ANSWER where no READ was waiting");
  ExpectImpossible(Story().Mint().Mint(), "a second PERMIT_MINTED");
  ExpectImpossible(Story().Mint().Revoke().Allow("a"), "after the permit was revoked");
  ExpectImpossible(Story().Mint().Closing().Allow("a"), "after the permit was revoked or closed");
  ExpectImpossible(Story().Mint().Closed(), "without PERMIT_CLOSING");
  ExpectImpossible(start().Closing().Closed(), "with 1 calls open");
  ExpectImpossible(Story().Mint().Closing().Closed().Deny("a", "PERMIT_CLOSED"), "after PERMIT_CLOSED");
  ExpectImpossible(Story().Mint().OfPermit(v1::DENIAL_LIMIT), "a DENIAL_LIMIT after 0 refusals");
  ExpectImpossible(Story().Mint().Void("a1").Allow("a"), "granted or voided before");
  ExpectImpossible(start().Void("a1"), "granted or voided before");
  ExpectImpossible(start().Allow("a/2"), "another call of the same intent is open");
  ExpectImpossible(start().Park("a").Allow("a/2"), "another call of the same intent is open");
  ExpectImpossible(start().Repeat("a/2", "a"), "has not succeeded");
  ExpectImpossible(start().Deny("a", "CALL_CAP"), "refuses a key whose call is open");
  ExpectImpossible(Story().Mint().Deny("a", "CALL_CAP"), "the cap leaves room");
  ExpectImpossible(Story().Mint().Deny("a", "PERMIT_REVOKED"), "where the permit is not");
  ExpectImpossible(Story().Allow("a"), "does not begin with PERMIT_MINTED");
}

TEST(Set, WhatTheTermsDoNotAllowShows) {
  ExpectImpossible(Story().Mint().Allow("a", 1001), "over the limit for one call");
  ExpectImpossible(Story().Mint().Allow("a", 6, 3), "fixed cost");
  ExpectImpossible(Story().Mint().Allow("a", 1, 2), "costs nothing");
  ExpectImpossible(Story().Mint().Allow("a").Allow("b").Allow("c").Allow("d"), "beyond the cap");
  ExpectImpossible(Story().Mint().Wait(3600 * Story::kSecond).Allow("a"), "outside the permit's time");
  ExpectImpossible(
      Story().Mint().Allow("a", 100, 1, [](auto& p) { p.set_lease_end_us(p.time_us() + 999 * Story::kSecond); }),
      "lease");
  ExpectImpossible(Story().Mint().Allow("a", 100, 1, [](auto& p) { p.set_send_within_ms(10001); }), "send window");
  ExpectImpossible(Story().Mint().Allow("a", 100, 1, [](auto& p) { p.set_tool("mail__send"); }), "most specific");
  ExpectImpossible(Story().Mint().Allow("a", 100, 1,
                                        [](auto& p) {
                                          p.set_effect(v1::READ);
                                          p.clear_intent_hash();
                                        }),
                   "effect is not the grant's");
  ExpectImpossible(Story().Mint().Allow("a").Wait(121 * Story::kSecond).Release("a"), "after the lease was over");
  ExpectImpossible(Story().Mint().Allow("a").Succeed("a", 99), "where the hold was");
  ExpectImpossible(Story().Mint().Allow("m", 5, 3).Succeed("m", 51), "ten times the hold");
  ExpectImpossible(Story().Mint().Allow("m", 5, 3).Error("m", 5), "releases it");
}

// Any number of any receipt, changed by whoever holds the key, no longer fits the chain.
TEST(Set, AReceiptThatMiscountsShows) {
  const std::vector<Story::Spoil> spoils = {
      [](auto& p) { p.mutable_cap()->set_used(2); },
      [](auto& p) { p.mutable_tool_budget()->set_held(1); },
      [](auto& p) { p.mutable_tool_budget()->set_spent(101); },
      [](auto& p) { p.mutable_permit_budget()->set_spent(99); },
      [](auto& p) { p.mutable_permit_budget()->mutable_limit()->set_at_most(9999); },
      [](auto& p) { p.mutable_cap()->mutable_limit()->set_at_most(4); },
      [](auto& p) { p.mutable_tool_budget()->mutable_limit()->set_unlimited(true); },
      [](auto& p) { p.set_overrun(1); },
      [](auto& p) { p.set_slot_overrun(1); },
      [](auto& p) { p.set_held(1); },
      [](auto& p) { p.set_charged(1); },
      [](auto& p) { p.set_state(v1::TOOL_ERROR); },
      [](auto& p) { p.set_attempt_state(v1::TOOL_ERROR); },
      [](auto& p) { p.set_attempt_number(2); },
      [](auto& p) { p.set_attempt_id_hash(samples::Hash("other")); },
      [](auto& p) { p.set_supersedes(samples::Hash("other")); },
      [](auto& p) { p.set_effect_known(v1::ANSWERED_ERROR); },
      [](auto& p) { p.set_intent_hash(samples::Hash("other")); },
      [](auto& p) { p.set_call_id(samples::Uuid("019b76da-a800-7000-8000-000000000077")); },
      [](auto& p) { p.set_lease_end_us(p.lease_end_us() - 1); },
      [](auto& p) { p.set_unit("EUR/2"); }};
  for (const auto& spoil : spoils) ExpectImpossible(Story().Mint().Allow("a").Succeed("a", -1, spoil), "is impossible");
  for (const char* count :
       {"calls", "attempts", "succeeded", "tool_error", "released", "not_happened", "denied", "spent", "overrun"}) {
    ExpectImpossible(Story().Mint().Allow("a").Succeed("a").Closing().Closed([&](v1::ReceiptPayload& p) {
      auto* closing = p.mutable_closing();
      closing->GetReflection()->SetInt64(closing, closing->GetDescriptor()->FindFieldByName(count), 42);
    }),
                     std::string("closing.") + count);
  }
}

// A resolution answers the CALL_UNCERTAIN of its own attempt, whatever came between.
TEST(Set, AResolutionIsLinkedToTheUncertainReceiptItAnswers) {
  const auto parked = [] { return Story().Mint().Allow("a").Park("a"); };
  const auto linked_to = [](const Story& story, size_t number) {
    return [id = story.receipts()[number - 1].receipt_id()](v1::ReceiptPayload& p) { p.set_supersedes(id); };
  };
  constexpr char kOther[] = "it supersedes another receipt than the one that says how the attempt stands";
  for (const bool happened : {true, false}) {
    for (const v1::Role by : {v1::RECONCILER, v1::OPERATOR}) {
      ExpectGood(parked().ReplaySent("a").Resolve("a", happened, by));
      ExpectImpossible(parked().Resolve("a", happened, by, -1, linked_to(parked(), 2)), kOther);  // its CALL_ALLOWED
      Story replayed = parked().ReplaySent("a");
      const auto to_replay = linked_to(replayed, 4);
      ExpectImpossible(replayed.Resolve("a", happened, by, -1, to_replay), kOther);
    }
  }
  // Attempt 2 is parked: the receipt of attempt 1 says nothing of it.
  Story second = parked().Resolve("a", false).Allow("a").Park("a");
  const auto to_first = linked_to(second, 3);
  ExpectImpossible(second.Resolve("a", true, v1::RECONCILER, -1, to_first), kOther);
  // Another call's.
  Story two = Story().Mint().Allow("a").Allow("b").Park("a").Park("b");
  const auto to_a = linked_to(two, 4);
  ExpectImpossible(two.Resolve("b", true, v1::RECONCILER, -1, to_a), kOther);
}

TEST(Set, AResolutionWithoutALinkOrWithoutEvidenceIsNone) {
  const Story::Spoil spoils[] = {[](auto& p) { p.clear_supersedes(); }, [](auto& p) { p.clear_evidence_commitment(); },
                                 [](auto& p) { p.clear_evidence_source(); }};
  for (const auto& spoil : spoils) {
    const SetReport report =
        Check(Story().Mint().Allow("a").Park("a").Resolve("a", true, v1::RECONCILER, -1, spoil).Inputs());
    EXPECT_EQ(report.outcome, Outcome::kBad);
    EXPECT_EQ(report.receipts.back().outcome, Outcome::kBad);
  }
}

TEST(Set, OneKeyStandsForOneCallAndOneFingerprint) {
  ExpectImpossible(Story()
                       .Mint()
                       .Deny("a", "OPEN_CALLS")
                       .Allow("a", 100, 1, [](auto& p) { p.set_fingerprint_hash(samples::Hash("other")); }),
                   "stood for something else");
  ExpectImpossible(Story()
                       .Mint()
                       .Deny("a", "OPEN_CALLS")
                       .Allow("b", 100, 1,
                              [](auto& p) {
                                p.set_key_hash(samples::Hash("key a"));
                                p.set_fingerprint_hash(samples::Hash("fingerprint a"));
                              }),
                   "another call's");
}

TEST(Set, ABoundKeySpeaksForTheCallItIsBoundToAndIsBoundAnewWhenThatWasGivenBack) {
  const auto start = [] {
    return Story().Mint().Allow("a").Park("a").Resolve("a", true).Repeat("a/2", "a").Correct("a", false);
  };
  const Story::Spoil by_the_other_key = [](auto& p) {
    p.set_key_hash(samples::Hash("key a/2"));
    p.set_fingerprint_hash(samples::Hash("fingerprint a/2"));
  };
  ExpectGood(start().Allow("a", 100, 1, by_the_other_key).Succeed("a"));
  ExpectGood(start().Allow("a/3").Succeed("a/3").Repeat("a", "a/3", by_the_other_key));
  ExpectImpossible(start().Allow("a/3").Succeed("a/3").Repeat("a/2", "a/3"), "another call's");
  ExpectImpossible(start().Allow("a/2"), "another call's");
  // What has happened itself is no other call's name any more.
  ExpectGood(Story().Mint().Allow("a/2").Release("a/2").Allow("a").Succeed("a").Repeat("a/2", "a").Contradict("a/2"));
  ExpectImpossible(Story().Mint().Allow("a").Succeed("a").Repeat("a/2", "a").Allow("a/2"), "another call's");
}

// ---- What is missing, changed or made up ----

TEST(Set, OrderAndDuplicatesOfTheInputDoNotMatter) {
  auto inputs = Long().Inputs();
  std::reverse(inputs.begin(), inputs.end());
  inputs.push_back(inputs[3]);
  const SetReport report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kGood) << Why(report);
  EXPECT_EQ(report.chains[0].receipts, inputs.size() - 1);
}

TEST(Set, AnyDroppedReceiptButTheLastShows) {
  const auto all = Long().Inputs();
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    auto inputs = all;
    inputs.erase(inputs.begin() + static_cast<ptrdiff_t>(i));
    const SetReport report = Check(inputs);
    EXPECT_EQ(report.outcome, Outcome::kInconclusive) << i << Why(report);
    EXPECT_THAT(Why(report), HasSubstr("number " + std::to_string(i + 1) + " is missing"));
    EXPECT_FALSE(report.chains[0].complete);
  }
}

TEST(Set, ADroppedLastReceiptIsAnOpenTailAndShowsAgainstAHead) {
  Story s = Story().Mint().Allow("a").Succeed("a");
  auto inputs = s.Inputs();
  inputs.pop_back();
  SetReport report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kGood);
  EXPECT_THAT(report.chains[0].not_checked, Contains(HasSubstr("neither PERMIT_CLOSED nor a PERMIT_HEAD")));
  inputs.push_back({"head", s.Head()});
  report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kInconclusive);
  EXPECT_THAT(Why(report), HasSubstr("number 3 is missing"));
}

TEST(Set, AHeadMakesAnOpenChainComplete) {
  Story s = Story().Mint().Allow("a");
  auto inputs = s.Inputs();
  inputs.push_back({"head", s.Head()});
  const SetReport report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kGood) << Why(report);
  EXPECT_TRUE(report.chains[0].complete);
  EXPECT_TRUE(report.chains[0].not_checked.empty());
}

TEST(Set, AHeadOfAnotherChainWithTheSameNumberIsBad) {
  auto inputs = Story().Mint().Allow("a").Inputs();
  inputs.push_back({"head", Story().Mint().Allow("b").Head()});
  EXPECT_EQ(Check(inputs).outcome, Outcome::kBad);
}

TEST(Set, AnAlteredReceiptShowsAndTheRestIsNotCalledBad) {
  auto inputs = Long().Inputs();
  v1::Receipt& altered = inputs[4].receipt;
  altered.mutable_payload()->back() ^= 1;
  const SetReport report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kBad);
  EXPECT_EQ(std::count_if(report.receipts.begin(), report.receipts.end(),
                          [](const auto& r) { return r.outcome == Outcome::kBad; }),
            1);
  EXPECT_EQ(report.receipts[4].outcome, Outcome::kBad);
}

TEST(Set, AReceiptReplacedByOneOfAnUnknownKeyShows) {
  const auto honest = Story().Mint().Allow("a").Succeed("a").Inputs();
  auto inputs = honest;
  inputs[1] = Story(samples::OtherKey()).Mint().Allow("a", 999).Inputs()[1];
  EXPECT_EQ(Check(inputs).outcome, Outcome::kBad);  // its successor names another
  inputs = honest;
  inputs[2] = Story(samples::OtherKey()).Mint().Allow("a").Succeed("a").Inputs()[2];
  EXPECT_EQ(Check(inputs).outcome, Outcome::kBad);  // it does not follow the one before
  EXPECT_EQ(Check(Story(samples::OtherKey()).Mint().Allow("a").Inputs()).outcome, Outcome::kInconclusive);
}

TEST(Set, AForkShowsThoughBothSidesAreWellSigned) {
  auto inputs = Story().Mint().Allow("a").Succeed("a").Inputs();
  const auto other = Story().Mint().Allow("a").Error("a").Inputs();
  inputs.push_back({"other", other[2].receipt});
  const SetReport report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kBad);
  EXPECT_THAT(Why(report), HasSubstr("forked"));
}

TEST(Set, AReceiptMovedFromAnotherChainOfTheSamePermitShows) {
  auto inputs = Story().Mint().Allow("a").Succeed("a").Inputs();
  inputs[1] = Story().Mint().Allow("b").Inputs()[1];
  EXPECT_EQ(Check(inputs).outcome, Outcome::kBad);
}

TEST(Set, ChainsOfTwoPermitsAreJudgedApart) {
  auto inputs = Story().Mint().Allow("a").Inputs();
  const auto other = Story(samples::Key(), samples::Uuid("019b76da-a800-7000-8000-000000000002")).Mint().Inputs();
  inputs.insert(inputs.end(), other.begin(), other.end());
  const SetReport report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kGood) << Why(report);
  EXPECT_EQ(report.chains.size(), 2u);
}

TEST(Set, ASingleReceiptFromTheMiddleIsGoodAndItsChainNotChecked) {
  const SetReport report = Check({Long().Inputs()[5]});
  EXPECT_EQ(report.outcome, Outcome::kGood) << Why(report);
  EXPECT_THAT(report.chains[0].not_checked, Contains(HasSubstr("single receipt")));
}

TEST(Set, AMissingStartOfSeveralIsInconclusive) {
  auto inputs = Long().Inputs();
  inputs.erase(inputs.begin(), inputs.begin() + 3);
  const SetReport report = Check(inputs);
  EXPECT_EQ(report.outcome, Outcome::kInconclusive);
  EXPECT_THAT(Why(report), HasSubstr("numbers 1 to 3 are missing"));
}

TEST(Set, ATenantsChainIsLinkedToo) {
  ChainHead head;
  std::vector<Input> inputs;
  for (v1::ReceiptKind kind : {v1::TENANT_CREATED, v1::PRINCIPAL_CREATED, v1::PRINCIPAL_DISABLED}) {
    v1::ReceiptPayload p;
    p.set_kind(kind);
    p.set_tenant("acme");
    p.set_time_us(samples::kTime);
    if (kind != v1::TENANT_CREATED) p.mutable_principal()->set_principal_id("x");
    inputs.push_back({"r", *Sign(*Seal(p, head, samples::Key()), samples::Key())});
  }
  EXPECT_EQ(Check(inputs).outcome, Outcome::kGood) << Why(Check(inputs));
  inputs.erase(inputs.begin() + 1);
  EXPECT_EQ(Check(inputs).outcome, Outcome::kInconclusive);
}

RC_GTEST_PROP(Set, NoSubsetOfAChainIsCalledCompleteUnlessItIsWhole, ()) {
  static const auto all = Long().Inputs();
  std::vector<Input> some;
  for (const Input& input : all) {
    if (*rc::gen::weightedElement<bool>({{9, true}, {1, false}})) some.push_back(input);
  }
  const SetReport report = Check(some);
  RC_ASSERT(report.outcome != Outcome::kBad);
  if (some.size() != all.size() && !some.empty()) RC_ASSERT(!report.chains[0].complete);
}

}  // namespace
}  // namespace tally::receipt
