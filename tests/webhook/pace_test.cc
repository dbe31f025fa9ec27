#include "server/webhook/pace.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tally::webhook {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WebhookId kOne = {1}, kOther = {2};

RC_GTEST_PROP(RetryDelay, IsAnythingBetweenNothingAndWhatDoublesUpToTheLongest, ()) {
  const int tries = *rc::gen::inRange(1, 100);
  const double chance = *rc::gen::inRange(0, 1000) / 1000.0;
  const microseconds first = seconds(5), longest = std::chrono::hours(1);
  const microseconds most = tries > 10 ? longest : std::min<microseconds>(first * (1 << (tries - 1)), longest);
  const microseconds delay = RetryDelay(tries, first, longest, chance);
  RC_ASSERT(delay >= microseconds(0));
  RC_ASSERT(delay <= most);
  RC_ASSERT(std::abs(static_cast<double>(delay.count()) - static_cast<double>(most.count()) * chance) <= 1);
}

TEST(RetryDelay, OfAFirstWaitAboveTheLongestIsTheLongest) {
  EXPECT_LE(RetryDelay(1, std::chrono::hours(1), seconds(1), 0.999), seconds(1));
}

TEST(Pace, GivesEachWebhookAFewSendsAtATime) {
  Pace pace;
  const auto now = Clock::now();
  for (size_t i = 0; i < Pace::kAtOnceMax; ++i) {
    EXPECT_EQ(pace.Room(kOne, now), Pace::kAtOnceMax - i);
    pace.Begin(kOne);
  }
  EXPECT_EQ(pace.Room(kOne, now), 0u);
  EXPECT_EQ(pace.Room(kOther, now), Pace::kAtOnceMax);
  pace.Ended(kOne, Pace::End::kTaken, now, 0.5);
  EXPECT_EQ(pace.Room(kOne, now), 1u);
}

TEST(Pace, OneThatDoesNotAnswerGetsOneSendAtATimeAndThenPauses) {
  Pace pace;
  auto now = Clock::now();
  pace.Begin(kOne);
  pace.Ended(kOne, Pace::End::kNoAnswer, now, 0.5);
  EXPECT_EQ(pace.Room(kOne, now), 1u);  // at once: it may have been the message
  milliseconds longest_pause{0};
  for (int i = 0; i < 12; ++i) {
    pace.Begin(kOne);
    pace.Ended(kOne, Pace::End::kNoAnswer, now, 0.999);
    EXPECT_EQ(pace.Room(kOne, now), 0u);
    milliseconds pause{0};
    while (pace.Room(kOne, now + pause) == 0) pause += milliseconds(100);
    EXPECT_LE(pause, Pace::kPauseLongest);
    EXPECT_GE(pause, longest_pause);
    longest_pause = pause;
    now += pause;
    EXPECT_EQ(pace.Room(kOne, now), 1u);
  }
  EXPECT_GT(longest_pause, Pace::kPauseLongest / 2);
  pace.Begin(kOne);
  pace.Ended(kOne, Pace::End::kTaken, now, 0.5);
  EXPECT_EQ(pace.Room(kOne, now), Pace::kAtOnceMax);
}

TEST(Pace, AMessageThatAWebhookCannotTakeHoldsUpNoOther) {
  Pace pace;
  const auto now = Clock::now();
  for (int i = 0; i < 100; ++i) {
    pace.Begin(kOne);
    pace.Ended(kOne, Pace::End::kError, now, 0.999);
    EXPECT_GT(pace.Room(kOne, now), 0u);
    pace.Begin(kOne);
    pace.Ended(kOne, Pace::End::kTaken, now, 0.999);
  }
}

TEST(Pace, OneThatFailsWhateverIsSentIsPaused) {
  Pace pace;
  const auto now = Clock::now();
  for (int i = 0; i < Pace::kErrorsMax; ++i) {
    pace.Begin(kOne);
    pace.Ended(kOne, Pace::End::kError, now, 0.5);
    EXPECT_EQ(pace.Room(kOne, now), Pace::kAtOnceMax);
  }
  pace.Begin(kOne);
  pace.Ended(kOne, Pace::End::kError, now, 0.5);
  EXPECT_EQ(pace.Room(kOne, now), 0u);
  EXPECT_EQ(pace.Room(kOne, now + Pace::kPauseFirst), 1u);
}

TEST(Pace, ForgetsWebhooksThatAreHeardOfNoMore) {
  Pace pace;
  const auto now = Clock::now();
  for (int i = 0; i < 20'000; ++i) {
    WebhookId id{};
    id[0] = static_cast<uint8_t>(i);
    id[1] = static_cast<uint8_t>(i >> 8);
    pace.Begin(id);
    pace.Ended(id, Pace::End::kNoAnswer, now + milliseconds(i), 0.5);
  }
  EXPECT_LE(pace.size(), 4097u);
}

}  // namespace
}  // namespace tally::webhook
