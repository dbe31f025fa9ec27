#include "lib/client/send_deadline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>

namespace tally::client {
namespace {

constexpr int64_t kMs = 1'000'000;

// A clock whose hands the test moves.
struct Hands {
  std::shared_ptr<std::optional<int64_t>> now = std::make_shared<std::optional<int64_t>>(0);
  SendDeadline::Clock clock() const {
    return [now = now] { return *now; };
  }
  void Set(std::optional<int64_t> ns) const { *now = ns; }
};

TEST(SendDeadline, ClosesExactlyWhenSendWithinHasPassed) {
  Hands hands;
  hands.Set(1'000 * kMs);
  const SendDeadline started = SendDeadline::Start(hands.clock());
  EXPECT_TRUE(started.MayStillSend(10'000));
  hands.Set(11'000 * kMs - 1);
  EXPECT_TRUE(started.MayStillSend(10'000));
  hands.Set(11'000 * kMs);
  EXPECT_FALSE(started.MayStillSend(10'000));
}

TEST(SendDeadline, AnHoursSleepClosesIt) {
  Hands hands;
  const SendDeadline started = SendDeadline::Start(hands.clock());
  hands.Set(3'600'000 * kMs);
  EXPECT_FALSE(started.MayStillSend(10'000));
}

TEST(SendDeadline, AClockThatCannotBeReadOrWentBackMeansNo) {
  Hands hands;
  hands.Set(50 * kMs);
  const SendDeadline started = SendDeadline::Start(hands.clock());
  hands.Set(std::nullopt);
  EXPECT_FALSE(started.MayStillSend(10'000));
  hands.Set(49 * kMs);
  EXPECT_FALSE(started.MayStillSend(10'000));
  const SendDeadline never = [] {
    Hands broken;
    broken.Set(std::nullopt);
    return SendDeadline::Start(broken.clock());
  }();
  EXPECT_FALSE(never.MayStillSend(10'000));
}

TEST(SendDeadline, NoWindowMeansNo) {
  const SendDeadline started = SendDeadline::Start();
  EXPECT_FALSE(started.MayStillSend(0));
  EXPECT_FALSE(started.MayStillSend(-1));
  EXPECT_TRUE(started.MayStillSend(INT64_MAX));
}

RC_GTEST_PROP(SendDeadline, OnceClosedItStaysClosed, ()) {
  Hands hands;
  const int64_t window_ms = *rc::gen::inRange<int64_t>(1, 100'000);
  const SendDeadline started = SendDeadline::Start(hands.clock());
  int64_t now = 0;
  bool was_open = true;
  for (int i = 0; i < 20; ++i) {
    now += *rc::gen::inRange<int64_t>(0, 20'000 * kMs);
    hands.Set(now);
    const bool open = started.MayStillSend(window_ms);
    RC_ASSERT(open == (now < window_ms * kMs));
    RC_ASSERT(was_open || !open);
    was_open = open;
  }
}

}  // namespace
}  // namespace tally::client
