#include "server/rpc/workers.h"

#include <utility>

namespace tally::rpc {

Workers::Workers(int threads, size_t queue_max, const std::string& conninfo) : queue_max_(queue_max) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this, conninfo] { Loop(conninfo); });
}

Workers::~Workers() { Drain(std::chrono::steady_clock::now()); }

Workers::Post Workers::Submit(Task&& task) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return Post::kClosed;
  if (tasks_.size() >= queue_max_) return Post::kFull;
  tasks_.push_back(std::move(task));
  return Post::kTaken;
}

void Workers::Drain(std::chrono::steady_clock::time_point until) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_ || until < until_) until_ = until;
    closed_ = true;
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t Workers::waiting() const {
  absl::MutexLock lock(&mutex_);
  return tasks_.size();
}

void Workers::Loop(const std::string& conninfo) {
  ledger::Connection connection(conninfo);
  while (true) {
    Task task;
    bool late = false;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Workers::Ready));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      late = closed_ && std::chrono::steady_clock::now() >= until_;
    }
    task(late ? nullptr : &connection);
  }
}

}  // namespace tally::rpc
