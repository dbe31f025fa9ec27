#include "server/lane/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/lane/fake.h"

namespace tally::lane {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;

struct RouterTest : ::testing::Test {
  std::function<std::unique_ptr<Store>(int)> Stores() {
    return [this](int lane) {
      records.emplace(std::piecewise_construct, std::forward_as_tuple(lane),
                      std::forward_as_tuple([](auto&, bool) { return BatchEnd::kCommitted; }));
      return std::make_unique<FakeStore>(records.at(lane));
    };
  }
  Fates fates;
  std::map<int, Record> records;
};

TEST_F(RouterTest, EachLaneHasNeighbouringShardsAndNearlyAsManyAsEveryOther) {
  for (int lanes = 1; lanes <= kShards; ++lanes) {
    records.clear();
    const Router router(lanes, {}, Stores());
    std::map<int, int> shards_of;
    int last = 0;
    for (int16_t shard = 0; shard < kShards; ++shard) {
      const int lane = router.LaneOf(shard);
      ASSERT_THAT(lane - last, testing::AllOf(testing::Ge(0), Le(1)));
      last = lane;
      ++shards_of[lane];
    }
    ASSERT_EQ(shards_of.size(), static_cast<size_t>(lanes));
    for (const auto& [lane, shards] : shards_of) {
      EXPECT_GE(shards, kShards / lanes);
      EXPECT_LE(shards, (kShards + lanes - 1) / lanes);
    }
  }
}

TEST_F(RouterTest, AJobGoesToTheLaneOfItsShardAndOneOfNoShardFails) {
  {
    Router router(2, {}, Stores());
    for (int16_t shard = -1; shard <= kShards; ++shard) {
      router.Submit(MakeJob(shard, fates, Priority::kNew, kNever, shard));
    }
    router.Drain(Job::Clock::now() + kLong);
    EXPECT_EQ(router.counts()[0].of(Fate::kDone), 8u);
    EXPECT_EQ(router.counts()[1].of(Fate::kDone), 8u);
    router.Submit(MakeJob(99, fates));
  }
  EXPECT_THAT(records.at(0).Committed(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(records.at(1).Committed(), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_THAT(fates.Of(-1), ElementsAre(Fate::kFailed));
  EXPECT_THAT(fates.Of(kShards), ElementsAre(Fate::kFailed));
  EXPECT_THAT(fates.Of(99), ElementsAre(Fate::kShuttingDown));
}

TEST_F(RouterTest, ManySubmittersAndADrainAmongThemLoseNoJob) {
  constexpr int kThreads = 8;
  constexpr int kEach = 500;
  LaneOptions options;
  options.queue_max = 100;
  Router router(3, options, Stores());
  std::vector<std::thread> submitters;
  for (int t = 0; t < kThreads; ++t) {
    submitters.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        router.Submit(MakeJob(t * kEach + i, fates, i % 3 == 0 ? Priority::kReport : Priority::kNew, kNever,
                              static_cast<int16_t>(i % kShards)));
        if (i % 50 == 0) (void)router.counts();
      }
    });
  }
  EXPECT_TRUE(fates.WaitFor(kThreads * kEach / 2));
  router.Drain(Job::Clock::now() + kLong);
  for (auto& submitter : submitters) submitter.join();

  std::map<int, int> committed;
  for (const auto& [lane, record] : records) {
    for (const int id : record.Committed()) ++committed[id];
  }
  const auto all = fates.Get();
  ASSERT_EQ(all.size(), static_cast<size_t>(kThreads * kEach));
  for (const auto& [id, fate] : all) {
    ASSERT_EQ(fate.size(), 1u) << id;
    if (fate[0] == Fate::kDone) {
      EXPECT_EQ(committed[id], 1) << id;
    } else {
      EXPECT_TRUE(fate[0] == Fate::kOverloaded || fate[0] == Fate::kShuttingDown) << id;
      EXPECT_EQ(committed[id], 0) << id;
    }
  }
}

}  // namespace
}  // namespace tally::lane
