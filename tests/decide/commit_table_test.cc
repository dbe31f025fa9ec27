#include "tests/decide/fixture.h"

// What Commit says, by where the attempt stands: a test for every cell, named row_column.
namespace tally::decide::testing {
namespace {

class CommitTable : public DecideTest {
 protected:
  CommitTable() {
    GrantTerms grant = Open();
    grant.settle_reported = true;
    grant.charge_tool_errors = true;
    Mint(grant);
    GrantTerms read = Read();
    Mint(read);
  }

  // Where the attempt of "k" stands.
  void Voided() {
    ASSERT_EQ(Commit("k", kNotSent, {.attempt = "a"}), kRecorded);
    last_ = {.attempt = "a"};
  }
  void Leased() { ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch); }
  void LeaseOver() {
    Leased();
    Pass(kHour);
  }
  void Parked() {
    Leased();
    ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  }
  void Released() {
    Leased();
    ASSERT_EQ(Commit("k", kNotSent), kRecorded);
  }
  void Succeeded() {
    Leased();
    ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  }
  void Happened() {
    Parked();
    ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  }
  void Attached() {
    Happened();
    ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  }
  void ToolError() {
    Leased();
    ASSERT_EQ(Commit("k", kToolError), kRecorded);
  }
  void ReadNoAnswer() {
    ASSERT_EQ(Authorize("k", {.attempt = "a", .permit = 1}), kDispatch);
    ASSERT_EQ(Commit("k", kUncertain, {.permit = 1}), kRecorded);
    ASSERT_EQ(StateOf("k", 1), v1::TOOL_ERROR);
  }
  void NotHappened() {
    Parked();
    ASSERT_EQ(Resolve("k", kNotHappened), kRecorded);
  }

  // The answer is the receipt on which the attempt stood already, and nothing is written.
  void ExpectTheOriginalReceipt(Outcome outcome, const Say& say = {}) {
    const size_t length = ChainLength(say.permit);
    const int64_t stood_on = call("k", say.permit).attempts.back().state_seq;
    EXPECT_EQ(Commit("k", outcome, say), kRecorded);
    EXPECT_TRUE(Cites(stood_on));
    EXPECT_EQ(ChainLength(say.permit), length);
  }
  void ExpectRefused(Outcome outcome, Verdict verdict, const Say& say = {}) {
    const size_t length = ChainLength(say.permit);
    EXPECT_EQ(Commit("k", outcome, say), verdict);
    EXPECT_EQ(ChainLength(say.permit), length);
  }

  Say last_;
};

// ---- NOT_SENT ----

TEST_F(CommitTable, NotSent_Unseen_WritesATombstone) {
  EXPECT_EQ(Commit("k", kNotSent, {.attempt = "a"}), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::ATTEMPT_VOIDED);
  EXPECT_EQ(answer().attempt_state, v1::VOIDED);
  EXPECT_FALSE(Known("k")) << "a tombstone makes no key";
  EXPECT_EQ(Authorize("k", {.attempt = "a"}), kAttemptUsed) << "that attempt_id can never be granted";
  EXPECT_EQ(Authorize("k"), kDispatch) << "the key is free for another attempt";
}

TEST_F(CommitTable, NotSent_Unseen_AfterACrash) {
  EXPECT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  Crash();  // the Authorize was in doubt, and is lost
  EXPECT_EQ(Commit("k", kNotSent, {.attempt = "a"}), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::ATTEMPT_VOIDED);
}

TEST_F(CommitTable, NotSent_Voided_GetsTheSameTombstone) {
  Voided();
  const int64_t voided = answer().receipts.at(0).sequence;
  const size_t length = ChainLength();
  EXPECT_EQ(Commit("k", kNotSent, last_), kRecorded);
  EXPECT_TRUE(Cites(voided));
  EXPECT_EQ(ChainLength(), length);
}

TEST_F(CommitTable, NotSent_Leased_Releases) {
  Leased();
  EXPECT_EQ(Commit("k", kNotSent), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_RELEASED);
  EXPECT_EQ(StateOf("k"), v1::RELEASED);
  EXPECT_EQ(grant(), Counters{}) << "hold and slot are given back";
  EXPECT_EQ(Authorize("k"), kDispatch) << "the same key may try again";
}

TEST_F(CommitTable, NotSent_Parked_IsTooLateAndNotedOnce) {
  Parked();
  const int64_t uncertain = call("k").attempts[0].state_seq;
  ExpectRefused(kNotSent, kLeaseOver);
  EXPECT_TRUE(Cites(uncertain));
  EXPECT_TRUE(call("k").attempts[0].late_not_sent);
  ExpectRefused(kNotSent, kLeaseOver);
  EXPECT_FALSE(answer().wrote) << "it is noted once";
  EXPECT_EQ(grant().held, 10) << "hold and slot are kept";
  EXPECT_EQ(grant().slots, 1);
}

TEST_F(CommitTable, NotSent_LeaseOver_ParksFirst) {
  LeaseOver();
  EXPECT_EQ(Commit("k", kNotSent), kLeaseOver);
  EXPECT_EQ(receipt().kind(), v1::CALL_UNCERTAIN);
  EXPECT_EQ(receipt().code(), "LEASE_OVER");
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
}

TEST_F(CommitTable, NotSent_Released_GetsTheOriginalReceipt) {
  Released();
  ExpectTheOriginalReceipt(kNotSent);
}

TEST_F(CommitTable, NotSent_Succeeded_Conflicts) {
  Succeeded();
  ExpectRefused(kNotSent, kCommitConflict);
}

TEST_F(CommitTable, NotSent_Happened_Conflicts) {
  Happened();
  ExpectRefused(kNotSent, kCommitConflict);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
}

TEST_F(CommitTable, NotSent_ToolError_Conflicts) {
  ToolError();
  ExpectRefused(kNotSent, kCommitConflict);
}

TEST_F(CommitTable, NotSent_ReadNoAnswer_IsTooLate) {
  ReadNoAnswer();
  ExpectRefused(kNotSent, kLeaseOver, {.permit = 1});
}

TEST_F(CommitTable, NotSent_NotHappened_Conflicts) {
  NotHappened();
  ExpectRefused(kNotSent, kCommitConflict);
}

// ---- UNCERTAIN ----

TEST_F(CommitTable, Uncertain_Unseen_IsNotFound) { ExpectRefused(kUncertain, kNotFound, {.attempt = "a"}); }

TEST_F(CommitTable, Uncertain_Voided_Conflicts) {
  Voided();
  ExpectRefused(kUncertain, kCommitConflict, last_);
}

TEST_F(CommitTable, Uncertain_Leased_Parks) {
  Leased();
  EXPECT_EQ(Commit("k", kUncertain), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_UNCERTAIN);
  EXPECT_EQ(receipt().code(), "NO_ANSWER");
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  EXPECT_EQ(grant().held, 10);
  EXPECT_EQ(grant().slots, 1);
}

TEST_F(CommitTable, Uncertain_Parked_GetsTheOriginalReceiptAndAddsWhatIsNew) {
  Parked();
  ExpectTheOriginalReceipt(kUncertain, {.sent_at = now() - kSecond, .partial = true});
  EXPECT_TRUE(answer().keep_partial);
  EXPECT_EQ(call("k").attempts[0].sent_at, now() - kSecond);
  ExpectTheOriginalReceipt(kUncertain, {.sent_at = now()});
  EXPECT_EQ(call("k").attempts[0].sent_at, now() - kSecond) << "what was said first stands";
}

TEST_F(CommitTable, Uncertain_LeaseOver_ParksWithTheLeasesReceipt) {
  LeaseOver();
  EXPECT_EQ(Commit("k", kUncertain), kRecorded);
  EXPECT_EQ(receipt().code(), "LEASE_OVER");
}

TEST_F(CommitTable, Uncertain_Released_GetsTheEndItHad) {
  Released();
  ExpectTheOriginalReceipt(kUncertain);
  EXPECT_EQ(StateOf("k"), v1::RELEASED);
}

TEST_F(CommitTable, Uncertain_Succeeded_GetsTheEndItHad) {
  Succeeded();
  ExpectTheOriginalReceipt(kUncertain);
}

TEST_F(CommitTable, Uncertain_Happened_GetsTheEndItHad) {
  Happened();
  ExpectTheOriginalReceipt(kUncertain);
}

TEST_F(CommitTable, Uncertain_ToolError_GetsTheEndItHad) {
  ToolError();
  ExpectTheOriginalReceipt(kUncertain);
}

TEST_F(CommitTable, Uncertain_ReadNoAnswer_GetsTheEndItHad) {
  ReadNoAnswer();
  ExpectTheOriginalReceipt(kUncertain, {.permit = 1});
}

TEST_F(CommitTable, Uncertain_NotHappened_GetsTheEndItHad) {
  NotHappened();
  ExpectTheOriginalReceipt(kUncertain);
  EXPECT_EQ(StateOf("k"), v1::NOT_HAPPENED);
}

// ---- SUCCEEDED ----

TEST_F(CommitTable, Succeeded_Unseen_IsNotFound) { ExpectRefused(kSucceeded, kNotFound, {.attempt = "a"}); }

TEST_F(CommitTable, Succeeded_Voided_Conflicts) {
  Voided();
  ExpectRefused(kSucceeded, kCommitConflict, last_);
}

TEST_F(CommitTable, Succeeded_Leased_Settles) {
  Leased();
  EXPECT_EQ(Commit("k", kSucceeded, {.amount = 4}), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_SUCCEEDED);
  EXPECT_EQ(grant().held, 0);
  EXPECT_EQ(grant().spent, 4);
  EXPECT_EQ(grant().slots, 1);
  EXPECT_TRUE(answer().keep_result);
}

TEST_F(CommitTable, Succeeded_Parked_IsAsInTime) {
  Parked();
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_SUCCEEDED);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
  EXPECT_EQ(grant().spent, 10);
}

TEST_F(CommitTable, Succeeded_LeaseOver_ParksAndSucceeds) {
  LeaseOver();
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(Chain(), (std::vector{v1::PERMIT_MINTED, v1::CALL_ALLOWED, v1::CALL_UNCERTAIN, v1::CALL_SUCCEEDED}));
}

TEST_F(CommitTable, Succeeded_Released_Contradicts) {
  Released();
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_CONTRADICTED);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
  EXPECT_EQ(grant().slots, 1) << "the slot is retaken";
  EXPECT_EQ(grant().spent, 10) << "and the cost";
  EXPECT_EQ(call("k").attention, "contradicted");
}

TEST_F(CommitTable, Succeeded_Succeeded_SameContent_GetsTheOriginalReceipt) {
  Succeeded();
  ExpectTheOriginalReceipt(kSucceeded);
}

TEST_F(CommitTable, Succeeded_Succeeded_MayAddUndelivered) {
  Succeeded();
  ExpectTheOriginalReceipt(kSucceeded, {.undelivered = true});
  EXPECT_TRUE(call("k").attempts[0].undelivered);
}

TEST_F(CommitTable, Succeeded_Succeeded_OtherContent_Conflicts) {
  Succeeded();
  ExpectRefused(kSucceeded, kCommitConflict, {.result = 2});
  ExpectRefused(kSucceeded, kCommitConflict, {.amount = 3});
}

TEST_F(CommitTable, Succeeded_Happened_AttachesTheResultOnce) {
  Happened();
  const Counters before = grant();
  EXPECT_EQ(Commit("k", kSucceeded, {.amount = 99}), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_SUCCEEDED);
  EXPECT_TRUE(answer().keep_result);
  EXPECT_EQ(grant(), before) << "no money moves";
  const size_t length = ChainLength();
  EXPECT_EQ(Commit("k", kSucceeded, {.amount = 99}), kRecorded);
  EXPECT_TRUE(Cites(static_cast<int64_t>(length)));
  EXPECT_EQ(ChainLength(), length) << "the same again gets the original receipt";
  ExpectRefused(kSucceeded, kCommitConflict, {.result = 2});
}

TEST_F(CommitTable, Succeeded_ToolError_Contradicts) {
  ToolError();
  EXPECT_EQ(Commit("k", kSucceeded, {.amount = 25}), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_CONTRADICTED);
  EXPECT_EQ(grant().slots, 1) << "the slot was kept";
  EXPECT_EQ(grant().spent, 25) << "the charge becomes what success would have charged";
}

TEST_F(CommitTable, Succeeded_ReadNoAnswer_ReplacesIt) {
  ReadNoAnswer();
  EXPECT_EQ(Commit("k", kSucceeded, {.permit = 1}), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_SUCCEEDED);
  EXPECT_EQ(StateOf("k", 1), v1::SUCCEEDED);
  EXPECT_EQ(call("k", 1).attention, "") << "a late answer to a READ contradicts nobody";
}

TEST_F(CommitTable, Succeeded_NotHappened_Contradicts) {
  NotHappened();
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_CONTRADICTED);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
  EXPECT_EQ(grant().spent, 10);
}

// ---- TOOL_ERROR ----

TEST_F(CommitTable, ToolError_Unseen_IsNotFound) { ExpectRefused(kToolError, kNotFound, {.attempt = "a"}); }

TEST_F(CommitTable, ToolError_Voided_Conflicts) {
  Voided();
  ExpectRefused(kToolError, kCommitConflict, last_);
}

TEST_F(CommitTable, ToolError_Leased_KeepsSlotAndCharge) {
  Leased();
  EXPECT_EQ(Commit("k", kToolError), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_TOOL_ERROR);
  EXPECT_EQ(StateOf("k"), v1::TOOL_ERROR);
  EXPECT_EQ(grant().slots, 1);
  EXPECT_EQ(grant().spent, 10);
}

TEST_F(CommitTable, ToolError_Leased_NoEffect_ReleasesTheHoldAndKeepsTheSlot) {
  Leased();
  EXPECT_EQ(Commit("k", kToolError, {.no_effect = true}), kRecorded);
  EXPECT_EQ(grant().slots, 1);
  EXPECT_EQ(grant().held + grant().spent, 0);
}

TEST_F(CommitTable, ToolError_Parked_IsAsInTime) {
  Parked();
  EXPECT_EQ(Commit("k", kToolError), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::TOOL_ERROR);
}

TEST_F(CommitTable, ToolError_LeaseOver_ParksAndEnds) {
  LeaseOver();
  EXPECT_EQ(Commit("k", kToolError), kRecorded);
  EXPECT_EQ(Chain(), (std::vector{v1::PERMIT_MINTED, v1::CALL_ALLOWED, v1::CALL_UNCERTAIN, v1::CALL_TOOL_ERROR}));
}

TEST_F(CommitTable, ToolError_Released_Conflicts) {
  Released();
  ExpectRefused(kToolError, kCommitConflict);
}

TEST_F(CommitTable, ToolError_Succeeded_Conflicts) {
  Succeeded();
  ExpectRefused(kToolError, kCommitConflict);
}

TEST_F(CommitTable, ToolError_Contradicted_Conflicts) {
  Released();
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ExpectRefused(kToolError, kCommitConflict);
}

TEST_F(CommitTable, ToolError_Happened_IsAttachedAndAPersonIsCalled) {
  Happened();
  EXPECT_EQ(Commit("k", kToolError), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_TOOL_ERROR);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED) << "it changes no state";
  EXPECT_EQ(call("k").attention, "error_after_happened");
  EXPECT_EQ(grant().spent, 10);
  ExpectRefused(kSucceeded, kCommitConflict);
}

TEST_F(CommitTable, ToolError_Attached_Conflicts) {
  Attached();
  ExpectRefused(kToolError, kCommitConflict);
}

TEST_F(CommitTable, ToolError_ToolError_SameContent_GetsTheOriginalReceipt) {
  ToolError();
  ExpectTheOriginalReceipt(kToolError);
}

TEST_F(CommitTable, ToolError_ToolError_OtherContent_Conflicts) {
  ToolError();
  ExpectRefused(kToolError, kCommitConflict, {.result = 2});
  ExpectRefused(kToolError, kCommitConflict, {.no_effect = true});
}

TEST_F(CommitTable, ToolError_ReadNoAnswer_ReplacesIt) {
  ReadNoAnswer();
  EXPECT_EQ(Commit("k", kToolError, {.permit = 1}), kRecorded);
  EXPECT_EQ(receipt().code(), "");
  EXPECT_FALSE(call("k", 1).attempts[0].read_no_answer);
}

TEST_F(CommitTable, ToolError_NotHappened_IsAttached) {
  NotHappened();
  EXPECT_EQ(Commit("k", kToolError), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_TOOL_ERROR);
  EXPECT_EQ(StateOf("k"), v1::NOT_HAPPENED);
  EXPECT_EQ(call("k").attention, "") << "an error fits what was found";
  EXPECT_EQ(Authorize("k"), kDispatch) << "the same key may still try again";
}

// ---- Around the table ----

TEST_F(CommitTable, TheCallMayBeNamedByItsId) {
  Leased();
  EXPECT_EQ(Commit("k", kSucceeded, {.by_id = true}), kRecorded);
  EXPECT_EQ(Commit("unknown", kNotSent, {.attempt = "b", .by_id = true}), kNotFound);
}

TEST_F(CommitTable, AnAttemptOfAnotherCallIsNotFound) {
  Leased();
  ASSERT_EQ(Authorize("other", {.attempt = "b", .arguments = 2}), kDispatch);
  for (Outcome outcome : {kNotSent, kUncertain, kSucceeded, kToolError}) {
    ExpectRefused(outcome, kNotFound, {.attempt = "b"});
  }
}

TEST_F(CommitTable, AnotherGatewaysAttemptLooksMissing) {
  Leased();
  ExpectRefused(kSucceeded, kNotFound, {.who = "other gateway"});
}

TEST_F(CommitTable, AnotherTenantsCallLooksMissing) {
  Leased();
  ExpectRefused(kSucceeded, kNotFound, {.who = "foreign gateway", .by_id = true});
  ExpectRefused(kNotSent, kNotFound, {.attempt = "b", .who = "foreign gateway"});
}

TEST_F(CommitTable, OnlyGatewaysCommit) {
  Leased();
  for (const char* who : {"operator", "reconciler", "auditor"}) {
    ExpectRefused(kNotSent, kPermissionDenied, {.who = who});
  }
}

TEST_F(CommitTable, ADisabledGatewayMayCommitWhatIsLeased) {
  Leased();
  Disable("gateway");
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
}

TEST_F(CommitTable, ADisabledGatewayMayNotCommitWhatIsParkedOrUnseen) {
  Parked();
  Disable("gateway");
  ExpectRefused(kSucceeded, kPrincipalDisabled);
  ExpectRefused(kNotSent, kPrincipalDisabled, {.attempt = "b"});
}

TEST_F(CommitTable, AGatewayDisabledHardMayCommitNothing) {
  Leased();
  Disable("gateway", true);
  ExpectRefused(kSucceeded, kPrincipalDisabled);
}

TEST_F(CommitTable, ATombstoneOfAnotherPermitIsNotFound) {
  Voided();
  EXPECT_EQ(Commit("k", kNotSent, {.attempt = "a", .permit = 1}), kNotFound);
}

}  // namespace
}  // namespace tally::decide::testing
