#include "reconciler/engine/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconciler/engine/gate.h"
#include "reconciler/engine/memory.h"
#include "tally/v1/receipt.pb.h"

namespace tally::reconciler {
namespace {

using ::testing::HasSubstr;
using What = Decision::What;

constexpr int64_t kSecond = 1'000'000;

Limits SomeLimits() {
  return {.absent_is_final_after = milliseconds(600'000),
          .absent_spacing = milliseconds(10'000),
          .give_up_after = milliseconds(86'400'000),
          .look_after_escalation = milliseconds(7 * 86'400'000),
          .backoff_min = milliseconds(2'000),
          .backoff_max = milliseconds(600'000)};
}

// Times in seconds since parking, which was when the lease ended.
Sighting Saw(v1::Finding finding, int64_t at, int64_t took = 1) {
  Sighting sighting;
  sighting.finding = finding;
  sighting.began = milliseconds(at * 1000);
  sighting.ended = milliseconds((at + took) * 1000);
  sighting.server_us = at * kSecond;
  return sighting;
}

constexpr auto kAbsent = v1::FINDING_ABSENT;
constexpr auto kHappened = v1::FINDING_HAPPENED;

TEST(Judge, AnAbsenceIsFinalAtItsVeryEdgeAndNotBefore) {
  const Parked parked;
  const auto what = [&](Sighting first, Sighting second) { return Judge(SomeLimits(), parked, {first}, second).what; };
  // Both after absent_is_final_after, the spacing from the end of the first to the beginning of the second.
  EXPECT_EQ(what(Saw(kAbsent, 600), Saw(kAbsent, 611)), What::kNotHappened);
  EXPECT_EQ(what(Saw(kAbsent, 600), Saw(kAbsent, 610)), What::kLookAgain);
  EXPECT_EQ(what(Saw(kAbsent, 600, 5), Saw(kAbsent, 614)), What::kLookAgain);
  EXPECT_EQ(what(Saw(kAbsent, 599), Saw(kAbsent, 700)), What::kLookAgain);
  Sighting early = Saw(kAbsent, 600);
  early.server_us -= 1;
  EXPECT_EQ(what(early, Saw(kAbsent, 700)), What::kLookAgain);
}

TEST(Judge, OnlyWhatThisProcessSawMakesAnAbsenceFinal) {
  Parked parked;
  parked.noted = {kAbsent, kAbsent, kAbsent};
  EXPECT_EQ(Judge(SomeLimits(), parked, {}, Saw(kAbsent, 5000)).what, What::kLookAgain);
}

TEST(Judge, WhatTurnsUpLateHappened) {
  const Decision decision =
      Judge(SomeLimits(), Parked(), {Saw(kAbsent, 10), Saw(kAbsent, 300), Saw(kAbsent, 601)}, Saw(kHappened, 605));
  EXPECT_EQ(decision.what, What::kHappened);
}

TEST(Judge, TheSecondLookComesSoonAfterTheFirstThatCounts) {
  const Decision early = Judge(SomeLimits(), Parked(), {}, Saw(kAbsent, 590));
  EXPECT_EQ(early.what, What::kLookAgain);
  EXPECT_LE(early.wait_max, milliseconds(12'000));
  const Decision first = Judge(SomeLimits(), Parked(), {}, Saw(kAbsent, 600));
  EXPECT_GE(first.wait_min, milliseconds(10'000));
  EXPECT_LE(first.wait_max, milliseconds(12'500));
}

TEST(Judge, PausesGrowToTheirCeiling) {
  Parked parked;
  std::vector<int64_t> ceilings;
  for (int i = 0; i < 12; ++i) {
    const Decision decision = Judge(SomeLimits(), parked, {}, Saw(v1::FINDING_UNCLEAR, 1));
    EXPECT_EQ(decision.wait_min, milliseconds(2'000));
    ceilings.push_back(decision.wait_max.count() / 1000);
    parked.noted.push_back(v1::FINDING_UNCLEAR);
  }
  EXPECT_THAT(ceilings, ::testing::ElementsAre(4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600, 600));
}

TEST(Judge, GivesUpToAPersonAtItsTime) {
  EXPECT_EQ(Judge(SomeLimits(), Parked(), {}, Saw(v1::FINDING_UNCLEAR, 86'399)).what, What::kLookAgain);
  const Decision decision = Judge(SomeLimits(), Parked(), {}, Saw(v1::FINDING_UNCLEAR, 86'400));
  EXPECT_EQ(decision.what, What::kEscalate);
  EXPECT_THAT(decision.reason, HasSubstr("could not be told in time"));
}

TEST(Judge, AfterEscalationOnlyThatItHappenedIsBrought) {
  Parked parked;
  parked.escalated = true;
  EXPECT_EQ(Judge(SomeLimits(), parked, {}, Saw(kHappened, 5)).what, What::kHappened);
  EXPECT_EQ(Judge(SomeLimits(), parked, {}, Saw(v1::FINDING_NOT_HAPPENED, 5)).what, What::kLookAgain);
  EXPECT_EQ(Judge(SomeLimits(), parked, {Saw(kAbsent, 700)}, Saw(kAbsent, 800)).what, What::kLookAgain);
  const Decision again = Judge(SomeLimits(), parked, {}, Saw(v1::FINDING_UNCLEAR, 5));
  EXPECT_GE(again.wait_min, milliseconds(300'000));
}

TEST(Judge, TwoRecordsOrTwoAmountsAreForAPerson) {
  Sighting first = Saw(kHappened, 1);
  first.amount = 5;
  first.provider_id = "re_1";
  Sighting second = first;
  EXPECT_EQ(Judge(SomeLimits(), Parked(), {first}, second).what, What::kHappened);
  second.amount = 6;
  EXPECT_THAT(Judge(SomeLimits(), Parked(), {first}, second).reason, HasSubstr("two different amounts"));
  second = first;
  second.provider_id = "re_2";
  EXPECT_EQ(Judge(SomeLimits(), Parked(), {first}, second).what, What::kEscalate);
}

TEST(BeforeAsking, AToolWithoutLookUpGoesToAPersonAtOnce) {
  const auto decision = BeforeAsking(SomeLimits(), Parked(), false, 0);
  ASSERT_TRUE(decision);
  EXPECT_EQ(decision->what, What::kEscalate);
  Parked escalated;
  escalated.escalated = true;
  EXPECT_EQ(BeforeAsking(SomeLimits(), escalated, false, 0)->what, What::kLeave);
  EXPECT_FALSE(BeforeAsking(SomeLimits(), Parked(), true, 0));
}

TEST(BeforeAsking, AnEscalatedCallIsAskedAboutForAWhile) {
  Parked escalated;
  escalated.escalated = true;
  const int64_t end = 7 * 86'400 * kSecond;
  EXPECT_FALSE(BeforeAsking(SomeLimits(), escalated, true, end - 1));
  EXPECT_EQ(BeforeAsking(SomeLimits(), escalated, true, end)->what, What::kLeave);
}

TEST(BeforeAsking, TheGatewaysLateWordIsTakenOnlyWhereNothingShowsThatItSent) {
  Parked parked;
  parked.never_sent = true;
  EXPECT_EQ(BeforeAsking(SomeLimits(), parked, true, 0)->what, What::kNotHappened);
  EXPECT_EQ(BeforeAsking(SomeLimits(), parked, false, 0)->what, What::kNotHappened);
  parked.noted = {v1::FINDING_PENDING};
  EXPECT_FALSE(BeforeAsking(SomeLimits(), parked, true, 0));
  parked.noted = {};
  parked.escalated = true;
  EXPECT_NE(BeforeAsking(SomeLimits(), parked, false, 0)->what, What::kNotHappened);
}

v1::ParkedCall Call(int64_t sent_us, int64_t lease_end_us) {
  v1::ParkedCall parked;
  parked.set_send_before_us(130 * kSecond);
  v1::AttemptInfo& attempt = *parked.mutable_call()->add_attempts();
  attempt.set_sent_at_us(sent_us);
  attempt.set_lease_end_us(lease_end_us);
  return parked;
}

TEST(ParkedOf, CountsFromTheLaterOfSendTimeAndLeaseEnd) {
  EXPECT_EQ(ParkedOf(Call(125 * kSecond, 240 * kSecond)).quiet_from_us, 240 * kSecond);
  EXPECT_EQ(ParkedOf(Call(250 * kSecond, 240 * kSecond)).quiet_from_us, 250 * kSecond);
  EXPECT_EQ(ParkedOf(Call(0, 0)).quiet_from_us, 130 * kSecond);
}

TEST(ParkedOf, AReplayIsASend) {
  v1::ReceiptPayload payload;
  payload.set_time_us(900 * kSecond);
  const auto of = [&](v1::ReceiptKind kind) {
    v1::ParkedCall parked = Call(0, 240 * kSecond);
    parked.set_late_not_sent(true);
    payload.set_kind(kind);
    parked.mutable_call()->add_receipts()->set_payload(payload.SerializeAsString());
    return ParkedOf(parked);
  };
  EXPECT_EQ(of(v1::CALL_REPLAY_SENT).quiet_from_us, 900 * kSecond);
  EXPECT_FALSE(of(v1::CALL_REPLAY_SENT).never_sent);
  EXPECT_EQ(of(v1::CALL_UNCERTAIN).quiet_from_us, 240 * kSecond);
  EXPECT_TRUE(of(v1::CALL_UNCERTAIN).never_sent);
}

TEST(ParkedOf, ALateNotSentCountsOnlyWithoutATimeOfSending) {
  v1::ParkedCall parked = Call(0, 240 * kSecond);
  parked.set_late_not_sent(true);
  EXPECT_TRUE(ParkedOf(parked).never_sent);
  parked.mutable_call()->mutable_attempts(0)->set_sent_at_us(1);
  EXPECT_FALSE(ParkedOf(parked).never_sent);
}

TEST(TokenBucket, GivesOneSecondsWorthAndThenAsManyASecond) {
  TokenBucket bucket(4);
  int taken = 0;
  for (int ms = 0; ms <= 2000; ++ms) taken += bucket.Take(milliseconds(ms)) ? 1 : 0;
  EXPECT_EQ(taken, 4 + 8);
  TokenBucket slow(0.5);
  EXPECT_TRUE(slow.Take(milliseconds(0)));
  EXPECT_FALSE(slow.Take(milliseconds(1999)));
  EXPECT_EQ(slow.NextAt(milliseconds(1999)), milliseconds(2000));
  EXPECT_TRUE(slow.Take(milliseconds(2000)));
}

TEST(ProviderGate, BoundsQuestionsAtOneTime) {
  ProviderGate gate(2, 1000);
  EXPECT_TRUE(gate.Enter(milliseconds(0)));
  EXPECT_TRUE(gate.Enter(milliseconds(0)));
  EXPECT_FALSE(gate.Enter(milliseconds(0)));
  EXPECT_EQ(gate.NextAt(milliseconds(0)), std::nullopt);
  gate.Leave();
  EXPECT_TRUE(gate.Enter(milliseconds(0)));
}

TEST(Memory, IsBounded) {
  Memory memory(3);
  for (int i = 0; i < 10; ++i) memory.Add(std::to_string(i), Saw(kAbsent, i));
  EXPECT_EQ(memory.size(), 3u);
  EXPECT_TRUE(memory.Of("0").empty());
  EXPECT_EQ(memory.Of("9").size(), 1u);
  for (int i = 0; i < 1000; ++i) memory.Add("9", Saw(kAbsent, i));
  EXPECT_LE(memory.Of("9").size(), 200u);
  EXPECT_EQ(memory.Of("9").back().began, milliseconds(999'000));
  memory.Forget("9");
  EXPECT_TRUE(memory.Of("9").empty());
  memory.Add("9", Saw(v1::FINDING_UNCLEAR, 1));
  EXPECT_TRUE(memory.Of("9").empty());
}

}  // namespace
}  // namespace tally::reconciler
