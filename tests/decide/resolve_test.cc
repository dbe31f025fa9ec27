#include "tests/decide/fixture.h"

// Resolve and Claim: who may say what became of a parked call.
namespace tally::decide::testing {
namespace {

class Resolving : public DecideTest {
 protected:
  Resolving() {
    Mint(Open());
    EXPECT_EQ(Authorize("k", {.attempt = "a"}), kDispatch);
  }
  void Park() { ASSERT_EQ(Commit("k", kUncertain), kRecorded); }
  int Claimed(const std::string& who = "reconciler", Time time = kMinute) {
    EXPECT_EQ(Claim("k", time, who), kRecorded);
    return NumberOf(*call("k").claim_id);
  }
};

TEST_F(Resolving, Happened_SettlesTheHold) {
  Park();
  ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_RESOLVED_HAPPENED);
  EXPECT_EQ(receipt().evidence_source(), "provider");
  EXPECT_EQ(StateOf("k"), v1::SUCCEEDED);
  EXPECT_EQ(grant().spent, 10);
}

TEST_F(Resolving, Happened_ChargesWhatTheEvidenceStates_ToTenTimesTheHold) {
  Park();
  ASSERT_EQ(Resolve("k", kHappened, {.amount = 101}), kRecorded);
  EXPECT_EQ(grant().spent, 100);
  EXPECT_FALSE(call("k").attention.empty()) << "a person is called";
}

TEST_F(Resolving, NotHappened_GivesHoldAndSlotBack) {
  Park();
  ASSERT_EQ(Resolve("k", kNotHappened), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_RESOLVED_NOT_HAPPENED);
  EXPECT_EQ(grant(), Counters{});
}

TEST_F(Resolving, CannotTell_EscalatesOnceAndStaysUncertain) {
  Park();
  const std::string uncertain = ReceiptOf("k");
  ASSERT_EQ(Resolve("k", kCannotTell), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_ESCALATED);
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  EXPECT_EQ(ReceiptOf("k"), uncertain) << "the CALL_UNCERTAIN receipt stays the one to name";
  const size_t length = ChainLength();
  EXPECT_EQ(Resolve("k", kCannotTell), kRecorded);
  EXPECT_TRUE(Cites(static_cast<int64_t>(length)));
  EXPECT_EQ(ChainLength(), length);
}

TEST_F(Resolving, AfterEscalation_ALateAnswerEndsTheCallForAPerson) {
  Park();
  ASSERT_EQ(Resolve("k", kCannotTell), kRecorded);
  EXPECT_EQ(call("k").attention, "escalated");
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(call("k").attention, "");
}

TEST_F(Resolving, AfterEscalation_AReconcilerMayOnlyBringHappened) {
  Park();
  ASSERT_EQ(Resolve("k", kCannotTell, {.claim = Claimed(), .who = "reconciler"}), kRecorded);
  EXPECT_EQ(Resolve("k", kNotHappened, {.claim = Claimed(), .who = "reconciler"}), kPermissionDenied);
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  EXPECT_EQ(Resolve("k", kHappened, {.claim = NumberOf(*call("k").claim_id), .who = "reconciler"}), kRecorded);
}

TEST_F(Resolving, AfterEscalation_NotHappenedIsAPersonsWord) {
  Park();
  ASSERT_EQ(Resolve("k", kCannotTell), kRecorded);
  EXPECT_EQ(Resolve("k", kNotHappened), kRecorded);
}

TEST_F(Resolving, OnlyWhatIsParkedCanBeResolved) {
  EXPECT_EQ(Resolve("k", kHappened), kStaleResolution) << "AUTHORIZED, lease running";
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(Resolve("k", kNotHappened), kStaleResolution);
}

TEST_F(Resolving, ALeaseThatIsOverIsParkedByTheAsking_ButItsReceiptCouldNotBeNamed) {
  Pass(kHour);
  EXPECT_EQ(Resolve("k", kHappened), kStaleResolution);
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  EXPECT_EQ(Resolve("k", kHappened), kRecorded);
}

TEST_F(Resolving, ASlowVerdictOnAttempt1_MustNotLandOnAttempt2) {
  Park();
  const std::string first = ReceiptOf("k");
  ASSERT_EQ(Resolve("k", kNotHappened), kRecorded);
  ASSERT_EQ(Authorize("k", {.attempt = "b"}), kDispatch);
  ASSERT_EQ(Commit("k", kUncertain), kRecorded);
  EXPECT_EQ(Resolve("k", kHappened, {.attempt = "a", .supersedes = first}), kStaleResolution);
  EXPECT_EQ(Resolve("k", kHappened, {.attempt = "b", .supersedes = first}), kStaleResolution);
  EXPECT_EQ(Resolve("k", kHappened, {.attempt = "never"}), kStaleResolution);
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
}

TEST_F(Resolving, TheSameAgainGetsTheOriginalReceipt_TheOtherVerdictDoesNot) {
  Park();
  const std::string uncertain = ReceiptOf("k");
  ASSERT_EQ(Resolve("k", kHappened), kRecorded);
  const size_t length = ChainLength();
  EXPECT_EQ(Resolve("k", kHappened, {.supersedes = uncertain}), kRecorded);
  EXPECT_TRUE(Cites(static_cast<int64_t>(length)));
  EXPECT_EQ(ChainLength(), length);
  EXPECT_EQ(Resolve("k", kNotHappened, {.supersedes = uncertain}), kStaleResolution);
}

TEST_F(Resolving, AReconcilerNeedsALiveClaimOfItsOwn) {
  Park();
  EXPECT_EQ(Resolve("k", kHappened, {.who = "reconciler"}), kStaleResolution) << "none";
  const int claim = Claimed();
  EXPECT_EQ(Resolve("k", kHappened, {.claim = claim + 1, .who = "reconciler"}), kStaleResolution) << "another";
  EXPECT_EQ(Resolve("k", kHappened, {.claim = claim, .who = "other reconciler"}), kStaleResolution) << "not its own";
  Pass(kMinute);
  EXPECT_EQ(Resolve("k", kHappened, {.claim = claim, .who = "reconciler"}), kStaleResolution) << "over";
  EXPECT_EQ(Resolve("k", kHappened, {.claim = Claimed(), .who = "reconciler"}), kRecorded);
}

TEST_F(Resolving, AnOperatorNeedsNoClaim_ButOneItNamesMustBeLive) {
  Park();
  const int claim = Claimed();
  Pass(kMinute);
  EXPECT_EQ(Resolve("k", kHappened, {.claim = claim}), kStaleResolution);
  EXPECT_EQ(Resolve("k", kHappened), kRecorded);
}

TEST_F(Resolving, NoGatewayMovesUncertainToNotHappened) {
  Park();
  EXPECT_EQ(Resolve("k", kNotHappened, {.who = "gateway"}), kPermissionDenied);
  EXPECT_EQ(Resolve("k", kNotHappened, {.who = "auditor"}), kPermissionDenied);
  EXPECT_EQ(Commit("k", kNotSent), kLeaseOver);
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
}

TEST_F(Resolving, AnotherTenantsCallLooksMissing) {
  Park();
  EXPECT_EQ(Resolve("k", kHappened, {.who = "foreign operator"}), kNotFound);
  EXPECT_EQ(Resolve("no such key", kHappened), kNotFound);
}

// What a gateway says after its lease is kept as evidence; a reconciler may rest its verdict on it.
TEST_F(Resolving, ALateNotSentIsNoted_AndAReconcilerMayConcludeNotHappenedFromIt) {
  Park();
  EXPECT_EQ(Commit("k", kNotSent), kLeaseOver);
  EXPECT_TRUE(call("k").last()->late_not_sent);
  EXPECT_EQ(call("k").last()->sent_at, 0);
  EXPECT_EQ(Resolve("k", kNotHappened, {.claim = Claimed(), .who = "reconciler"}), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::NOT_HAPPENED);
}

TEST_F(Resolving, AfterEscalation_AReconcilerMayBringHappened) {
  Park();
  ASSERT_EQ(Resolve("k", kCannotTell, {.claim = Claimed(), .who = "reconciler"}), kRecorded);
  EXPECT_EQ(Resolve("k", kHappened, {.claim = Claimed(), .who = "reconciler"}), kRecorded);
}

// ---- Claim ----

TEST_F(Resolving, Claim_IsForOneAtATime) {
  Park();
  Claimed();
  EXPECT_EQ(Claim("k", kMinute, "other reconciler"), kClaimed);
  Pass(kMinute);
  EXPECT_EQ(Claim("k", kMinute, "other reconciler"), kRecorded);
}

TEST_F(Resolving, Claim_IsForParkedCallsAndParksALeaseThatIsOver) {
  EXPECT_EQ(Claim("k", kMinute), kStaleResolution);
  Pass(kHour);
  EXPECT_EQ(Claim("k", kMinute), kRecorded);
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
}

TEST_F(Resolving, Claim_IsForReconcilers) {
  Park();
  for (const char* who : {"gateway", "operator", "auditor"}) EXPECT_EQ(Claim("k", kMinute, who), kPermissionDenied);
}

// ---- Extend ----

TEST_F(Resolving, Extend_MovesTheLeaseAndNeverBack) {
  ASSERT_EQ(Extend("k", 10 * kMinute), kRecorded);
  const Time end = now() + 10 * kMinute;
  EXPECT_EQ(answer().lease_end, end);
  EXPECT_EQ(Extend("k", kSecond), kRecorded);
  EXPECT_EQ(answer().lease_end, end);
  EXPECT_EQ(ChainLength(), 2u) << "it writes no receipt";
  Pass(10 * kMinute - 1);
  EXPECT_EQ(Commit("k", kNotSent), kRecorded);
}

TEST_F(Resolving, Extend_EndsADayAfterTheGrant) {
  const Time granted = now();
  Pass(kMinute);
  ASSERT_EQ(Extend("k", 2 * kDay), kRecorded);
  EXPECT_EQ(answer().lease_end, granted + kDay);
}

TEST_F(Resolving, Extend_IsRefusedOnceParkedEndedOrUnseen) {
  EXPECT_EQ(Extend("k", kMinute, {.attempt = "never"}), kNotFound);
  EXPECT_EQ(Extend("k", kMinute, {.who = "other gateway"}), kNotFound);
  Pass(120 * kSecond);
  EXPECT_EQ(Extend("k", kMinute), kLeaseOver) << "and it is parked";
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  ASSERT_EQ(Commit("k", kSucceeded), kRecorded);
  EXPECT_EQ(Extend("k", kMinute), kCommitConflict);
}

TEST_F(Resolving, Extend_IsNotForADisabledGateway) {
  Disable("gateway");
  EXPECT_EQ(Extend("k", kMinute), kPrincipalDisabled);
}

TEST_F(Resolving, Sweep_ParksOnlyWhatIsOver) {
  Sweep("k");
  EXPECT_EQ(StateOf("k"), v1::AUTHORIZED);
  EXPECT_FALSE(answer().wrote);
  Pass(120 * kSecond);
  Sweep("k");
  EXPECT_EQ(StateOf("k"), v1::UNCERTAIN);
  EXPECT_EQ(receipt().code(), "LEASE_OVER");
  EXPECT_EQ(receipt().principal_id(), "") << "the server itself";
}

}  // namespace
}  // namespace tally::decide::testing
