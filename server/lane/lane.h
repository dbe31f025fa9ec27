#ifndef TALLY_SERVER_LANE_LANE_H_
#define TALLY_SERVER_LANE_LANE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "server/lane/counters.h"
#include "server/lane/job.h"
#include "server/lane/queue.h"

namespace tally::lane {

struct LaneOptions {
  size_t batch_max = 128;   // jobs in one transaction; at least 1
  size_t queue_max = 4096;  // jobs that wait, of each priority; one more is answered kOverloaded
  int alone_tries = 4;      // transactions in which a job may lose alone before it is answered kContended
  // Before a batch that lost is tried again: a random time up to this, doubled with every further loss.
  std::chrono::microseconds pause_max{2000};
  // Once a batch is this old, what loses once more is answered kContended: others are waiting behind it.
  std::chrono::milliseconds patience{2000};
};

// One thread and one store. Takes what waits, as one batch; when nothing waits, the next job goes alone and at once.
//
// A batch that loses a race is tried again under the lane's lock, then in halves, down to single jobs. A batch that is
// rejected is cut in halves until the job that made it fail stands alone. Halves go in order, so that jobs of one
// priority are carried out in the order in which they came. A batch of n costs at most n × (alone_tries + 2)
// transactions (and one more where the database had gone).
class Lane {
 public:
  Lane(LaneOptions options, std::unique_ptr<Store> store);
  ~Lane();  // Drain(0)

  // From any thread; never waits. Every job is finished exactly once, here if it is refused.
  void Submit(std::unique_ptr<Job> job);

  // What is submitted from now on is answered kShuttingDown.
  void Close() { queue_.Close(); }

  // Close, and finish what was accepted. At `until`, what has not been begun is answered kShuttingDown, and the batch
  // in hand is not tried again: this returns at `until` and the length of one transaction at the latest.
  void Drain(Job::Clock::time_point until);

  Counts counts() const;

 private:
  using Jobs = std::span<std::unique_ptr<Job>>;  // those that are finished are null

  void Loop();
  void Carry(Jobs jobs, bool under_lock);
  void CarryHalves(Jobs jobs, bool under_lock);
  BatchEnd Run(std::span<Job* const> batch, bool under_lock);
  std::vector<Job*> ToBegin(Jobs jobs);
  void Pause(int losses);
  void Finish(std::unique_ptr<Job>& job, Fate fate);
  void FinishAll(Jobs jobs, Fate fate);

  const LaneOptions options_;
  Queue queue_;
  Counters counters_;
  std::atomic<bool> abandoned_ = false;  // Drain's time is over

  std::mutex drained_mutex_;
  std::condition_variable drained_changed_;
  bool drained_ = false;  // by drained_mutex_

  // The thread's own.
  const std::unique_ptr<Store> store_;
  std::minstd_rand random_;
  Job::Clock::time_point patience_end_;
  bool down_ = false;     // the last transaction found no database
  bool give_up_ = false;  // and this batch has waited for it twice

  std::mutex join_mutex_;
  std::thread thread_;  // joined under join_mutex_; last, so that it starts when all else stands
};

}  // namespace tally::lane

#endif  // TALLY_SERVER_LANE_LANE_H_
