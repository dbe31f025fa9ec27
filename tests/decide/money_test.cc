#include <limits>

#include "tests/decide/fixture.h"

// Slots, holds and charges, to the ends of int64.
namespace tally::decide::testing {
namespace {

constexpr Money kMost = std::numeric_limits<Money>::max();

class Counting : public DecideTest {
 protected:
  static GrantTerms Reported() {
    GrantTerms grant = Open();
    grant.settle_reported = true;
    return grant;
  }
};

TEST_F(Counting, ABudgetIsSpentToTheLastUnit) {
  GrantTerms terms = Open();
  terms.budget = 20;
  Mint(terms);
  EXPECT_EQ(Authorize("k1", {.amount = 15}), kDispatch);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .amount = 6}), kToolBudget);
  EXPECT_EQ(Authorize("k3", {.arguments = 3, .amount = 5}), kDispatch);
  EXPECT_EQ(Authorize("k4", {.arguments = 4, .amount = 1}), kToolBudget);
  EXPECT_EQ(Authorize("k5", {.arguments = 5, .amount = 0}), kDispatch) << "what costs nothing fits";
}

TEST_F(Counting, HeldAndSpentCountAlike) {
  Mint(Open(), 20);
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  ASSERT_EQ(Authorize("k2", {.arguments = 2}), kDispatch);
  EXPECT_EQ(permit().money.held, 10);
  EXPECT_EQ(permit().money.spent, 10);
  EXPECT_EQ(Authorize("k3", {.arguments = 3, .amount = 1}), kPermitBudget);
}

TEST_F(Counting, GrantsOfAPermitShareItsBudgetAndNotTheirs) {
  PermitTerms terms;
  terms.budget = 15;
  terms.grants = {Open(), Open()};
  terms.grants[0].budget = 10;
  MintPermit(terms);
  EXPECT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .amount = 1}), kToolBudget);
  EXPECT_EQ(Authorize("k3", {.amount = 6, .grant = 2, .tool = "send"}), kPermitBudget);
  EXPECT_EQ(Authorize("k4", {.arguments = 4, .amount = 5, .grant = 2, .tool = "send"}), kDispatch);
}

TEST_F(Counting, OneCapGrantsExactlyThatMany) {
  Mint(Cap(3));
  int granted = 0;
  for (int i = 0; i < 10; ++i) {
    granted += Authorize("k" + std::to_string(i), {.arguments = 10 + i}) == kDispatch;
  }
  EXPECT_EQ(granted, 3);
}

TEST_F(Counting, WithoutSettleReported_AReportedAmountMovesNoMoney) {
  Mint(Open());
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.amount = 3}), kRecorded);
  EXPECT_EQ(grant().spent, 10);
}

TEST_F(Counting, SettleReported_ChargesFromZeroToTenTimesTheHold) {
  struct Row {
    Money reported, charged;
    bool person;
  };
  for (const Row& row : {Row{0, 0, false}, Row{7, 7, false}, Row{10, 10, false}, Row{11, 11, false},
                         Row{100, 100, false}, Row{101, 100, true}, Row{kMost, 100, true}}) {
    const int permit = Mint([] {
      GrantTerms terms = Reported();
      terms.scope = v1::INTENT_SCOPE_PERMIT;
      return terms;
    }());
    ASSERT_EQ(Authorize("k", {.permit = permit}), kDispatch);
    ASSERT_EQ(Commit("k", kSucceeded, {.amount = row.reported, .permit = permit}), kRecorded);
    EXPECT_EQ(grant(permit).spent, row.charged);
    EXPECT_EQ(!call("k", permit).attention.empty(), row.person) << row.reported;
  }
}

TEST_F(Counting, SettleReported_AboveTheHoldIsOverrunWhereALimitIsPassed) {
  GrantTerms terms = Reported();
  terms.budget = 15;
  Mint(terms, 30);
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.amount = 20}), kRecorded);
  EXPECT_EQ(grant().overrun, 5);
  EXPECT_EQ(permit().money.overrun, 0);
  EXPECT_EQ(receipt().overrun(), 5);
}

TEST_F(Counting, OnToolError_Release) {
  GrantTerms terms = Open();
  terms.charge_tool_errors = false;
  Mint(terms);
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kToolError), kRecorded);
  EXPECT_EQ(grant().slots, 1);
  EXPECT_EQ(grant().held + grant().spent, 0);
}

TEST_F(Counting, AReadNobodyAnsweredIsChargedAsAToolErrorAndALateAnswerRedoesIt) {
  GrantTerms terms = Read();
  terms.charge_tool_errors = false;
  Mint(terms, 10);
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  EXPECT_EQ(grant().spent, 0);
  ASSERT_EQ(Authorize("k2", {.arguments = 2}), kDispatch);
  ASSERT_EQ(Commit("k2", kSucceeded), kRecorded);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(grant().spent, 20);
  EXPECT_EQ(permit().money.overrun, 10) << "a late answer to a READ may go over";
  EXPECT_EQ(grant().slots, 2);
}

// ---- The ends of int64 ----

TEST_F(Counting, TheLargestAmountFitsOnce) {
  Mint(Open());
  EXPECT_EQ(Authorize("k1", {.amount = kMost}), kDispatch);
  EXPECT_EQ(grant().held, kMost);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .amount = 1}), kToolBudget) << "unlimited still ends at int64";
  EXPECT_EQ(Authorize("k3", {.arguments = 3, .amount = 0}), kDispatch);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  EXPECT_EQ(grant().spent, kMost);
  EXPECT_EQ(Authorize("k4", {.arguments = 4, .amount = kMost}), kToolBudget);
}

TEST_F(Counting, AcrossGrantsThePermitsSumEndsAtInt64Too) {
  PermitTerms terms;
  terms.grants = {Open(), Open()};
  MintPermit(terms);
  ASSERT_EQ(Authorize("k1", {.amount = kMost - 5}), kDispatch);
  EXPECT_EQ(Authorize("k2", {.amount = 6, .grant = 2, .tool = "send"}), kPermitBudget);
  EXPECT_EQ(Authorize("k3", {.arguments = 3, .amount = 5, .grant = 2, .tool = "send"}), kDispatch);
}

TEST_F(Counting, ABudgetOfTheLargestAmountIsABudget) {
  GrantTerms terms = Open();
  terms.budget = kMost;
  terms.per_call = kMost;
  Mint(terms, kMost);
  EXPECT_EQ(Authorize("k1", {.amount = kMost}), kDispatch);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .amount = kMost}), kToolBudget);
}

TEST_F(Counting, TenTimesALargeHoldDoesNotOverflow) {
  Mint(Reported());
  ASSERT_EQ(Authorize("k", {.amount = kMost / 2}), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.amount = kMost}), kRecorded);
  EXPECT_EQ(grant().spent, kMost);
}

TEST_F(Counting, AContradictionThatCannotBeCountedChargesWhatFits_AndAPersonIsCalled) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1", {.amount = kMost}), kDispatch);
  ASSERT_EQ(Commit("k1", kNotSent), kRecorded);
  ASSERT_EQ(Authorize("k2", {.arguments = 2, .amount = kMost - 3}), kDispatch);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  EXPECT_EQ(grant().held, kMost - 3);
  EXPECT_EQ(grant().spent, 3);
  EXPECT_FALSE(call("k1").attention.empty());
  ASSERT_EQ(Commit("k2", kSucceeded), kRecorded);
  EXPECT_EQ(grant().spent, kMost);
}

TEST_F(Counting, AnEvidenceAmountOfTheLargestIsBoundedToo) {
  Mint(Open());
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k", kHappened, {.amount = kMost}), kRecorded);
  EXPECT_EQ(grant().spent, 100);
}

}  // namespace
}  // namespace tally::decide::testing
