#ifndef TALLY_SERVER_LANE_QUEUE_H_
#define TALLY_SERVER_LANE_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "server/lane/job.h"

namespace tally::lane {

// Jobs that wait for a lane. Many threads put, one takes. Reports leave before new calls; within each, first in is
// first out.
class Queue {
 public:
  // `size_max` holds for each priority, so that new calls cannot crowd out the reports that would make room for them.
  explicit Queue(size_t size_max) : size_max_(size_max) {}

  // Never waits. A job that is refused stays with the caller: kOverloaded when there are too many, kShuttingDown when
  // closed.
  std::optional<Fate> Put(std::unique_ptr<Job>& job);

  // Waits for a job, then takes what is there, at most `count_max`. Empty only when closed and drained.
  std::vector<std::unique_ptr<Job>> Take(size_t count_max);

  // From now on every Put is refused; what is in can still be taken.
  void Close();

  size_t depth() const;

 private:
  const size_t size_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> reports_;  // by mutex_, as all below
  std::deque<std::unique_ptr<Job>> news_;
  bool closed_ = false;
};

}  // namespace tally::lane

#endif  // TALLY_SERVER_LANE_QUEUE_H_
