#include "tests/decide/fixture.h"

// The limits that the decisions enforce, at them and one beyond.
namespace tally::decide::testing {
namespace {

class Limits : public DecideTest {
 protected:
  Limits() {
    Mint(Open());
    CountersAreSetByHand();
  }
};

TEST_F(Limits, OpenCalls_TheHundredThousandthIsGranted_OneMoreIsNot) {
  permit().open_calls = 99'999;
  EXPECT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(permit().open_calls, 100'000);
  EXPECT_EQ(Authorize("k2", {.arguments = 2}), kOpenCalls);
  EXPECT_EQ(Info(kOpenCalls).kind, v1::KIND_DENIED);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  EXPECT_EQ(Authorize("k2", {.arguments = 2}), kDispatch) << "a passing reason";
}

TEST_F(Limits, Refusals_TheTenThousandthHasAReceipt_TheNextWritesDenialLimit_LaterOnesNothing) {
  permit().refusals = 9'999;
  ASSERT_EQ(Authorize("k1", {.grant = 0}), kToolNotGranted);
  EXPECT_EQ(receipt().kind(), v1::CALL_DENIED);
  EXPECT_EQ(permit().refusals, 10'000);
  ASSERT_EQ(Authorize("k2", {.grant = 0}), kToolNotGranted);
  EXPECT_EQ(receipt().kind(), v1::DENIAL_LIMIT);
  const int64_t limit = permit().denial_limit_seq;
  EXPECT_TRUE(Cites(limit));
  EXPECT_FALSE(Known("k2")) << "nor is the key recorded";
  const size_t length = ChainLength();
  EXPECT_EQ(Authorize("k3", {.check = Prepared::Check::kViolated}), kConstraintViolated) << "it keeps kind and code";
  EXPECT_TRUE(Cites(limit));
  EXPECT_FALSE(answer().wrote);
  EXPECT_EQ(ChainLength(), length);
  EXPECT_FALSE(Known("k3"));
  EXPECT_EQ(permit().refusals, 10'000);
}

TEST_F(Limits, PastDenialLimit_GrantsGoOn) {
  permit().refusals = 10'000;
  ASSERT_EQ(Authorize("k1", {.grant = 0}), kToolNotGranted);
  EXPECT_EQ(Authorize("k2"), kDispatch);
  EXPECT_EQ(Commit("k2", kSucceeded), kRecorded);
}

TEST_F(Limits, PastDenialLimit_AKeyRefusedBeforeKeepsItsOwnReceipt) {
  ASSERT_EQ(Authorize("k1", {.grant = 0}), kToolNotGranted);
  const int64_t denied = answer().receipts.at(0).sequence;
  permit().refusals = 10'000;
  EXPECT_EQ(Authorize("k1", {.grant = 0}), kToolNotGranted);
  EXPECT_TRUE(Cites(denied));
}

TEST_F(Limits, Attempts_MaxAttemptsAndOneBeyond) {
  GrantTerms terms = Open();
  terms.max_attempts = 3;
  terms.scope = v1::INTENT_SCOPE_PERMIT;
  const int permit = Mint(terms);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(Authorize("k", {.permit = permit}), kDispatch);
    ASSERT_EQ(Commit("k", kNotSent, {.permit = permit}), kRecorded);
  }
  EXPECT_EQ(Authorize("k", {.permit = permit}), kAttemptsExhausted);
}

TEST_F(Limits, TheLeaseAskedForIsBoundedByTheGrants) {
  ASSERT_EQ(Authorize("k1", {.lease = kHour}), kDispatch);
  EXPECT_EQ(answer().lease, 120 * kSecond);
  EXPECT_EQ(answer().send_within, 10 * kSecond);
  ASSERT_EQ(Authorize("k2", {.arguments = 2, .lease = 5 * kSecond}), kDispatch);
  EXPECT_EQ(answer().lease, 5 * kSecond);
  EXPECT_EQ(answer().lease_end, now() + 5 * kSecond);
  EXPECT_EQ(answer().send_within, 5 * kSecond) << "it never outlives the lease";
}

TEST_F(Limits, APermitIsOverAtTheVeryInstantItExpires) {
  PermitTerms terms;
  terms.grants.push_back(Open());
  terms.expires_at = now() + kMinute;
  const int brief = MintPermit(terms);
  Pass(kMinute - 1);
  EXPECT_EQ(Authorize("k1", {.permit = brief}), kDispatch);
  Pass(1);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .permit = brief}), kPermitExpired);
}

}  // namespace
}  // namespace tally::decide::testing
