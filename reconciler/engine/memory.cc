#include "reconciler/engine/memory.h"

#include <algorithm>

namespace tally::reconciler {
namespace {

constexpr size_t kSightingsMax = 200;  // of one attempt

// The oldest of its kind makes way: what it said is said by the others.
void Append(std::vector<Sighting>& seen, const Sighting& sighting) {
  if (seen.size() >= kSightingsMax) {
    const auto same =
        std::find_if(seen.begin(), seen.end(), [&](const Sighting& old) { return old.finding == sighting.finding; });
    if (same == seen.end()) return;
    seen.erase(same);
  }
  seen.push_back(sighting);
}

}  // namespace

std::vector<Sighting> Memory::Of(const std::string& attempt_id) const {
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(attempt_id);
  return found == seen_.end() ? std::vector<Sighting>() : found->second;
}

void Memory::Add(const std::string& attempt_id, const Sighting& sighting) {
  if (sighting.finding == v1::FINDING_UNCLEAR) return;  // nothing is judged by it
  const std::lock_guard lock(mutex_);
  const auto found = seen_.find(attempt_id);
  if (found != seen_.end()) return Append(found->second, sighting);
  while (seen_.size() >= attempts_max_ && !order_.empty()) {
    seen_.erase(order_.front());
    order_.pop_front();
  }
  seen_[attempt_id] = {sighting};
  order_.push_back(attempt_id);
  // Names of the forgotten go when they are most of it.
  if (order_.size() > 2 * seen_.size() + 1024) {
    std::deque<std::string> kept;
    for (std::string& id : order_) {
      if (seen_.contains(id)) kept.push_back(std::move(id));
    }
    order_ = std::move(kept);
  }
}

void Memory::Forget(const std::string& attempt_id) {
  const std::lock_guard lock(mutex_);
  seen_.erase(attempt_id);
}

size_t Memory::size() const {
  const std::lock_guard lock(mutex_);
  return seen_.size();
}

}  // namespace tally::reconciler
