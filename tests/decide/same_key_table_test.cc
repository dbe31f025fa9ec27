#include "tests/decide/fixture.h"

// What Authorize answers to a key that has been seen, row by row.
namespace tally::decide::testing {
namespace {

class SameKey : public DecideTest {
 protected:
  SameKey() { Mint(Open()); }

  // Nothing is written and nothing is granted.
  void ExpectNothingNew(Verdict verdict, const Ask& ask = {}, const std::string& key = "k") {
    const size_t length = ChainLength();
    const Counters before = grant();
    EXPECT_EQ(Authorize(key, ask), verdict);
    EXPECT_EQ(ChainLength(), length);
    EXPECT_EQ(grant(), before);
  }
};

// ---- attempt_id ended, tombstoned or used elsewhere ----

TEST_F(SameKey, AttemptThatWasReleased_IsUsed_AndItsEndIsTold) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Commit("k", kNotSent), kRecorded);
  ExpectNothingNew(kAttemptUsed, {.attempt = "a"});
  EXPECT_EQ(answer().attempt_state, v1::RELEASED);
}

TEST_F(SameKey, AttemptThatSucceeded_IsUsed_EvenThoughTheKeyWouldReplay) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ExpectNothingNew(kAttemptUsed, {.attempt = "a"});
  EXPECT_EQ(answer().attempt_state, v1::SUCCEEDED);
}

TEST_F(SameKey, AttemptThatWasVoided_IsUsed) {
  ASSERT_EQ(Commit("k", kNotSent, {.attempt = "a"}), kRecorded);
  ExpectNothingNew(kAttemptUsed, {.attempt = "a"});
}

TEST_F(SameKey, AttemptOfAnotherKey_IsUsed_AndNothingIsToldOfIt) {
  ASSERT_EQ(Authorize("other", {.attempt = "a", .arguments = 2}), kDispatch);
  ExpectNothingNew(kAttemptUsed, {.attempt = "a"});
  EXPECT_FALSE(answer().call_id.has_value());
}

TEST_F(SameKey, AttemptOfAnotherPermit_IsUsed) {
  const int second = Mint(Open());
  ASSERT_EQ(Authorize("k", {.attempt = "a", .permit = second}), kDispatch);
  ExpectNothingNew(kAttemptUsed, {.attempt = "a", .arguments = 2});
}

TEST_F(SameKey, AnAttemptThatIsParkedHasNotEnded) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ExpectNothingNew(kStillPending, {.attempt = "a"});
}

TEST_F(SameKey, ARefusalLeavesTheAttemptUnused) {
  ASSERT_EQ(Authorize("k", {.attempt = "a", .grant = 0}), kToolNotGranted);
  EXPECT_EQ(Authorize("other", {.attempt = "a", .arguments = 2}), kDispatch);
}

// ---- none ----

TEST_F(SameKey, NoRecord_Decides) {
  EXPECT_EQ(Authorize("k"), kDispatch);
  EXPECT_EQ(answer().attempt_number, 1);
  EXPECT_EQ(receipt().kind(), v1::CALL_ALLOWED);
}

TEST_F(SameKey, NoRecord_AfterACrash_Decides) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  Crash();
  EXPECT_EQ(Authorize("k", {.attempt = "a"}), kDispatch) << "asked again after a lost reply: the same grant";
  EXPECT_EQ(grant().slots, 1);
}

TEST_F(SameKey, TheScopeOfAKeyIsThePermit) {
  const int second = Mint(Open());
  ASSERT_EQ(Authorize("k"), kDispatch);
  EXPECT_EQ(Authorize("k", {.arguments = 2, .permit = second}), kDispatch);
}

// ---- other fingerprint ----

TEST_F(SameKey, OtherFingerprint_IsKeyReused_AndSaysWhatDiffers) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ExpectNothingNew(kKeyReused, {.arguments = 2});
  EXPECT_EQ(answer().detail, "differs in: arguments");
  ExpectNothingNew(kKeyReused, {.tool = "send"});
  EXPECT_EQ(answer().detail, "differs in: tool");
  ExpectNothingNew(kKeyReused, {.explicit_amount = 3});
  EXPECT_EQ(answer().detail, "differs in: amount");
  ExpectNothingNew(kKeyReused, {.intent = 7});
  EXPECT_EQ(answer().detail, "differs in: intent");
}

TEST_F(SameKey, OtherFingerprint_OfAKeyThatWasOnlyRefused_IsKeyReused) {
  ASSERT_EQ(Authorize("k", {.grant = 0}), kToolNotGranted);
  ExpectNothingNew(kKeyReused, {.arguments = 2});
}

// ---- AUTHORIZED ----

TEST_F(SameKey, SameAttempt_InTime_GetsTheOriginalAnswer) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  const Time lease_end = answer().lease_end;
  Pass(9 * kSecond);
  ExpectNothingNew(kDispatch, {.attempt = "a"});
  EXPECT_EQ(answer().attempt_number, 1);
  EXPECT_EQ(answer().lease_end, lease_end);
  EXPECT_TRUE(Cites(2));
}

TEST_F(SameKey, SameAttempt_SendWindowOver_IsPending) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  Pass(10 * kSecond);
  ExpectNothingNew(kSendWindowOver, {.attempt = "a"});
}

TEST_F(SameKey, SameAttempt_SendWindowIsNotMovedByExtend) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Extend("k", kHour), kRecorded);
  Pass(10 * kSecond);
  ExpectNothingNew(kSendWindowOver, {.attempt = "a"});
}

TEST_F(SameKey, SameAttempt_PermitRevoked_IsPending) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Revoke(), kRecorded);
  ExpectNothingNew(kPendingRevoked, {.attempt = "a"});
}

TEST_F(SameKey, SameAttempt_PermitClosing_IsPending) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Close(), kRecorded);
  ExpectNothingNew(kPendingClosed, {.attempt = "a"});
}

TEST_F(SameKey, SameAttempt_PermitExpired_IsPending) {
  PermitTerms terms;
  terms.grants.push_back(Open());
  terms.expires_at = now() + 5 * kSecond;
  const int brief = MintPermit(terms);
  ASSERT_EQ(Authorize("k", {.attempt = "a", .permit = brief}), kDispatch);
  Pass(5 * kSecond);
  EXPECT_EQ(Authorize("k", {.attempt = "a", .permit = brief}), kPendingExpired);
}

TEST_F(SameKey, SameAttempt_CallContradicted_IsPending) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Commit("k", kNotSent), kRecorded);
  ASSERT_EQ(Authorize("k", {.attempt = "b"}), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.attempt = "a"}), kRecorded);
  ExpectNothingNew(kPendingContradicted, {.attempt = "b"});
}

TEST_F(SameKey, SameAttempt_OfAnotherPrincipal_GetsNoSecondGoAhead) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ExpectNothingNew(kStillAuthorized, {.attempt = "a", .who = "other gateway"});
}

TEST_F(SameKey, OtherAttempt_LeaseRunning_IsPending) {
  ASSERT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  ExpectNothingNew(kStillAuthorized, {.attempt = "b"});
  EXPECT_EQ(Info(answer().verdict).disposition, v1::PENDING);
}

// ---- SUCCEEDED or TOOL_ERROR ----

TEST_F(SameKey, Succeeded_ReplaysResultAndReceipts) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ExpectNothingNew(kReplay);
  EXPECT_EQ(answer().result_of, call("k").call_id);
  EXPECT_TRUE(Cites(2) && Cites(3)) << "CALL_ALLOWED and CALL_SUCCEEDED, as they were";
}

TEST_F(SameKey, Succeeded_WithoutAResult_ReplaysWithoutOne) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded, {.result = 0}), kRecorded);
  ExpectNothingNew(kReplay);
  EXPECT_FALSE(answer().result_of.has_value());
}

TEST_F(SameKey, Succeeded_ReplaysOnRevokedExpiredAndClosedPermits) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ASSERT_EQ(Revoke(), kRecorded);
  ExpectNothingNew(kReplay);
  ASSERT_EQ(Close(), kRecorded);
  ExpectNothingNew(kReplay);
  Pass(400 * kDay);
  ExpectNothingNew(kReplay);
}

TEST_F(SameKey, Happened_Replays) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  ExpectNothingNew(kReplay);
  EXPECT_FALSE(answer().result_of.has_value()) << "there is no body left to give";
}

TEST_F(SameKey, ToolError_Replays) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kToolError), kRecorded);
  ExpectNothingNew(kReplay);
  EXPECT_EQ(answer().state, v1::TOOL_ERROR);
  EXPECT_EQ(answer().result_of, call("k").call_id);
}

TEST_F(SameKey, ReadNoAnswer_ReplaysThatNobodyAnswered) {
  const int reads = Mint(Read());
  ASSERT_EQ(Authorize("k", {.permit = reads}), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain, {.permit = reads}), kRecorded);
  EXPECT_EQ(Authorize("k", {.permit = reads}), kReadNoAnswer);
  EXPECT_EQ(Info(answer().verdict).disposition, v1::REPLAY);
}

// ---- UNCERTAIN, or AUTHORIZED past its lease ----

TEST_F(SameKey, Parked_IsPendingWithTheUncertainReceipt) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ExpectNothingNew(kStillPending);
  EXPECT_TRUE(Cites(3));
}

TEST_F(SameKey, PastItsLease_IsParkedAndPending) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  Pass(120 * kSecond);
  EXPECT_EQ(Authorize("k"), kStillPending);
  EXPECT_TRUE(answer().wrote);
  EXPECT_TRUE(Cites(3));
  EXPECT_EQ(receipt().kind(), v1::CALL_UNCERTAIN);
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  EXPECT_EQ(grant().slots, 1) << "a dead gateway is an unknown outcome, never a free slot";
}

TEST_F(SameKey, OneMicrosecondBeforeItsLeaseEnds_ItIsStillAuthorized) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  Pass(120 * kSecond - 1);
  ExpectNothingNew(kStillAuthorized);
}

TEST_F(SameKey, PastItsLease_ACrashLosesOnlyTheNoteOfIt) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  Pass(kHour);
  ASSERT_EQ(Authorize("k"), kStillPending);
  Crash();
  EXPECT_EQ(Authorize("k"), kStillPending);
}

TEST_F(SameKey, AHoldNeverExpiresByTheClock) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  Pass(300 * kDay);
  ExpectNothingNew(kStillPending);
  EXPECT_EQ(grant().held, 10);
}

// ---- RELEASED or NOT_HAPPENED ----

TEST_F(SameKey, Released_DecidesAgain) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kNotSent), kRecorded);
  EXPECT_EQ(Authorize("k"), kDispatch);
  EXPECT_EQ(answer().attempt_number, 2);
}

TEST_F(SameKey, NotHappened_DecidesAgain) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k", kNotHappened), kRecorded);
  EXPECT_EQ(Authorize("k"), kDispatch);
  EXPECT_EQ(answer().attempt_number, 2);
}

TEST_F(SameKey, Released_ARefusalLeavesTheEarlierEndAsItIs) {
  const int capped = Mint(Cap(1));
  ASSERT_EQ(Authorize("k", {.permit = capped}), kDispatch);
  ASSERT_EQ(Commit("k", kNotSent, {.permit = capped}), kRecorded);
  ASSERT_EQ(Authorize("other", {.arguments = 2, .permit = capped}), kDispatch);
  EXPECT_EQ(Authorize("k", {.permit = capped}), kCallCap);
  EXPECT_EQ(StateOf("k", capped), v1::RELEASED);
  ASSERT_EQ(Commit("other", kNotSent, {.permit = capped}), kRecorded);
  EXPECT_EQ(Authorize("k", {.permit = capped}), kDispatch) << "a passing reason passes";
  EXPECT_EQ(call("k", capped).refusal, "") << "a grant clears the last refusal";
}

TEST_F(SameKey, Released_AttemptsExhausted_StaysSo) {
  GrantTerms once = Open();
  once.max_attempts = 1;
  const int permit = Mint(once);
  ASSERT_EQ(Authorize("k", {.permit = permit}), kDispatch);
  ASSERT_EQ(Commit("k", kNotSent, {.permit = permit}), kRecorded);
  EXPECT_EQ(Authorize("k", {.permit = permit}), kAttemptsExhausted);
  const size_t length = ChainLength(permit);
  EXPECT_EQ(Authorize("k", {.permit = permit}), kAttemptsExhausted);
  EXPECT_EQ(ChainLength(permit), length);
}

// ---- bound to another call ----

TEST_F(SameKey, Bound_IsAsThatCallsOwnKey) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ASSERT_EQ(Authorize("again"), kReplay);
  EXPECT_EQ(receipt().kind(), v1::CALL_REPEATED);
  Pass(30 * kDay);  // long past the window
  ExpectNothingNew(kReplay, {}, "again");
  EXPECT_EQ(answer().repeat_of, call("k").call_id);
  EXPECT_EQ(answer().call_id, call("k").call_id);
  ExpectNothingNew(kReplay, {.repeat = true}, "again");
}

TEST_F(SameKey, Bound_OtherFingerprintThanItsOwn_IsKeyReused) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ASSERT_EQ(Authorize("again", {.noise = 1}), kReplay);
  ExpectNothingNew(kKeyReused, {.noise = 0}, "again");
  ExpectNothingNew(kReplay, {.noise = 1}, "again");
}

// ---- refused ----

TEST_F(SameKey, RefusedForAFixedReason_GetsThatRefusalAgain) {
  struct Row {
    const char* key;
    Ask ask;
    Verdict verdict;
  };
  const Row rows[] = {
      {"k1", {.grant = 0}, kToolNotGranted},
      {"k2", {.check = Prepared::Check::kViolated}, kConstraintViolated},
      {"k3", {.check = Prepared::Check::kUnenforceable}, kConstraintUnenforceable},
  };
  for (const Row& row : rows) {
    ASSERT_EQ(Authorize(row.key, row.ask), row.verdict);
    const int64_t denied = answer().receipts.at(0).sequence;
    ExpectNothingNew(row.verdict, row.ask, row.key);
    EXPECT_TRUE(Cites(denied));
  }
}

TEST_F(SameKey, RefusedForAFixedReason_StaysRefusedWhenTheReasonIsOther) {
  ASSERT_EQ(Authorize("k", {.grant = 0}), kToolNotGranted);
  const int64_t denied = answer().receipts.at(0).sequence;
  ASSERT_EQ(Revoke(), kRecorded);
  ExpectNothingNew(kToolNotGranted, {.grant = 0});
  EXPECT_TRUE(Cites(denied));
}

TEST_F(SameKey, RefusedByAClosingPermit_KeepsItsOwnReceiptAfterItIsClosed) {
  ASSERT_EQ(Authorize("open"), kDispatch);
  ASSERT_EQ(Close(), kRecorded);
  ASSERT_EQ(Authorize("k", {.arguments = 2}), kPermitClosed);
  const int64_t denied = answer().receipts.at(0).sequence;
  ASSERT_EQ(Commit("open", kSucceeded), kRecorded);
  ExpectNothingNew(kPermitClosed, {.arguments = 2});
  EXPECT_TRUE(Cites(denied));
}

TEST_F(SameKey, RefusedForAPassingReason_TheSameAgain_GetsTheSameReceipt) {
  const int capped = Mint(Cap(0));
  ASSERT_EQ(Authorize("k", {.permit = capped}), kCallCap);
  const int64_t denied = answer().receipts.at(0).sequence;
  const size_t length = ChainLength(capped);
  EXPECT_EQ(Authorize("k", {.permit = capped}), kCallCap);
  EXPECT_TRUE(Cites(denied));
  EXPECT_EQ(ChainLength(capped), length);
  EXPECT_EQ(permit(capped).refusals, 1);
}

TEST_F(SameKey, RefusedForAPassingReason_ThenForAnother_GetsANewReceipt) {
  const int capped = Mint(Cap(0));
  ASSERT_EQ(Authorize("k", {.permit = capped}), kCallCap);
  ASSERT_EQ(Revoke("operator", capped), kRecorded);
  EXPECT_EQ(Authorize("k", {.permit = capped}), kPermitRevoked);
  EXPECT_EQ(receipt().code(), "PERMIT_REVOKED");
}

TEST_F(SameKey, RefusedForAPassingReason_IsGrantedWhenItHasPassed) {
  PermitTerms terms;
  terms.grants.push_back(Open());
  terms.not_before = now() + kHour;
  const int later = MintPermit(terms);
  ASSERT_EQ(Authorize("k", {.permit = later}), kPermitNotYetValid);
  Pass(kHour);
  EXPECT_EQ(Authorize("k", {.permit = later}), kDispatch);
}

TEST_F(SameKey, AKeyIsNeverUnknownAgain) {
  ASSERT_EQ(Authorize("k", {.grant = 0}), kToolNotGranted);
  Pass(400 * kDay);
  EXPECT_TRUE(Known("k"));
  ExpectNothingNew(kToolNotGranted, {.grant = 0});
}

// ---- Who asks ----

TEST_F(SameKey, ADisabledGatewayGetsNothing) {
  Disable("gateway");
  EXPECT_EQ(Authorize("k"), kPrincipalDisabled);
  EXPECT_FALSE(Known("k"));
}

TEST_F(SameKey, OnlyGatewaysMayAuthorize) {
  for (const char* who : {"operator", "reconciler", "auditor"}) {
    EXPECT_EQ(Authorize("k", {.who = who}), kPermissionDenied);
  }
  EXPECT_FALSE(Known("k"));
}

TEST_F(SameKey, AnotherTenantsPermitLooksMissing) { EXPECT_EQ(Authorize("k", {.who = "foreign gateway"}), kNotFound); }

}  // namespace
}  // namespace tally::decide::testing
