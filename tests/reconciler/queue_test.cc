#include "reconciler/engine/queue.h"

#include <gtest/gtest.h>

#include <thread>

namespace tally::reconciler {
namespace {

std::vector<ProviderConfig> Providers() {
  std::vector<ProviderConfig> providers(2);
  providers[0].name = "narrow";
  providers[0].concurrency = 1;
  providers[1].name = "wide";
  providers[1].concurrency = 256;
  for (ProviderConfig& provider : providers) provider.per_second = 10'000;
  return providers;
}

TEST(JobQueue, AProviderThatIsBusyHoldsUpNobodyElse) {
  JobQueue queue(Providers(), 10);
  for (const auto& [call, provider] : {std::pair{"a", "narrow"}, {"b", "narrow"}, {"c", "wide"}, {"d", ""}}) {
    EXPECT_TRUE(queue.Offer({call, provider}));
  }
  const Job a = *queue.Take();
  EXPECT_EQ(a.call_id, "a");
  EXPECT_EQ(queue.Take()->call_id, "c");
  EXPECT_EQ(queue.Take()->call_id, "d");
  EXPECT_EQ(queue.waiting(), 1u);
  EXPECT_EQ(queue.in_hand(), 3u);
  std::thread done([&] { queue.Done(a); });
  EXPECT_EQ(queue.Take()->call_id, "b");
  done.join();
}

TEST(JobQueue, ACallIsInItOnce) {
  JobQueue queue(Providers(), 1);
  EXPECT_TRUE(queue.Offer({"a", "wide"}));
  EXPECT_TRUE(queue.Offer({"a", "wide"}));
  EXPECT_FALSE(queue.Offer({"b", "wide"})) << "full";
  const Job a = *queue.Take();
  EXPECT_TRUE(queue.Offer({"a", "wide"})) << "in hand";
  EXPECT_EQ(queue.waiting(), 0u);
  EXPECT_TRUE(queue.Offer({"b", "wide"}));
  queue.Done(a);
  EXPECT_FALSE(queue.Offer({"a", "wide"})) << "full";
}

TEST(JobQueue, StopWakesWhoWaits) {
  JobQueue queue(Providers(), 10);
  std::thread waits([&] { EXPECT_FALSE(queue.Take().has_value()); });
  queue.Stop();
  waits.join();
  queue.Offer({"a", "wide"});
  EXPECT_FALSE(queue.Take().has_value());
}

}  // namespace
}  // namespace tally::reconciler
