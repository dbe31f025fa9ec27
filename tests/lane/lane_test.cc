#include "server/lane/lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

#include "tests/lane/fake.h"

namespace tally::lane {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LaneOptions Quick() {
  LaneOptions options;
  options.pause_max = std::chrono::microseconds(50);
  options.patience = kLong;  // tests of patience set their own
  return options;
}

bool Has(const std::vector<int>& ids, int id) { return std::find(ids.begin(), ids.end(), id) != ids.end(); }

// A lane whose first transaction (job 0, alone) is held until Go, so that what is submitted meanwhile is one batch.
class LaneTest : public ::testing::Test {
 protected:
  void Start(Record::Decide decide, LaneOptions options = Quick()) {
    record_.emplace([this, decide = std::move(decide)](const std::vector<int>& ids, bool under_lock) {
      if (ids == std::vector{0}) {
        gate_.Pass();
        return BatchEnd::kCommitted;
      }
      return decide(ids, under_lock);
    });
    lane_.emplace(options, std::make_unique<FakeStore>(*record_));
    lane_->Submit(MakeJob(0, fates_));
    ASSERT_TRUE(gate_.WaitUntilReached());
  }

  void Submit(int first, int last) {
    for (int id = first; id <= last; ++id) lane_->Submit(MakeJob(id, fates_));
  }

  // Waits until `count` jobs, without number 0, have their fates.
  void Go(size_t count) {
    gate_.Open();
    ASSERT_TRUE(fates_.WaitFor(count + 1));
    lane_->Drain(Job::Clock::now() + kLong);
  }

  Fates fates_;
  Gate gate_;
  std::optional<Record> record_;
  std::optional<Lane> lane_;
};

BatchEnd Commit(const std::vector<int>&, bool) { return BatchEnd::kCommitted; }

TEST_F(LaneTest, WhatWaitedGoesInOneTransactionAndALoneJobAtOnce) {
  Start(Commit);
  Submit(1, 3);
  Go(3);
  const auto runs = record_->Runs();
  ASSERT_THAT(runs, SizeIs(2));
  EXPECT_THAT(runs[0].ids, ElementsAre(0));
  EXPECT_THAT(runs[1].ids, ElementsAre(1, 2, 3));
  EXPECT_FALSE(runs[1].under_lock);
  for (int id = 0; id <= 3; ++id) EXPECT_THAT(fates_.Of(id), ElementsAre(Fate::kDone));
  EXPECT_EQ(lane_->counts().batches, 2u);
  EXPECT_EQ(lane_->counts().batch_jobs, 4u);
  EXPECT_EQ(lane_->counts().of(Fate::kDone), 4u);
}

TEST_F(LaneTest, ABatchIsNeverLargerThanItsLimit) {
  auto options = Quick();
  options.batch_max = 4;
  Start(Commit, options);
  Submit(1, 10);
  Go(10);
  for (const auto& run : record_->Runs()) EXPECT_LE(run.ids.size(), 4u);
  EXPECT_THAT(record_->Committed(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10));
}

TEST_F(LaneTest, ReportsOvertakeNewCalls) {
  auto options = Quick();
  options.batch_max = 1;
  Start(Commit, options);
  Submit(1, 2);
  lane_->Submit(MakeJob(3, fates_, Priority::kReport));
  Go(3);
  EXPECT_THAT(record_->Committed(), ElementsAre(0, 3, 1, 2));
}

TEST_F(LaneTest, ALostRaceIsRunAgainUnderTheLock) {
  Start([](auto&, bool under_lock) { return under_lock ? BatchEnd::kCommitted : BatchEnd::kLostRace; });
  Submit(1, 3);
  Go(3);
  const auto runs = record_->Runs();
  ASSERT_THAT(runs, SizeIs(3));
  EXPECT_TRUE(runs[2].under_lock);
  EXPECT_THAT(runs[2].ids, ElementsAre(1, 2, 3));
  EXPECT_EQ(lane_->counts().lost_races, 1u);
  EXPECT_EQ(lane_->counts().splits, 0u);
}

TEST_F(LaneTest, OnlyTheJobThatLosesAloneIsContended) {
  Start([](auto& ids, bool) { return Has(ids, 3) ? BatchEnd::kLostRace : BatchEnd::kCommitted; });
  Submit(1, 5);
  Go(5);
  EXPECT_THAT(fates_.Of(3), ElementsAre(Fate::kContended));
  EXPECT_THAT(record_->Committed(), ElementsAre(0, 1, 2, 4, 5));
  size_t alone = 0;
  for (const auto& run : record_->Runs()) alone += run.ids == std::vector{3};
  EXPECT_EQ(alone, static_cast<size_t>(Quick().alone_tries));
  EXPECT_EQ(lane_->counts().splits, 2u) << "1 to 5, then 3 to 5";
}

TEST_F(LaneTest, OnlyTheJobThatIsRejectedAloneFails) {
  Start([](auto& ids, bool) { return Has(ids, 20) || Has(ids, 40) ? BatchEnd::kRejected : BatchEnd::kCommitted; });
  Submit(1, 64);
  Go(64);
  for (int id = 1; id <= 64; ++id) {
    EXPECT_THAT(fates_.Of(id), ElementsAre(id == 20 || id == 40 ? Fate::kFailed : Fate::kDone)) << id;
  }
  EXPECT_THAT(record_->Committed(), SizeIs(63));
  EXPECT_LE(record_->Runs().size(), 1u + 2 * (2 * 6 + 1)) << "found by halves, not one by one";
}

TEST_F(LaneTest, ALostConnectionIsTriedOnceMoreAtOnce) {
  int downs = 0;
  Start([&](auto&, bool) { return ++downs == 1 ? BatchEnd::kDown : BatchEnd::kCommitted; });
  Submit(1, 2);
  Go(2);
  EXPECT_THAT(record_->Committed(), ElementsAre(0, 1, 2));
  EXPECT_EQ(downs, 2);
}

TEST_F(LaneTest, WhileTheDatabaseIsAwayEachBatchAsksOnceOnly) {
  auto options = Quick();
  options.batch_max = 2;
  Start([](auto&, bool) { return BatchEnd::kDown; }, options);
  Submit(1, 6);
  Go(6);
  for (int id = 1; id <= 6; ++id) EXPECT_THAT(fates_.Of(id), ElementsAre(Fate::kDown));
  EXPECT_THAT(record_->Runs(), SizeIs(1 + 2 + 1 + 1));
}

TEST_F(LaneTest, WhenTheDatabaseGoesBetweenHalvesTheRestIsNotTried) {
  Start([](auto& ids, bool) { return ids.size() == 8 ? BatchEnd::kRejected : BatchEnd::kDown; });
  Submit(1, 8);
  Go(8);
  for (int id = 1; id <= 8; ++id) EXPECT_THAT(fates_.Of(id), ElementsAre(Fate::kDown));
  EXPECT_THAT(record_->Runs(), SizeIs(1 + 1 + 2));
}

TEST_F(LaneTest, InDoubtIsAnsweredAndNeverTriedAgain) {
  Start([](auto&, bool) { return BatchEnd::kInDoubt; });
  Submit(1, 3);
  Go(3);
  for (int id = 1; id <= 3; ++id) EXPECT_THAT(fates_.Of(id), ElementsAre(Fate::kInDoubt));
  EXPECT_THAT(record_->Runs(), SizeIs(2));
}

TEST_F(LaneTest, AStoreThatThrowsLeavesItsBatchInDoubtAndTheLaneAlive) {
  Start([](auto& ids, bool) -> BatchEnd {
    if (Has(ids, 1)) throw std::runtime_error("as it happens");
    return BatchEnd::kCommitted;
  });
  Submit(1, 2);
  gate_.Open();
  ASSERT_TRUE(fates_.WaitFor(3));
  Submit(3, 3);
  Go(3);
  EXPECT_THAT(fates_.Of(1), ElementsAre(Fate::kInDoubt));
  EXPECT_THAT(fates_.Of(2), ElementsAre(Fate::kInDoubt));
  EXPECT_THAT(fates_.Of(3), ElementsAre(Fate::kDone));
  EXPECT_EQ(lane_->counts().exceptions, 1u);
}

TEST_F(LaneTest, AJobWhoseDeadlinePassedIsNeverBegun) {
  Start(Commit);
  lane_->Submit(MakeJob(1, fates_, Priority::kNew, Job::Clock::now()));
  Submit(2, 2);
  Go(2);
  EXPECT_THAT(fates_.Of(1), ElementsAre(Fate::kExpired));
  EXPECT_THAT(record_->Committed(), ElementsAre(0, 2));
}

TEST_F(LaneTest, AFullQueueAnswersAtOnce) {
  auto options = Quick();
  options.queue_max = 2;
  Start(Commit, options);
  Submit(1, 3);
  EXPECT_THAT(fates_.Of(3), ElementsAre(Fate::kOverloaded)) << "though the lane is still held";
  EXPECT_THAT(fates_.Of(1), IsEmpty());
  EXPECT_EQ(lane_->counts().queue_depth, 2u);
  Go(3);
  EXPECT_THAT(record_->Committed(), ElementsAre(0, 1, 2));
}

TEST_F(LaneTest, WithoutPatienceALostRaceIsNotTriedAgain) {
  auto options = Quick();
  options.patience = std::chrono::milliseconds(0);
  Start([](auto&, bool) { return BatchEnd::kLostRace; }, options);
  Submit(1, 4);
  Go(4);
  for (int id = 1; id <= 4; ++id) EXPECT_THAT(fates_.Of(id), ElementsAre(Fate::kContended));
  EXPECT_THAT(record_->Runs(), SizeIs(2));
}

TEST_F(LaneTest, DrainFinishesWhatWasAcceptedAndRefusesWhatComes) {
  Start(Commit);
  Submit(1, 5);
  lane_->Close();
  Submit(6, 6);
  EXPECT_THAT(fates_.Of(6), ElementsAre(Fate::kShuttingDown));
  Go(6);
  for (int id = 1; id <= 5; ++id) EXPECT_THAT(fates_.Of(id), ElementsAre(Fate::kDone));
}

TEST_F(LaneTest, WhenDrainsTimeIsOverTheBatchInHandIsFinishedAndTheRestRefused) {
  Start(Commit);
  Submit(1, 200);
  std::thread drain([&] { lane_->Drain(Job::Clock::now()); });
  // Once 0 is let go the lane may find the time over at its next batch or not; either way each job is answered once.
  gate_.Open();
  drain.join();
  EXPECT_THAT(fates_.Of(0), ElementsAre(Fate::kDone));
  const auto committed = record_->Committed();
  for (int id = 1; id <= 200; ++id) {
    EXPECT_THAT(fates_.Of(id), ElementsAre(Has(committed, id) ? Fate::kDone : Fate::kShuttingDown)) << id;
  }
}

TEST_F(LaneTest, AnEndlessRaceDoesNotHoldUpTheEnd) {
  auto options = Quick();
  options.alone_tries = 1 << 30;
  Gate lost;
  Start(
      [&](auto&, bool) {
        lost.Open();
        lost.Pass();
        return BatchEnd::kLostRace;
      },
      options);
  Submit(1, 1);
  gate_.Open();
  ASSERT_TRUE(lost.WaitUntilReached());
  lane_->Drain(Job::Clock::now());
  EXPECT_THAT(fates_.Of(1), ElementsAre(Fate::kShuttingDown));
}

}  // namespace
}  // namespace tally::lane
