#include "server/webhook/senders.h"

#include <utility>

namespace tally::webhook {

Senders::Senders(size_t threads) : free_(threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Senders::~Senders() { Stop(); }

size_t Senders::free() const {
  absl::MutexLock lock(&mutex_);
  return stopping_ ? 0 : free_;
}

bool Senders::Run(absl::AnyInvocable<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (stopping_ || free_ == 0) return false;
  --free_;
  tasks_.push_back(std::move(task));
  return true;
}

void Senders::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Senders::Loop() {
  while (true) {
    absl::AnyInvocable<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &Senders::Ready));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    absl::MutexLock lock(&mutex_);
    ++free_;
  }
}

}  // namespace tally::webhook
