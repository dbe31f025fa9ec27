#ifndef TALLY_SERVER_WEBHOOK_SENDERS_H_
#define TALLY_SERVER_WEBHOOK_SENDERS_H_

#include <cstddef>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace tally::webhook {

// Threads that wait for other people's servers. Nothing queues: what finds no free one is not taken.
class Senders {
 public:
  explicit Senders(size_t threads);
  ~Senders();  // Stop

  size_t free() const;
  // True: `task` is run, at once. It must not throw.
  bool Run(absl::AnyInvocable<void()> task);

  // Takes nothing more, and returns when what was taken has ended.
  void Stop();

 private:
  void Loop();
  bool Ready() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !tasks_.empty(); }

  mutable absl::Mutex mutex_;
  size_t free_ ABSL_GUARDED_BY(mutex_);  // threads that neither run nor were given a task
  std::deque<absl::AnyInvocable<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace tally::webhook

#endif  // TALLY_SERVER_WEBHOOK_SENDERS_H_
