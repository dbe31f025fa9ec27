#include "server/lane/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/lane/fake.h"

namespace tally::lane {
namespace {

using ::testing::ElementsAre;

std::vector<int> Ids(const std::vector<std::unique_ptr<Job>>& jobs) {
  std::vector<int> ids;
  for (const auto& job : jobs) ids.push_back(static_cast<FakeJob*>(job.get())->id);
  return ids;
}

struct QueueTest : ::testing::Test {
  std::optional<Fate> Put(Queue& queue, int id, Priority priority = Priority::kNew) {
    auto job = MakeJob(id, fates, priority);
    const auto refused = queue.Put(job);
    EXPECT_EQ(refused.has_value(), job != nullptr) << "only a job that was refused stays with the caller";
    return refused;
  }
  Fates fates;
};

TEST_F(QueueTest, ReportsLeaveFirstAndEachPriorityInTheOrderItCame) {
  Queue queue(10);
  Put(queue, 1);
  Put(queue, 2, Priority::kReport);
  Put(queue, 3);
  Put(queue, 4, Priority::kReport);
  EXPECT_THAT(Ids(queue.Take(3)), ElementsAre(2, 4, 1));
  EXPECT_THAT(Ids(queue.Take(3)), ElementsAre(3));
}

TEST_F(QueueTest, OneTooManyIsOverloadedAndReportsHaveRoomOfTheirOwn) {
  Queue queue(2);
  EXPECT_EQ(Put(queue, 1), std::nullopt);
  EXPECT_EQ(Put(queue, 2), std::nullopt);
  EXPECT_EQ(Put(queue, 3), Fate::kOverloaded);
  EXPECT_EQ(Put(queue, 4, Priority::kReport), std::nullopt);
  EXPECT_EQ(queue.depth(), 3u);
  EXPECT_THAT(Ids(queue.Take(2)), ElementsAre(4, 1));
  EXPECT_EQ(Put(queue, 5), std::nullopt);
}

TEST_F(QueueTest, ClosedItRefusesButGivesOutWhatIsIn) {
  Queue queue(2);
  Put(queue, 1);
  queue.Close();
  EXPECT_EQ(Put(queue, 2), Fate::kShuttingDown);
  EXPECT_THAT(Ids(queue.Take(5)), ElementsAre(1));
  EXPECT_TRUE(queue.Take(5).empty());
}

TEST_F(QueueTest, WhoWaitsIsWokenByAJobAndByTheEnd) {
  Queue queue(2);
  std::vector<int> taken;
  std::thread taker([&] {
    for (auto jobs = queue.Take(1); !jobs.empty(); jobs = queue.Take(1)) taken.push_back(Ids(jobs).front());
  });
  Put(queue, 7);
  queue.Close();
  taker.join();
  EXPECT_THAT(taken, ElementsAre(7));
}

}  // namespace
}  // namespace tally::lane
