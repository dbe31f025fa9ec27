// Items for one thread that takes all there are at once: what waits while it writes is written together.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace tally::gateway {

template <typename T>
class BatchQueue {
 public:
  // False, and the item is the caller's still, where `count_max` wait already, or after Close.
  bool Push(T& item, size_t count_max) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= count_max) return false;
      items_.push_back(std::move(item));
    }
    something_.notify_one();
    return true;
  }

  // All items, once there are any, or Wake or Close was called, or `patience` is over; perhaps none.
  std::vector<T> Take(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    something_.wait_for(lock, patience, [this] { return !items_.empty() || closed_ || woken_; });
    woken_ = false;
    return std::exchange(items_, {});
  }

  void Wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    something_.notify_one();
  }

  void Close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    something_.notify_one();
  }

  // Nothing is left, and nothing will come.
  bool Ended() const {
    const std::lock_guard lock(mutex_);
    return closed_ && items_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable something_;
  std::vector<T> items_;
  bool closed_ = false;
  bool woken_ = false;
};

}  // namespace tally::gateway
