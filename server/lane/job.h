#ifndef TALLY_SERVER_LANE_JOB_H_
#define TALLY_SERVER_LANE_JOB_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

// What a lane carries, and what it asks to carry it out. No gRPC and no database here, so that queues, lanes and the
// sweeper can be tested alone, under ThreadSanitizer.
namespace tally::lane {

// What becomes of a job.
enum class Fate {
  kDone,          // decided and committed; the store has filled in the answer
  kContended,     // lost every race, even alone; nothing happened
  kOverloaded,    // the queue was full; nothing happened
  kExpired,       // its deadline passed before it was begun, or begun again; nothing happened
  kShuttingDown,  // came too late; nothing happened
  kDown,          // the database cannot be reached; nothing happened
  kInDoubt,       // the COMMIT's reply was lost and could not be found out
  kFailed,        // the store could not carry it out (a bug, or a full disk); nothing happened
};

// Reports about a call go before new calls: they free what new ones wait for.
enum class Priority { kReport, kNew };

class Job {
 public:
  using Clock = std::chrono::steady_clock;

  Job(int16_t shard, Priority priority, Clock::time_point deadline)
      : shard_(shard), priority_(priority), deadline_(deadline) {}
  virtual ~Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int16_t shard() const { return shard_; }
  Priority priority() const { return priority_; }
  Clock::time_point deadline() const { return deadline_; }

  // Held until this job is destroyed, which is right after it was finished. The sweeper waits for its round by it.
  void Hold(std::shared_ptr<const void> companion) { companion_ = std::move(companion); }

  // Called exactly once, from the lane's thread (or the caller's, where it was never queued). Must not block or throw.
  virtual void Finish(Fate fate) = 0;

 private:
  const int16_t shard_;
  const Priority priority_;
  const Clock::time_point deadline_;
  std::shared_ptr<const void> companion_;
};

// How one transaction over a batch ended.
enum class BatchEnd {
  kCommitted,  // confirmed; every job has its answer
  kLostRace,   // rolled back by a rival (40001, 40P01, a lock timeout, a version that had moved on)
  kRejected,   // rolled back: something in the batch cannot be stored; alone, the others may be
  kDown,       // the connection is gone and nothing was committed
  kInDoubt,    // the connection is gone, and whether it committed could not be found out
};

// Carries out a batch in one transaction. A lane owns one; it is used from that lane's thread only.
class Store {
 public:
  virtual ~Store() = default;
  // Should not throw: what is thrown says nothing about the COMMIT, so the whole batch is answered kInDoubt. Logging
  // why something was rejected is the store's business; a lane only counts. `under_lock`: take the lane's advisory lock
  // before BEGIN, so that rivals of other replicas wait instead of racing.
  virtual BatchEnd Run(std::span<Job* const> batch, bool under_lock) = 0;
};

}  // namespace tally::lane

#endif  // TALLY_SERVER_LANE_JOB_H_
