#ifndef TALLY_SERVER_RPC_WORKERS_H_
#define TALLY_SERVER_RPC_WORKERS_H_

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/ledger/transaction.h"

namespace tally::rpc {

// Threads, each with a connection of its own, for everything that is not the hot path. Bounded: what does not fit is
// refused before any work is done on it.
class Workers {
 public:
  // Called exactly once, from a worker's thread; with null when it comes too late to be begun. Must not throw.
  using Task = absl::AnyInvocable<void(ledger::Connection*)>;

  Workers(int threads, size_t queue_max, const std::string& conninfo);
  ~Workers();  // Drain(now)

  enum class Post { kTaken, kFull, kClosed };
  // From any thread; never waits. Moves from `task` only where it is taken.
  Post Submit(Task&& task);

  // Takes nothing more, begins what waits until `until`, and returns when all has ended: at the length of one
  // transaction after `until` at the latest.
  void Drain(std::chrono::steady_clock::time_point until);

  size_t waiting() const;

 private:
  void Loop(const std::string& conninfo);
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closed_ || !tasks_.empty(); }

  const size_t queue_max_;
  mutable absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point until_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_WORKERS_H_
