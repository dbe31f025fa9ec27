#include "server/webhook/senders.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

namespace tally::webhook {
namespace {

TEST(Senders, WhatFindsNoFreeOneIsNotTaken) {
  Senders senders(2);
  std::latch go(1);
  std::latch ran(2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(senders.Run([&] {
      go.wait();
      ran.count_down();
    }));
  }
  EXPECT_EQ(senders.free(), 0u);
  EXPECT_FALSE(senders.Run([] { ADD_FAILURE() << "was taken"; }));
  go.count_down();
  ran.wait();
}

TEST(Senders, StopWaitsForWhatWasTakenAndTakesNothingMore) {
  Senders senders(4);
  std::atomic<int> ran = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(senders.Run([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
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
    std::latch ran(1);
    while (!senders.Run([&] { ran.count_down(); })) std::this_thread::sleep_for(std::chrono::microseconds(100));
    ran.wait();
  }
}

}  // namespace
}  // namespace tally::webhook
