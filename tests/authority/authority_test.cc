// Against a real tallyd.
#include "gateway/authority/authority.h"

#include <gtest/gtest.h>

#include <boost/asio/detached.hpp>
#include <optional>
#include <thread>

#include "tests/authority/loop.h"
#include "tests/support/tallyd/tallyd.h"

namespace tally::gateway {
namespace {

namespace asio = boost::asio;
using client::Answer;
using std::chrono::milliseconds;

class AuthorityTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { fleet_ = new test::Fleet(test::Postgres::Shared(), 1); }
  static void TearDownTestSuite() {
    delete fleet_;
    fleet_ = nullptr;
  }

  std::unique_ptr<Authority> Open(client::CallOptions call = {}, milliseconds view_ttl = milliseconds(60'000)) {
    auto authority = Authority::Create(
        {.endpoint = {.server = fleet_->replica(0).socket()}, .call = call, .permit_view_ttl = view_ttl},
        keys::Secret::Copy(fleet_->credential(v1::GATEWAY)), loop_.get_executor());
    EXPECT_TRUE(authority.ok()) << authority.status();
    return *std::move(authority);
  }

  static v1::MintResponse Mint(int64_t cap) {
    v1::MintRequest request;
    request.set_subject("agent-" + std::to_string(++minted_));
    request.set_unit("USD/2");
    request.mutable_budget()->set_unlimited(true);
    request.set_expires_in_ms(3'600'000);
    v1::GrantTerms& grant = *request.add_grants();
    grant.set_tool("files__*");
    grant.mutable_cap()->set_at_most(cap);
    grant.mutable_budget()->set_unlimited(true);
    return fleet_->Mint(request);
  }

  static v1::AuthorizeRequest Asking(const v1::MintResponse& permit, const std::string& key) {
    v1::AuthorizeRequest request;
    request.set_permit_token(permit.permit_token());
    request.set_key(key);
    request.set_attempt_id(test::RandomAttemptId());
    request.set_tool("files__write");
    request.set_arguments("{\"path\":\"" + key + "\"}");
    return request;
  }

  Answer<v1::AuthorizeResponse> Authorize(Authority& authority, const v1::AuthorizeRequest& request) {
    return Await(loop_, authority.Authorize(request, client::SendDeadline::Start()));
  }

  static inline test::Fleet* fleet_ = nullptr;
  static inline int minted_ = 0;
  asio::io_context loop_;
};

TEST_F(AuthorityTest, ACallGoesFromItsGrantToItsReceipt) {
  const auto authority = Open();
  const v1::AuthorizeRequest request = Asking(Mint(3), "k");
  const auto started = client::SendDeadline::Start();
  const auto granted = Await(loop_, authority->Authorize(request, started));
  ASSERT_TRUE(granted.ok()) << granted.failure().message;
  EXPECT_TRUE(client::MaySend(request, granted.value(), started));

  v1::CommitRequest commit;
  commit.set_call_id(granted.value().call_id());
  commit.set_attempt_id(request.attempt_id());
  commit.set_outcome(v1::OUTCOME_SUCCEEDED);
  commit.set_result("{\"content\":[]}");
  const auto committed = Await(loop_, authority->Commit(commit));
  ASSERT_TRUE(committed.ok()) << committed.failure().message;
  EXPECT_EQ(committed.value().state(), v1::SUCCEEDED);
  // Said twice, it is the same.
  const auto again = Await(loop_, authority->Commit(commit));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value().receipts(0).receipt_id(), committed.value().receipts(0).receipt_id());

  v1::GetCallRequest show;
  show.set_call_id(granted.value().call_id());
  const auto call = Await(loop_, authority->GetCall(show));
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call.value().state(), v1::SUCCEEDED);
}

TEST_F(AuthorityTest, ALeaseIsMovedWhileTheCallIsUnderWay) {
  const auto authority = Open();
  v1::AuthorizeRequest request = Asking(Mint(3), "k");
  request.set_lease_ms(20'000);
  const auto granted = Authorize(*authority, request);
  ASSERT_TRUE(granted.ok());
  v1::ExtendRequest extend;
  extend.set_call_id(granted.value().call_id());
  extend.set_attempt_id(request.attempt_id());
  extend.set_lease_ms(60'000);
  const auto extended = Await(loop_, authority->Extend(extend));
  ASSERT_TRUE(extended.ok());
  EXPECT_GT(extended.value().lease_end_us(), granted.value().lease_end_us());
}

TEST_F(AuthorityTest, ARefusalIsAnAnswerAndAnUnknownTokenAFailure) {
  const auto authority = Open();
  v1::MintResponse permit = Mint(0);
  const auto refused = Authorize(*authority, Asking(permit, "k"));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused.value().disposition(), v1::CAP_EXCEEDED);
  permit.set_permit_token(std::string(43, 'A'));
  const auto unknown = Authorize(*authority, Asking(permit, "k"));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.failure().kind, v1::KIND_UNAUTHORIZED);
}

TEST_F(AuthorityTest, ThePermitBehindATokenIsShownAndRememberedForAWhile) {
  const auto authority = Open();
  const v1::MintResponse permit = Mint(3);
  auto view = Await(loop_, authority->GetPermit(permit.permit_token()));
  ASSERT_TRUE(view.ok()) << view.failure().message;
  EXPECT_EQ(view.value()->permit_id(), permit.permit_id());
  EXPECT_EQ(GrantFor(*view.value(), "files__write")->cap().used(), 0);
  EXPECT_EQ(GrantFor(*view.value(), "mail__send"), nullptr);

  ASSERT_TRUE(Authorize(*authority, Asking(permit, "k")).ok());
  view = Await(loop_, authority->GetPermit(permit.permit_token()));
  EXPECT_EQ(GrantFor(*view.value(), "files__write")->cap().used(), 0) << "as it was remembered";
  authority->ForgetPermit(permit.permit_token());
  view = Await(loop_, authority->GetPermit(permit.permit_token()));
  EXPECT_EQ(GrantFor(*view.value(), "files__write")->cap().used(), 1);

  const auto unknown = Await(loop_, authority->GetPermit(std::string(43, 'A')));
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.failure().kind, v1::KIND_UNAUTHORIZED);
}

TEST_F(AuthorityTest, ManyAreAskedAtOnceAndAllGoOnOnTheLoop) {
  const auto authority = Open();
  const v1::MintResponse permit = Mint(1'000);
  const auto thread = std::this_thread::get_id();
  int granted = 0;
  for (int i = 0; i < 200; ++i) {
    asio::co_spawn(
        loop_,
        [&, i]() -> asio::awaitable<void> {
          const v1::AuthorizeRequest request = Asking(permit, "k" + std::to_string(i));
          const auto answer = co_await authority->Authorize(request, client::SendDeadline::Start());
          EXPECT_EQ(std::this_thread::get_id(), thread);
          if (answer.ok() && answer.value().disposition() == v1::DISPATCH) ++granted;
        },
        asio::detached);
  }
  loop_.run();
  EXPECT_EQ(granted, 200);
}

TEST_F(AuthorityTest, WithoutTallydTheAnswerIsAFailureInBoundedTimeAndNothingIsGranted) {
  const auto authority = Open({.timeout = milliseconds(700), .try_timeout = milliseconds(300)});
  const v1::AuthorizeRequest request = Asking(Mint(3), "k");
  fleet_->replica(0).Kill();
  const auto answer = Authorize(*authority, request);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().kind, v1::KIND_UNAVAILABLE);
  fleet_->replica(0).Start();
}

TEST_F(AuthorityTest, ATallydThatIsStartedAgainAnswersTheSameAttempt) {
  const auto authority = Open({.timeout = milliseconds(60'000), .try_timeout = milliseconds(5'000)});
  const v1::MintResponse permit = Mint(1);
  const v1::AuthorizeRequest request = Asking(permit, "k");
  fleet_->replica(0).Kill();
  // The loop runs elsewhere: tallyd lives as long as the thread that started it.
  std::optional<Answer<v1::AuthorizeResponse>> said;
  std::thread asking([&] { said = Authorize(*authority, request); });
  fleet_->replica(0).Start();
  asking.join();
  const auto& answer = *said;
  ASSERT_TRUE(answer.ok()) << answer.failure().message;
  EXPECT_EQ(answer.value().disposition(), v1::DISPATCH);
  EXPECT_EQ(answer.value().attempt_number(), 1);
  // Nothing but that one attempt was made.
  authority->ForgetPermit(permit.permit_token());
  const auto view = Await(loop_, authority->GetPermit(permit.permit_token()));
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view.value()->grants(0).cap().used(), 1);
}

TEST_F(AuthorityTest, ItMayBeDestroyedWhileItIsStillAsking) {
  // Nobody listens there: the questions are under way, or wait for their next try.
  std::unique_ptr<Authority> authority = *Authority::Create({.endpoint = {.server = "unix:/nonexistent/tallyd.sock"}},
                                                            keys::Secret::Copy("c"), loop_.get_executor());
  const v1::AuthorizeRequest request = Asking(Mint(1), "k");
  int answered = 0;
  for (int i = 0; i < 20; ++i) {
    asio::co_spawn(
        loop_,
        [&]() -> asio::awaitable<void> {
          (void)co_await authority->Authorize(request, client::SendDeadline::Start());
          ++answered;
        },
        asio::detached);
  }
  loop_.run_for(milliseconds(30));
  authority.reset();
  EXPECT_EQ(answered, 0);
}

}  // namespace
}  // namespace tally::gateway
