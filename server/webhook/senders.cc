#include "server/webhook/senders.h"

#include <utility>

namespace tally::webhook {

Senders::Senders(size_t threads) : free_(threads) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

Senders::~Senders() { Stop(); }

size_t Senders::free() const {
  const std::lock_guard lock(mutex_);
  return stopping_ ? 0 : free_;
}

bool Senders::Run(absl::AnyInvocable<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || free_ == 0) return false;
  --free_;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
  return true;
}

void Senders::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Senders::Loop() {
  while (true) {
    absl::AnyInvocable<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    const std::lock_guard lock(mutex_);
    ++free_;
  }
}

}  // namespace tally::webhook
