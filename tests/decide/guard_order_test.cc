#include "tests/decide/fixture.h"

// The guards of Authorize stand in one fixed order: whoever fails two of them is told the earlier.
namespace tally::decide::testing {
namespace {

class GuardOrder : public DecideTest {
 protected:
  GuardOrder() { terms_.grants.push_back(Open()); }
  GrantTerms& terms() { return terms_.grants[0]; }
  void Mint() { MintPermit(terms_); }
  // "open" stands for the same as "k" and is under way.
  void IntentIsOpen() { ASSERT_EQ(Authorize("open", {.repeat = true}), kDispatch); }
  void IntentIsDone() {
    ASSERT_EQ(Authorize("done"), kDispatch);
    ASSERT_EQ(Commit("done", kSucceeded), kRecorded);
  }

  PermitTerms terms_;
};

TEST_F(GuardOrder, RevokedBeforeClosed) {
  Mint();
  ASSERT_EQ(Authorize("open"), kDispatch);
  ASSERT_EQ(Revoke(), kRecorded);
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_EQ(Authorize("k", {.arguments = 2}), kPermitRevoked);
}

TEST_F(GuardOrder, ClosedBeforeNotYetValid) {
  terms_.not_before = now() + kHour;
  Mint();
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_EQ(Authorize("k"), kPermitClosed);
}

TEST_F(GuardOrder, NotYetValidBeforeExpired) {
  terms_.not_before = now() + kHour;
  terms_.expires_at = now();
  Mint();
  EXPECT_EQ(Authorize("k"), kPermitNotYetValid);
}

TEST_F(GuardOrder, ExpiredBeforeToolNotGranted) {
  terms_.expires_at = now();
  Mint();
  EXPECT_EQ(Authorize("k", {.grant = 0}), kPermitExpired);
}

TEST_F(GuardOrder, ToolNotGrantedBeforeUnenforceable) {
  Mint();
  EXPECT_EQ(Authorize("k", {.grant = 0, .check = Prepared::Check::kUnenforceable}), kToolNotGranted);
}

TEST_F(GuardOrder, UnenforceableBeforeAttemptsExhausted) {
  terms().max_attempts = 0;
  Mint();
  EXPECT_EQ(Authorize("k", {.check = Prepared::Check::kUnenforceable}), kConstraintUnenforceable);
}

TEST_F(GuardOrder, ViolatedBeforeAttemptsExhausted) {
  terms().max_attempts = 0;
  Mint();
  EXPECT_EQ(Authorize("k", {.check = Prepared::Check::kViolated}), kConstraintViolated);
  EXPECT_EQ(answer().detail, "amount: over the maximum") << "it says which constraint";
}

TEST_F(GuardOrder, AttemptsExhaustedBeforeAmountOverCallLimit) {
  terms().max_attempts = 0;
  terms().per_call = 1;
  Mint();
  EXPECT_EQ(Authorize("k"), kAttemptsExhausted);
}

TEST_F(GuardOrder, AmountOverCallLimitBeforeIntentPending) {
  terms().per_call = 10;
  Mint();
  IntentIsOpen();
  EXPECT_EQ(Authorize("k", {.amount = 11}), kAmountOverCallLimit);
}

TEST_F(GuardOrder, IntentPendingBeforeDone) {
  Mint();
  IntentIsDone();
  IntentIsOpen();
  EXPECT_EQ(Authorize("k"), kIntentPending);
}

TEST_F(GuardOrder, ExplicitIntentPendingBeforeDerivedDone) {
  Mint();
  IntentIsDone();
  ASSERT_EQ(Authorize("other", {.arguments = 2, .intent = 7}), kDispatch);
  EXPECT_EQ(Authorize("k", {.intent = 7}), kIntentPending);
}

TEST_F(GuardOrder, DerivedDoneBeforeExplicitDone) {
  Mint();
  IntentIsDone();
  ASSERT_EQ(Authorize("other", {.arguments = 2, .intent = 7}), kDispatch);
  ASSERT_EQ(Commit("other", kSucceeded), kRecorded);
  EXPECT_EQ(Authorize("k", {.intent = 7}), kReplay) << "of the call with the derived intent";
  EXPECT_EQ(answer().repeat_of, call("done").call_id);
}

TEST_F(GuardOrder, DoneBeforeOpenCalls) {
  Mint();
  IntentIsDone();
  CountersAreSetByHand();
  permit().open_calls = kOpenCallsMax;
  EXPECT_EQ(Authorize("k"), kReplay);
}

TEST_F(GuardOrder, OpenCallsBeforeCallCap) {
  terms().cap = 0;
  Mint();
  CountersAreSetByHand();
  permit().open_calls = kOpenCallsMax;
  EXPECT_EQ(Authorize("k"), kOpenCalls);
}

TEST_F(GuardOrder, CallCapBeforeToolBudget) {
  terms().cap = 0;
  terms().budget = 0;
  Mint();
  EXPECT_EQ(Authorize("k"), kCallCap);
}

TEST_F(GuardOrder, ToolBudgetBeforePermitBudget) {
  terms().budget = 9;
  terms_.budget = 9;
  Mint();
  EXPECT_EQ(Authorize("k"), kToolBudget);
}

TEST_F(GuardOrder, PermitBudgetIsTheLast) {
  terms_.budget = 9;
  Mint();
  EXPECT_EQ(Authorize("k"), kPermitBudget);
}

TEST_F(GuardOrder, RefusalsMoveNoCounterButTheirOwn) {
  terms_.budget = 9;
  Mint();
  ASSERT_EQ(Authorize("k"), kPermitBudget);
  EXPECT_EQ(grant(), Counters{});
  EXPECT_EQ(permit().money, Counters{});
  EXPECT_EQ(permit().refusals, 1);
  EXPECT_EQ(permit().calls, 0);
  EXPECT_EQ(permit().attempts, 0);
  EXPECT_EQ(receipt().kind(), v1::CALL_DENIED);
}

TEST_F(GuardOrder, TheVerdictsStandInThatOrder) {
  const Verdict order[] = {kPermitRevoked,
                           kPermitClosed,
                           kPermitNotYetValid,
                           kPermitExpired,
                           kToolNotGranted,
                           kConstraintUnenforceable,
                           kConstraintViolated,
                           kAttemptsExhausted,
                           kAmountOverCallLimit,
                           kIntentPending,
                           kAlreadyDone,
                           kOpenCalls,
                           kCallCap,
                           kToolBudget,
                           kPermitBudget};
  for (size_t i = 1; i < std::size(order); ++i) {
    EXPECT_EQ(static_cast<int>(order[i]), static_cast<int>(order[i - 1]) + 1) << Info(order[i]).code;
  }
}

TEST_F(GuardOrder, FixedAndPassingReasonsAreAsTheContractSays) {
  for (Verdict fixed : {kToolNotGranted, kConstraintViolated, kConstraintUnenforceable, kAmountOverCallLimit,
                        kAttemptsExhausted, kPermitExpired, kPermitRevoked, kPermitClosed}) {
    EXPECT_TRUE(Info(fixed).fixed) << Info(fixed).code;
  }
  for (Verdict passing :
       {kPermitNotYetValid, kOpenCalls, kIntentPending, kAlreadyDone, kCallCap, kToolBudget, kPermitBudget}) {
    EXPECT_FALSE(Info(passing).fixed) << Info(passing).code;
  }
}

}  // namespace
}  // namespace tally::decide::testing
