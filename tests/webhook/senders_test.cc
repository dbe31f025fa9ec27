#include "server/webhook/senders.h"

#include <gtest/gtest.h>

#include <atomic>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace tally::webhook {
namespace {

TEST(Senders, WhatFindsNoFreeOneIsNotTaken) {
  Senders senders(2);
  absl::Notification go;
  absl::BlockingCounter ran(2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(senders.Run([&] {
      go.WaitForNotification();
      ran.DecrementCount();
    }));
  }
  EXPECT_EQ(senders.free(), 0u);
  EXPECT_FALSE(senders.Run([] { ADD_FAILURE() << "was taken"; }));
  go.Notify();
  ran.Wait();
}

TEST(Senders, StopWaitsForWhatWasTakenAndTakesNothingMore) {
  Senders senders(4);
  std::atomic<int> ran = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(senders.Run([&] {
      absl::SleepFor(absl::Milliseconds(20));
      ++ran;
    }));
  }
  senders.Stop();
  EXPECT_EQ(ran, 4);
  EXPECT_EQ(senders.free(), 0u);
  EXPECT_FALSE(senders.Run([] {}));
}

TEST(Senders, AreFreeAgainWhenTheirTaskHasEnded) {
  Senders senders(1);
  for (int i = 0; i < 100; ++i) {
    absl::Notification ran;
    while (!senders.Run([&] { ran.Notify(); })) absl::SleepFor(absl::Microseconds(100));
    ran.WaitForNotification();
  }
}

}  // namespace
}  // namespace tally::webhook
