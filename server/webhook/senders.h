#ifndef TALLY_SERVER_WEBHOOK_SENDERS_H_
#define TALLY_SERVER_WEBHOOK_SENDERS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"

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

  mutable std::mutex mutex_;  // guards what follows; ThreadSanitizer cannot see into Debian's absl::Mutex
  std::condition_variable changed_;
  size_t free_;  // threads that neither run nor were given a task
  std::deque<absl::AnyInvocable<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tally::webhook

#endif  // TALLY_SERVER_WEBHOOK_SENDERS_H_
