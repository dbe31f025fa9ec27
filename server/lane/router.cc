#include "server/lane/router.h"

#include <algorithm>
#include <utility>

namespace tally::lane {

Router::Router(int lanes, LaneOptions options, const std::function<std::unique_ptr<Store>(int lane)>& open_store) {
  const int count = std::clamp(lanes, 1, static_cast<int>(kShards));
  lanes_.reserve(count);
  for (int i = 0; i < count; ++i) lanes_.push_back(std::make_unique<Lane>(options, open_store(i)));
}

Router::~Router() { Drain(Job::Clock::now()); }

void Router::Submit(std::unique_ptr<Job> job) {
  const int16_t shard = job->shard();
  if (shard < 0 || shard >= kShards) return job->Finish(Fate::kFailed);
  lanes_[LaneOf(shard)]->Submit(std::move(job));
}

void Router::Drain(Job::Clock::time_point until) {
  // All are closed before any is waited for.
  for (auto& lane : lanes_) lane->Close();
  for (auto& lane : lanes_) lane->Drain(until);
}

std::vector<Counts> Router::counts() const {
  std::vector<Counts> counts;
  counts.reserve(lanes_.size());
  for (const auto& lane : lanes_) counts.push_back(lane->counts());
  return counts;
}

}  // namespace tally::lane
