#include "tests/decide/fixture.h"

// Revoke, close, and what follows.
namespace tally::decide::testing {
namespace {

class Closing : public DecideTest {
 protected:
  Closing() { Mint(Open()); }
};

TEST_F(Closing, WithNoOpenCall_ClosesAtOnceWithFinalCounts) {
  ASSERT_EQ(Authorize("done"), kDispatch);
  ASSERT_EQ(Commit("done", kSucceeded), kRecorded);
  ASSERT_EQ(Authorize("failed", {.arguments = 2}), kDispatch);
  ASSERT_EQ(Commit("failed", kToolError, {.no_effect = true}), kRecorded);
  ASSERT_EQ(Authorize("unsent", {.arguments = 3}), kDispatch);
  ASSERT_EQ(Commit("unsent", kNotSent), kRecorded);
  ASSERT_EQ(Authorize("unsent", {.arguments = 3}), kDispatch);
  ASSERT_EQ(Commit("unsent", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("unsent", kNotHappened), kRecorded);
  ASSERT_EQ(Authorize("refused", {.grant = 0}), kToolNotGranted);
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::PERMIT_CLOSED);
  EXPECT_EQ(receipt().principal_id(), "") << "the server closes the chain";
  const v1::ClosingCounts& counts = receipt().closing();
  EXPECT_EQ(counts.calls(), 3);
  EXPECT_EQ(counts.attempts(), 4);
  EXPECT_EQ(counts.succeeded(), 1);
  EXPECT_EQ(counts.tool_error(), 1);
  EXPECT_EQ(counts.released(), 1);
  EXPECT_EQ(counts.not_happened(), 1);
  EXPECT_EQ(counts.denied(), 1);
  EXPECT_EQ(counts.spent(), 10);
  EXPECT_EQ(counts.overrun(), 0);
}

TEST_F(Closing, WithAnOpenCall_IsClosedDirectlyAfterItsEnd) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::PERMIT_CLOSING);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  EXPECT_FALSE(permit().closed) << "a parked call is open";
  ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  EXPECT_EQ(Chain(), (std::vector{v1::PERMIT_MINTED, v1::CALL_ALLOWED, v1::PERMIT_CLOSING, v1::CALL_UNCERTAIN,
                                  v1::CALL_RESOLVED_HAPPENED, v1::PERMIT_CLOSED}));
}

TEST_F(Closing, WaitsForTheLastOfSeveral) {
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Authorize("k2", {.arguments = 2}), kDispatch);
  ASSERT_EQ(Close(), kRecorded);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  EXPECT_FALSE(permit().closed);
  ASSERT_EQ(Commit("k2", kNotSent), kRecorded);
  EXPECT_TRUE(permit().closed);
}

TEST_F(Closing, AReadWhoseLeaseIsOverClosesItWhenTouched) {
  const int reads = Mint(Read());
  ASSERT_EQ(Authorize("k", {.permit = reads}), kDispatch);
  ASSERT_EQ(Close("operator", reads), kRecorded);
  Pass(kHour);
  Sweep("k", reads);
  EXPECT_TRUE(permit(reads).closed);
  EXPECT_EQ(Commit("k", kSucceeded, {.permit = reads}), kRecorded) << "too late to replace it";
  EXPECT_EQ(StateOf("k", reads), v1::TOOL_ERROR);
  EXPECT_EQ(Chain(reads).back(), v1::PERMIT_CLOSED);
}

TEST_F(Closing, ACrashBetweenEndAndCloseLosesBothOrNone) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Close(), kRecorded);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  Crash();
  EXPECT_FALSE(permit().closed);
  EXPECT_EQ(StateOf("k"), v1::AUTHORIZED);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_TRUE(permit().closed);
}

TEST_F(Closing, AfterIt_RefusalsReturnThatReceiptAndWriteNothing) {
  ASSERT_EQ(Close(), kRecorded);
  const size_t length = ChainLength();
  EXPECT_EQ(Authorize("k"), kPermitClosed);
  EXPECT_TRUE(Cites(permit().closed_seq));
  EXPECT_EQ(ChainLength(), length);
  EXPECT_FALSE(Known("k"));
  EXPECT_EQ(permit().refusals, 0);
}

TEST_F(Closing, AfterIt_ARevokedPermitIsClosedToo) {
  ASSERT_EQ(Revoke(), kRecorded);
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_EQ(Authorize("k"), kPermitClosed);
  EXPECT_TRUE(Cites(permit().closed_seq));
}

TEST_F(Closing, AfterIt_AnUnseenAttemptIsAnsweredWithThatReceipt) {
  ASSERT_EQ(Close(), kRecorded);
  const size_t length = ChainLength();
  EXPECT_EQ(Commit("k", kNotSent, {.attempt = "never seen"}), kRecorded);
  EXPECT_TRUE(Cites(permit().closed_seq));
  EXPECT_EQ(ChainLength(), length);
}

TEST_F(Closing, AfterIt_NothingIsAttached) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  ASSERT_EQ(Close(), kRecorded);
  const size_t length = ChainLength();
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded) << "the end it had";
  EXPECT_EQ(ChainLength(), length);
}

TEST_F(Closing, AfterIt_OnlyContradictionsAndCorrectionsFollow) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Commit("k", kNotSent), kRecorded);
  ASSERT_EQ(Close(), kRecorded);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ASSERT_EQ(Correct("k", kNotHappened), kRecorded);
  const auto chain = Chain();
  EXPECT_EQ((std::vector(chain.end() - 3, chain.end())),
            (std::vector{v1::PERMIT_CLOSED, v1::CALL_CONTRADICTED, v1::CALL_CORRECTED}));
  EXPECT_EQ(Authorize("k"), kPermitClosed) << "the given-back key gets nothing from a closed permit";
}

TEST_F(Closing, MayBeRepeated) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Close(), kRecorded);
  const int64_t closing = answer().receipts.at(0).sequence;
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_TRUE(Cites(closing));
  EXPECT_FALSE(answer().wrote);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_TRUE(Cites(permit().closed_seq)) << "once closed, PERMIT_CLOSED's";
}

TEST_F(Closing, Revoke_StopsNewAttemptsAtOnce_OpenOnesMayBeCommitted) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Revoke(), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::PERMIT_REVOKED);
  EXPECT_EQ(Authorize("k2", {.arguments = 2}), kPermitRevoked);
  EXPECT_EQ(grant().slots, 1) << "attempts AUTHORIZED keep slot and hold";
  EXPECT_EQ(Extend("k", kHour), kRecorded);
  EXPECT_EQ(Commit("k", kSucceeded), kRecorded);
}

TEST_F(Closing, Revoke_MayBeRepeated) {
  ASSERT_EQ(Revoke(), kRecorded);
  const int64_t revoked = answer().receipts.at(0).sequence;
  ASSERT_EQ(Revoke(), kRecorded);
  EXPECT_TRUE(Cites(revoked));
  EXPECT_EQ(ChainLength(), 2u);
}

TEST_F(Closing, Revoke_WhileClosingButNotOnceClosed) {
  ASSERT_EQ(Authorize("k"), kDispatch);
  ASSERT_EQ(Close(), kRecorded);
  ASSERT_EQ(Revoke(), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::PERMIT_REVOKED);
  const int closed = Mint(Open());
  ASSERT_EQ(Close("operator", closed), kRecorded);
  ASSERT_EQ(Revoke("operator", closed), kRecorded);
  EXPECT_FALSE(permit(closed).revoked);
  EXPECT_TRUE(Cites(permit(closed).closed_seq));
}

TEST_F(Closing, IsForOperatorsOfTheTenant) {
  for (const char* who : {"gateway", "reconciler", "auditor"}) {
    EXPECT_EQ(Close(who), kPermissionDenied);
    EXPECT_EQ(Revoke(who), kPermissionDenied);
  }
  EXPECT_EQ(Close("foreign operator"), kNotFound);
  EXPECT_EQ(Revoke("foreign operator"), kNotFound);
  Disable("operator");
  EXPECT_EQ(Close(), kPrincipalDisabled);
}

TEST_F(Closing, ExpiredPermitsStillTakeCommitAndResolve) {
  PermitTerms terms;
  terms.grants.push_back(Open());
  terms.expires_at = now() + kMinute;
  const int brief = MintPermit(terms);
  ASSERT_EQ(Authorize("k", {.permit = brief}), kDispatch);
  Pass(kHour);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .permit = brief}), kPermitExpired);
  EXPECT_EQ(Commit("k", kUncertain, {.permit = brief}), kRecorded);
  EXPECT_EQ(Resolve("k", kHappened, {.permit = brief}), kRecorded);
}

}  // namespace
}  // namespace tally::decide::testing
