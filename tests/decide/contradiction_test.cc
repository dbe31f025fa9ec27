#include "tests/decide/fixture.h"

// An attempt that was given back, or had answered an error, turns out to have happened; and wrong verdicts put right.
namespace tally::decide::testing {
namespace {

class Contradiction : public DecideTest {
 protected:
  void Released(const std::string& attempt) {
    ASSERT_EQ(Authorize("k", {.attempt = attempt}), kDispatch);
    ASSERT_EQ(Commit("k", kNotSent), kRecorded);
  }
};

TEST_F(Contradiction, RetakesSlotAndCostBeyondCapAndBudget) {
  GrantTerms grant_terms = Cap(1);
  grant_terms.budget = 10;
  Mint(grant_terms, 10);
  Released("a");
  ASSERT_EQ(Authorize("other", {.arguments = 2}), kDispatch);
  ASSERT_EQ(Commit("other", kSucceeded), kRecorded);
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(grant().slots, 2);
  EXPECT_EQ(grant().slot_overrun, 1);
  EXPECT_EQ(grant().spent, 20);
  EXPECT_EQ(grant().overrun, 10);
  EXPECT_EQ(permit().money.overrun, 10);
  EXPECT_EQ(receipt().overrun(), 10);
  EXPECT_EQ(receipt().slot_overrun(), 1);
  EXPECT_EQ(receipt().effect_known(), v1::CONTRADICTED);
  EXPECT_EQ(Authorize("third", {.arguments = 3}), kCallCap) << "an overrun never raises a limit";
}

TEST_F(Contradiction, AnOpenAttemptIsPendingAndCommitsNotSent_ThenTheCallHasSucceeded) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Authorize("k", {.attempt = "b"}), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.attempt = "a"}), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::AUTHORIZED) << "while another attempt is open";
  EXPECT_EQ(Authorize("k", {.attempt = "b"}), kPendingContradicted);
  EXPECT_EQ(Authorize("k", {.attempt = "c"}), kStillAuthorized);
  ASSERT_EQ(Commit("k", kNotSent, {.attempt = "b"}), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
  EXPECT_EQ(Authorize("k", {.attempt = "c"}), kReplay);
  EXPECT_EQ(answer().attempt_number, 1) << "with the contradicting result";
  EXPECT_EQ(answer().result_of, call("k").call_id);
  EXPECT_EQ(grant().slots, 1);
}

TEST_F(Contradiction, HoweverTheOpenAttemptEnds_TheCallHasSucceededWithTheContradictingResult) {
  struct Row {
    Outcome outcome;
    int64_t slots;
  };
  for (const Row& row : {Row{kToolError, 2}, Row{kSucceeded, 2}, Row{kNotSent, 1}}) {
    const int permit = Mint([] {
      GrantTerms terms = Open();
      terms.scope = v1::INTENT_SCOPE_PERMIT;
      return terms;
    }());
    const std::string first = "a" + std::to_string(permit), second = "b" + std::to_string(permit);
    ASSERT_EQ(Authorize("k", {.attempt = first, .permit = permit}), kDispatch);
    ASSERT_EQ(Commit("k", kNotSent, {.permit = permit}), kRecorded);
    ASSERT_EQ(Authorize("k", {.attempt = second, .permit = permit}), kDispatch);
    ASSERT_EQ(Commit("k", kSucceeded, {.attempt = first, .permit = permit}), kRecorded);
    ASSERT_EQ(Commit("k", row.outcome, {.attempt = second, .result = 2, .permit = permit}), kRecorded);
    EXPECT_EQ(StateOf("k", permit), v1::SUCCEEDED);
    EXPECT_EQ(grant(permit).slots, row.slots)
        << "an attempt that succeeds as well was a second effect: both are charged";
    EXPECT_EQ(Authorize("k", {.permit = permit}), kReplay);
    EXPECT_EQ(answer().attempt_number, 1);
  }
}

TEST_F(Contradiction, AnOpenAttemptThatIsParkedKeepsTheKeyPending) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Authorize("k", {.attempt = "b"}), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.attempt = "a"}), kRecorded);
  ASSERT_EQ(Commit("k", kUncertain, {.attempt = "b"}), kRecorded);
  EXPECT_EQ(Authorize("k"), kStillPending);
  ASSERT_EQ(Resolve("k", kNotHappened, {.attempt = "b"}), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
}

TEST_F(Contradiction, NoFurtherAttemptIsGranted) {
  Mint(Open());
  Released("a");
  Released("b");
  ASSERT_EQ(Commit("k", kSucceeded, {.attempt = "a"}), kRecorded);
  EXPECT_EQ(Authorize("k"), kReplay);
  EXPECT_EQ(call("k").attempts.size(), 2u);
}

TEST_F(Contradiction, TheIntentsWindowStartsNow_AndIsADay) {
  Mint(Open());
  Released("a");
  Pass(30 * kDay);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  Pass(kDay - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
  Pass(1);
  EXPECT_EQ(Authorize("k3"), kDispatch);
}

TEST_F(Contradiction, TheSameAgainGetsTheOriginalReceipt) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  const size_t length = ChainLength();
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_TRUE(Cites(static_cast<int64_t>(length)));
  EXPECT_EQ(ChainLength(), length);
  EXPECT_EQ(Commit("k", kSucceeded, {.result = 2}), kCommitConflict);
}

TEST_F(Contradiction, IsTakenFromExpiredRevokedAndClosedPermits) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Revoke(), kRecorded);
  ASSERT_EQ(Close(), kRecorded);
  Pass(400 * kDay);
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(Chain().back(), v1::CALL_CONTRADICTED);
  EXPECT_EQ(grant().spent, 10);
}

TEST_F(Contradiction, CrashedAway_ItIsAsIfItHadNotBeenSaid) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  Crash();
  EXPECT_EQ(StateOf("k"), v1::RELEASED);
  EXPECT_EQ(grant(), Counters{});
}

// ---- Correct ----

TEST_F(Contradiction, Correct_ToHappened_FromEveryEndThatGaveBackOrFailed) {
  Mint(Open());
  ASSERT_EQ(Authorize("released"), kDispatch);
  ASSERT_EQ(Commit("released", kNotSent), kRecorded);
  ASSERT_EQ(Authorize("failed", {.arguments = 2}), kDispatch);
  ASSERT_EQ(Commit("failed", kToolError), kRecorded);
  ASSERT_EQ(Authorize("judged", {.arguments = 3}), kDispatch);
  ASSERT_EQ(Commit("judged", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("judged", kNotHappened), kRecorded);
  for (const char* key : {"released", "failed", "judged"}) {
    EXPECT_EQ(Correct(key, kHappened), kRecorded) << key;
    EXPECT_EQ(receipt().kind(), v1::CALL_CORRECTED);
    EXPECT_EQ(StateOf(key), v1::SUCCEEDED);
  }
  EXPECT_EQ(grant().slots, 3);
  EXPECT_EQ(grant().spent, 30);
}

TEST_F(Contradiction, Correct_ToHappened_ChargesWhatTheEvidenceStates) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Correct("k", kHappened, {.amount = 99}), kRecorded);
  EXPECT_EQ(grant().spent, 99);
}

TEST_F(Contradiction, Correct_ToNotHappened_GivesBackAndTakesTheDoneMarkOff) {
  Mint(Open());
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  ASSERT_EQ(Correct("k", kNotHappened), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::NOT_HAPPENED);
  EXPECT_EQ(grant(), Counters{});
  EXPECT_EQ(Authorize("k2"), kDispatch) << "nothing was done, so nothing is repeated";
}

TEST_F(Contradiction, Correct_ToNotHappened_OfAContradiction) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ASSERT_EQ(Correct("k", kNotHappened), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::NOT_HAPPENED);
  EXPECT_EQ(Authorize("k"), kDispatch) << "the contradiction is taken off";
}

TEST_F(Contradiction, Correct_ToNotHappened_LeavesTheMarkWhereAnotherAttemptSucceeded) {
  Mint(Open());
  Released("a");
  ASSERT_EQ(Authorize("k", {.attempt = "b"}), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.attempt = "a"}), kRecorded);
  ASSERT_EQ(Commit("k", kSucceeded, {.attempt = "b"}), kRecorded);
  ASSERT_EQ(Correct("k", kNotHappened, {.attempt = "a"}), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
  EXPECT_EQ(Authorize("k2"), kReplay);
}

TEST_F(Contradiction, Correct_ToNotHappened_WhatWasAttachedToTheVerdictGoesWithIt) {
  Mint(Open());
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ASSERT_EQ(Correct("k", kNotHappened), kRecorded);
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_CONTRADICTED) << "the gateway insists: a person is called";
}

TEST_F(Contradiction, Correct_TakesBackOnlyWhatAVerdictMade) {
  Mint(Open());
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(Correct("k", kNotHappened), kCommitConflict) << "the gateway saw the answer";
}

TEST_F(Contradiction, Correct_LeavesOpenAttemptsToResolve) {
  Mint(Open());
  ASSERT_EQ(Authorize("k"), kDispatch);
  EXPECT_EQ(Correct("k", kHappened), kCommitConflict);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  EXPECT_EQ(Correct("k", kNotHappened), kCommitConflict);
}

TEST_F(Contradiction, Correct_MustNameTheReceiptThatStands) {
  Mint(Open());
  Released("a");
  EXPECT_EQ(Correct("k", kHappened, {.supersedes = std::string(32, 'x')}), kStaleResolution);
  const std::string released = ReceiptOf("k");
  ASSERT_EQ(Correct("k", kHappened), kRecorded);
  EXPECT_EQ(Correct("k", kNotHappened, {.supersedes = released}), kStaleResolution);
}

TEST_F(Contradiction, Correct_TheSameAgainGetsTheOriginalReceipt) {
  Mint(Open());
  Released("a");
  const std::string released = ReceiptOf("k");
  ASSERT_EQ(Correct("k", kHappened), kRecorded);
  const size_t length = ChainLength();
  EXPECT_EQ(Correct("k", kHappened, {.supersedes = released}), kRecorded);
  EXPECT_EQ(ChainLength(), length);
}

TEST_F(Contradiction, Correct_IsForOperatorsOnly) {
  Mint(Open());
  Released("a");
  for (const char* who : {"reconciler", "gateway", "auditor"}) {
    EXPECT_EQ(Correct("k", kHappened, {.who = who}), kPermissionDenied);
  }
  EXPECT_EQ(Correct("k", kHappened, {.who = "foreign operator"}), kNotFound);
}

}  // namespace
}  // namespace tally::decide::testing
