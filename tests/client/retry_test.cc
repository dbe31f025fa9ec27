#include "lib/client/retry.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tally::client {
namespace {

using std::chrono::milliseconds;

Failure Of(v1::Kind kind) {
  Failure failure;
  failure.kind = kind;
  return failure;
}

int64_t Highest(int64_t, int64_t high) { return high; }
int64_t Lowest(int64_t low, int64_t) { return low; }

TEST(Retry, ContendedIsTriedThreeTimesAroundFiftyMilliseconds) {
  RetrySchedule low(Repeat::kOnce, Lowest);
  RetrySchedule high(Repeat::kSafe, Highest);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(low.After(Of(v1::KIND_CONTENDED), milliseconds(10'000)), milliseconds(25));
    EXPECT_EQ(high.After(Of(v1::KIND_CONTENDED), milliseconds(10'000)), milliseconds(75));
  }
  EXPECT_EQ(low.After(Of(v1::KIND_CONTENDED), milliseconds(10'000)), std::nullopt);
  EXPECT_EQ(high.After(Of(v1::KIND_CONTENDED), milliseconds(10'000)), std::nullopt);
}

TEST(Retry, UnavailableBacksOffWithFullJitterUpToTheDeadline) {
  RetrySchedule schedule(Repeat::kSafe, Highest);
  for (const int ms : {50, 100, 200, 400, 800, 1600, 2000, 2000}) {
    EXPECT_EQ(schedule.After(Of(v1::KIND_UNAVAILABLE), milliseconds(60'000)), milliseconds(ms));
  }
  EXPECT_EQ(schedule.After(Of(v1::KIND_UNAVAILABLE), milliseconds(2000)), std::nullopt);
  RetrySchedule lucky(Repeat::kSafe, Lowest);
  EXPECT_EQ(lucky.After(Of(v1::KIND_UNAVAILABLE), milliseconds(60'000)), milliseconds(0));
}

TEST(Retry, ARequestThatWouldDoASecondThingIsNotRepeatedWhenItsAnswerIsLost) {
  RetrySchedule schedule(Repeat::kOnce, Lowest);
  EXPECT_EQ(schedule.After(Of(v1::KIND_UNAVAILABLE), milliseconds(60'000)), std::nullopt);
}

TEST(Retry, TheServersWishIsAFloor) {
  Failure overloaded = Of(v1::KIND_UNAVAILABLE);
  overloaded.retry_delay = milliseconds(700);
  RetrySchedule schedule(Repeat::kSafe, Lowest);
  EXPECT_EQ(schedule.After(overloaded, milliseconds(5000)), milliseconds(700));
  EXPECT_EQ(schedule.After(overloaded, milliseconds(700)), std::nullopt);
}

// Whatever comes, in whatever order: nothing but the two kinds is asked again, and it ends.
RC_GTEST_PROP(Retry, NothingElseIsEverAskedAgainAndAllEnds, ()) {
  RetrySchedule schedule(*rc::gen::element(Repeat::kSafe, Repeat::kOnce));
  int granted = 0;
  for (int i = 0; i < 200; ++i) {
    const auto kind = static_cast<v1::Kind>(*rc::gen::inRange(0, 12));
    const auto wait = schedule.After(Of(kind), milliseconds(5000));
    if (wait) {
      RC_ASSERT(kind == v1::KIND_CONTENDED || kind == v1::KIND_UNAVAILABLE);
      RC_ASSERT(*wait >= milliseconds(0));
      RC_ASSERT(*wait < milliseconds(5000));
      ++granted;
    }
  }
  RC_ASSERT(granted <= kContendedTriesMax + kUnavailableTriesMax);
}

}  // namespace
}  // namespace tally::client
