// Jobs whose fate is recorded, and a store that does what a test says.
#ifndef TALLY_TESTS_LANE_FAKE_H_
#define TALLY_TESTS_LANE_FAKE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "server/lane/job.h"

namespace tally::lane {

inline constexpr auto kNever = Job::Clock::time_point::max();
// Longer than anything takes on the slowest machine; only a broken lane waits for it.
inline constexpr std::chrono::seconds kLong{60};

// Fates by the number of the job, as often as they came.
class Fates {
 public:
  void Add(int id, Fate fate) {
    const std::lock_guard lock(mutex_);
    fates_[id].push_back(fate);
    ++count_;
    changed_.notify_all();
  }

  // False if fewer came in all that time.
  bool WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return count_ >= count; });
  }

  std::map<int, std::vector<Fate>> Get() const {
    const std::lock_guard lock(mutex_);
    return fates_;
  }

  std::vector<Fate> Of(int id) const {
    const std::lock_guard lock(mutex_);
    const auto found = fates_.find(id);
    return found == fates_.end() ? std::vector<Fate>{} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::vector<Fate>> fates_;
  size_t count_ = 0;
};

class FakeJob : public Job {
 public:
  FakeJob(int number, Fates& fates, Priority priority = Priority::kNew, Clock::time_point deadline = kNever,
          int16_t shard = 0)
      : Job(shard, priority, deadline), id(number), fates_(fates) {}
  void Finish(Fate fate) override { fates_.Add(id, fate); }

  const int id;

 private:
  Fates& fates_;
};

inline std::unique_ptr<Job> MakeJob(int id, Fates& fates, Priority priority = Priority::kNew,
                                    Job::Clock::time_point deadline = kNever, int16_t shard = 0) {
  return std::make_unique<FakeJob>(id, fates, priority, deadline, shard);
}

// Stops a store in its first transaction, so that a test can line up what comes next.
class Gate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    reached_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kLong, [&] { return open_; });
  }
  bool WaitUntilReached() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return reached_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool reached_ = false;
};

// What a store was asked, and what it committed. Outlives the lane that owns the store.
struct Record {
  struct Run {
    std::vector<int> ids;
    bool under_lock;
    BatchEnd end;
  };
  using Decide = std::function<BatchEnd(const std::vector<int>& ids, bool under_lock)>;

  explicit Record(Decide decide_by) : decide(std::move(decide_by)) {}

  std::vector<int> Committed() const {
    std::vector<int> ids;
    for (const auto& run : Runs()) {
      if (run.end == BatchEnd::kCommitted) ids.insert(ids.end(), run.ids.begin(), run.ids.end());
    }
    return ids;
  }

  std::vector<Run> Runs() const {
    const std::lock_guard lock(mutex);
    return runs;
  }

  const Decide decide;
  mutable std::mutex mutex;
  std::vector<Run> runs;  // by mutex
};

class FakeStore : public Store {
 public:
  explicit FakeStore(Record& record) : record_(record) {}

  BatchEnd Run(std::span<Job* const> batch, bool under_lock) override {
    std::vector<int> ids;
    ids.reserve(batch.size());
    for (Job* job : batch) ids.push_back(static_cast<FakeJob*>(job)->id);
    const BatchEnd end = record_.decide(ids, under_lock);
    const std::lock_guard lock(record_.mutex);
    record_.runs.push_back({std::move(ids), under_lock, end});
    return end;
  }

 private:
  Record& record_;
};

}  // namespace tally::lane

#endif  // TALLY_TESTS_LANE_FAKE_H_
