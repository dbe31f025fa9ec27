#ifndef TALLY_SERVER_LANE_ROUTER_H_
#define TALLY_SERVER_LANE_ROUTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/lane/counters.h"
#include "server/lane/intake.h"
#include "server/lane/job.h"
#include "server/lane/lane.h"

namespace tally::lane {

// Into how many shards subjects fall. The shard leads the keys of the hot tables and is stored in every row: it never
// changes. Lanes are a setting of the process; each has a range of neighbouring shards, so that its rows share index
// pages with nobody else's.
inline constexpr int16_t kShards = 16;

class Router final : public Intake {
 public:
  // `open_store` is called once for each lane, from 0, before this returns. 1 <= lanes <= kShards; more or less is
  // brought into that range.
  Router(int lanes, LaneOptions options, const std::function<std::unique_ptr<Store>(int lane)>& open_store);
  ~Router() override;  // Drain(now)

  int lanes() const { return static_cast<int>(lanes_.size()); }
  int LaneOf(int16_t shard) const { return shard * lanes() / kShards; }

  // A shard that does not exist is kFailed.
  void Submit(std::unique_ptr<Job> job) override;
  // See Lane::Drain.
  void Drain(Job::Clock::time_point until) override;

  // One for each lane.
  std::vector<Counts> counts() const;

 private:
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tally::lane

#endif  // TALLY_SERVER_LANE_ROUTER_H_
