#include "reconciler/engine/queue.h"

#include <algorithm>

namespace tally::reconciler {

milliseconds MonotonicNow() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch());
}

JobQueue::JobQueue(const std::vector<ProviderConfig>& providers, size_t size_max) : size_max_(size_max) {
  for (const ProviderConfig& provider : providers) {
    gates_.try_emplace(provider.name, provider.concurrency, provider.per_second);
  }
}

bool JobQueue::Offer(const Job& job) {
  const std::lock_guard lock(mutex_);
  if (known_.contains(job.call_id)) return true;
  if (waiting_.size() >= size_max_) return false;
  known_.insert(job.call_id);
  waiting_.push_back(job);
  changed_.notify_one();
  return true;
}

std::optional<Job> JobQueue::Next(milliseconds now, std::optional<milliseconds>& look_at) {
  std::set<std::string_view> shut;  // asked already
  for (auto job = waiting_.begin(); job != waiting_.end(); ++job) {
    const auto gate = gates_.find(job->provider);
    if (gate != gates_.end()) {
      if (shut.contains(job->provider)) continue;
      if (!gate->second.Enter(now)) {
        shut.insert(job->provider);
        const std::optional<milliseconds> next = gate->second.NextAt(now);
        if (next && (!look_at || *next < *look_at)) look_at = next;
        continue;
      }
    }
    Job taken = *job;
    waiting_.erase(job);
    return taken;
  }
  return std::nullopt;
}

std::optional<Job> JobQueue::Take() {
  std::unique_lock lock(mutex_);
  // Ends with Stop(); every turn waits.
  while (!stopped_) {
    const milliseconds now = MonotonicNow();
    std::optional<milliseconds> look_at;
    if (std::optional<Job> job = Next(now, look_at)) return job;
    if (look_at) {
      changed_.wait_for(lock, std::max(milliseconds(1), *look_at - now));
    } else {
      changed_.wait(lock);
    }
  }
  return std::nullopt;
}

void JobQueue::Done(const Job& job) {
  const std::lock_guard lock(mutex_);
  known_.erase(job.call_id);
  if (const auto gate = gates_.find(job.provider); gate != gates_.end()) gate->second.Leave();
  changed_.notify_all();
}

void JobQueue::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

size_t JobQueue::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

size_t JobQueue::in_hand() const {
  const std::lock_guard lock(mutex_);
  return known_.size() - waiting_.size();
}

}  // namespace tally::reconciler
