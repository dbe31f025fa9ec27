#include "tests/decide/fixture.h"

// BeginReplay: when a keyed tool may be asked again.
namespace tally::decide::testing {
namespace {

class Replaying : public DecideTest {
 protected:
  Replaying() {
    Mint(Open());
    EXPECT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  }
  void Park() { ASSERT_EQ(Commit("k", kUncertain), kRecorded); }
  int Claimed(const std::string& who = "reconciler", Time time = kMinute) {
    EXPECT_EQ(Claim("k", time, who), kRecorded);
    return NumberOf(*call("k").claim_id);
  }
  Rule By(int claim, const std::string& who = "reconciler") { return {.claim = claim, .who = who}; }
};

TEST_F(Replaying, WritesAReceiptAndMovesNothing) {
  Park();
  const std::string uncertain = ReceiptOf("k");
  const Counters money = grant();
  ASSERT_EQ(Replay("k", By(Claimed())), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_REPLAY_SENT);
  EXPECT_EQ(receipt().effect_known(), v1::UNKNOWN);
  EXPECT_EQ(receipt().attempt_state(), v1::UNCERTAIN);
  EXPECT_EQ(receipt().principal_id(), "reconciler");
  EXPECT_TRUE(Cites(static_cast<int64_t>(ChainLength())));
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  EXPECT_EQ(ReceiptOf("k"), uncertain) << "the CALL_UNCERTAIN receipt stays the one to name";
  EXPECT_EQ(grant(), money);
}

TEST_F(Replaying, EveryOneWritesAReceiptOfItsOwn) {
  Park();
  const int claim = Claimed();
  const size_t length = ChainLength();
  ASSERT_EQ(Replay("k", By(claim)), kRecorded);
  ASSERT_EQ(Replay("k", By(claim)), kRecorded);
  EXPECT_EQ(ChainLength(), length + 2);
}

TEST_F(Replaying, AVerdictAfterItStillNamesTheUncertainReceipt) {
  Park();
  const int claim = Claimed();
  ASSERT_EQ(Replay("k", By(claim)), kRecorded);
  ASSERT_EQ(Resolve("k", kHappened, By(claim)), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
}

TEST_F(Replaying, NeedsALiveClaimOfItsOwn) {
  Park();
  EXPECT_EQ(Replay("k", {.who = "reconciler"}), kStaleResolution) << "none";
  const int claim = Claimed();
  EXPECT_EQ(Replay("k", By(claim + 1)), kStaleResolution) << "another";
  EXPECT_EQ(Replay("k", By(claim, "other reconciler")), kStaleResolution) << "not its own";
  Pass(kMinute);
  EXPECT_EQ(Replay("k", By(claim)), kStaleResolution) << "over";
  EXPECT_EQ(Replay("k", By(Claimed())), kRecorded);
}

TEST_F(Replaying, IsForThePresentParkedAttemptAndItsReceiptOnly) {
  Park();
  const std::string first = ReceiptOf("k");
  const int claim = Claimed();
  EXPECT_EQ(Replay("k", {.supersedes = std::string(32, 'x'), .claim = claim, .who = "reconciler"}), kStaleResolution);
  ASSERT_EQ(Resolve("k", kNotHappened, By(claim)), kRecorded);
  EXPECT_EQ(Replay("k", {.supersedes = first, .claim = claim, .who = "reconciler"}), kStaleResolution) << "resolved";
  ASSERT_EQ(Authorize("k", {.attempt = "b"}), kDispatch);
  EXPECT_EQ(Replay("k", By(claim)), kStaleResolution) << "not parked";
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  const int second = Claimed();
  EXPECT_EQ(Replay("k", {.attempt = "a", .supersedes = first, .claim = second, .who = "reconciler"}), kStaleResolution)
      << "attempt 1, after attempt 2 was parked";
  EXPECT_EQ(Replay("k", {.attempt = "b", .supersedes = first, .claim = second, .who = "reconciler"}), kStaleResolution);
  EXPECT_EQ(Replay("k", By(second)), kRecorded);
}

TEST_F(Replaying, IsForReconcilersOfTheTenant) {
  Park();
  const int claim = Claimed();
  for (const char* who : {"gateway", "operator", "auditor"}) EXPECT_EQ(Replay("k", By(claim, who)), kPermissionDenied);
  Disable("reconciler");
  EXPECT_EQ(Replay("k", By(claim)), kPrincipalDisabled);
  EXPECT_EQ(Replay("no such key", By(claim, "other reconciler")), kNotFound);
}

TEST_F(Replaying, UnderARevokedPermitNothingIsSentAgain) {
  Park();
  const int claim = Claimed();
  ASSERT_EQ(Revoke(), kRecorded);
  const size_t length = ChainLength();
  EXPECT_EQ(Replay("k", By(claim)), kPermitRevoked);
  EXPECT_EQ(ChainLength(), length);
}

TEST_F(Replaying, UnderAClosingPermitNothingIsSentAgain) {
  Park();
  const int claim = Claimed();
  ASSERT_EQ(Close(), kRecorded);
  EXPECT_EQ(Replay("k", By(claim)), kPermitClosed);
}

TEST_F(Replaying, FromThePermitsEndOnNothingIsSentAgain) {
  Park();
  Pass(365 * kDay - kSecond);
  const int claim = Claimed();
  EXPECT_EQ(Replay("k", By(claim)), kRecorded) << "a second before";
  Pass(kSecond);
  EXPECT_EQ(Replay("k", By(claim)), kPermitExpired);
}

TEST_F(Replaying, OnceAnEarlierAttemptHasHappenedNothingIsSentAgain) {
  Park();
  ASSERT_EQ(Resolve("k", kNotHappened), kRecorded);
  ASSERT_EQ(Authorize("k", {.attempt = "b"}), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  const int claim = Claimed();
  ASSERT_EQ(Commit("k", kSucceeded, {.attempt = "a"}), kRecorded);
  EXPECT_EQ(Replay("k", By(claim)), kStaleResolution);
}

TEST_F(Replaying, AfterEscalationItMayStillBringTheAnswer) {
  Park();
  ASSERT_EQ(Resolve("k", kCannotTell, By(Claimed())), kRecorded);
  const int claim = Claimed();
  ASSERT_EQ(Replay("k", By(claim)), kRecorded);
  EXPECT_EQ(Resolve("k", kHappened, By(claim)), kRecorded);
}

}  // namespace
}  // namespace tally::decide::testing
