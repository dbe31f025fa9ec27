#include "server/lane/queue.h"

#include <utility>

namespace tally::lane {

std::optional<Fate> Queue::Put(std::unique_ptr<Job>& job) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return Fate::kShuttingDown;
    auto& jobs = job->priority() == Priority::kReport ? reports_ : news_;
    if (jobs.size() >= size_max_) return Fate::kOverloaded;
    jobs.push_back(std::move(job));
  }
  changed_.notify_one();
  return std::nullopt;
}

std::vector<std::unique_ptr<Job>> Queue::Take(size_t count_max) {
  std::vector<std::unique_ptr<Job>> taken;
  taken.reserve(count_max);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || !reports_.empty() || !news_.empty(); });
  for (auto* jobs : {&reports_, &news_}) {
    while (taken.size() < count_max && !jobs->empty()) {
      taken.push_back(std::move(jobs->front()));
      jobs->pop_front();
    }
  }
  return taken;
}

void Queue::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

size_t Queue::depth() const {
  const std::lock_guard lock(mutex_);
  return reports_.size() + news_.size();
}

}  // namespace tally::lane
