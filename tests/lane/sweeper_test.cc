#include "server/lane/sweeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>

#include "tests/lane/fake.h"

namespace tally::lane {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

// What a sweeper did, and a place where its jobs wait until the test finishes them.
class Desk {
 public:
  std::vector<std::unique_ptr<Job>> Find(int count) {
    const std::lock_guard lock(mutex_);
    ++rounds_;
    changed_.notify_all();
    std::vector<std::unique_ptr<Job>> jobs;
    for (int i = 0; i < count; ++i) jobs.push_back(MakeJob(i, fates));
    return jobs;
  }
  void Take(std::unique_ptr<Job> job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    changed_.notify_all();
  }
  bool WaitForRounds(int rounds) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return rounds_ >= rounds; });
  }
  bool WaitForJobs(size_t jobs) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return jobs_.size() >= jobs; });
  }
  void FinishOne() {
    std::unique_ptr<Job> job;
    {
      const std::lock_guard lock(mutex_);
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job->Finish(Fate::kDone);
  }
  int rounds() {
    const std::lock_guard lock(mutex_);
    return rounds_;
  }

  Fates fates;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int rounds_ = 0;
  std::deque<std::unique_ptr<Job>> jobs_;
};

TEST(SweeperTest, ComesBackWhenThereWasNothingToDo) {
  Desk desk;
  Sweeper sweeper(
      milliseconds(1), [&] { return desk.Find(0); }, [&](auto job) { desk.Take(std::move(job)); });
  EXPECT_TRUE(desk.WaitForRounds(3));
  sweeper.Stop();
  EXPECT_EQ(sweeper.counts().jobs, 0u);
}

TEST(SweeperTest, NeverBeginsARoundBeforeTheLastJobOfTheOneBeforeIsFinished) {
  Desk desk;
  Sweeper sweeper(
      milliseconds(0), [&] { return desk.Find(2); }, [&](auto job) { desk.Take(std::move(job)); });
  for (int round = 1; round <= 3; ++round) {
    ASSERT_TRUE(desk.WaitForJobs(2));
    EXPECT_EQ(desk.rounds(), round);
    desk.FinishOne();
    std::this_thread::sleep_for(milliseconds(2));  // a sweeper that does not wait would have come back by now
    EXPECT_EQ(desk.rounds(), round);
    desk.FinishOne();
  }
  ASSERT_TRUE(desk.WaitForRounds(4));
  sweeper.Stop();
  EXPECT_EQ(sweeper.counts().jobs, 8u);
}

TEST(SweeperTest, StopsInItsPauseAndInARoundThatIsNotFinishedWhoseJobsMayOutliveIt) {
  Desk desk;
  {
    Sweeper pausing(
        kLong * 60, [&] { return desk.Find(0); }, [&](auto job) { desk.Take(std::move(job)); });
    ASSERT_TRUE(desk.WaitForRounds(1));
  }
  {
    Sweeper waiting(
        milliseconds(0), [&] { return desk.Find(1); }, [&](auto job) { desk.Take(std::move(job)); });
    ASSERT_TRUE(desk.WaitForJobs(1));
    waiting.Stop();
    waiting.Stop();
  }
  desk.FinishOne();
  EXPECT_THAT(desk.fates.Of(0), ElementsAre(Fate::kDone));
}

TEST(SweeperTest, ARoundThatFailsIsCountedAndTheNextOneComes) {
  Desk desk;
  Sweeper sweeper(
      milliseconds(1),
      [&]() -> std::vector<std::unique_ptr<Job>> {
        (void)desk.Find(0);
        throw std::runtime_error("no connection");
      },
      [&](auto job) { desk.Take(std::move(job)); });
  EXPECT_TRUE(desk.WaitForRounds(3));
  sweeper.Stop();
  EXPECT_EQ(sweeper.counts().failed_rounds, sweeper.counts().rounds);
  EXPECT_GE(sweeper.counts().rounds, 3u);
}

TEST(SweeperTest, AJobRefusedAtOnceCountsAsFinished) {
  Desk desk;
  Sweeper sweeper(
      milliseconds(0), [&] { return desk.Find(1); }, [&](std::unique_ptr<Job> job) { job->Finish(Fate::kOverloaded); });
  EXPECT_TRUE(desk.WaitForRounds(3));
}

}  // namespace
}  // namespace tally::lane
