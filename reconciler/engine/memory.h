// What this process saw itself, by attempt. Lost with the process, which costs time and nothing else: an absence then
// has to be seen twice again. Thread-safe.
#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "reconciler/engine/judge.h"

namespace tally::reconciler {

class Memory {
 public:
  explicit Memory(size_t attempts_max = 100'000) : attempts_max_(attempts_max) {}

  std::vector<Sighting> Of(const std::string& attempt_id) const;
  // UNCLEAR is not kept. Beyond `attempts_max` the attempt that was first seen longest ago is forgotten, and of one
  // attempt no more than some hundreds are kept.
  void Add(const std::string& attempt_id, const Sighting& sighting);
  void Forget(const std::string& attempt_id);
  size_t size() const;

 private:
  const size_t attempts_max_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Sighting>> seen_;
  std::deque<std::string> order_;  // may name attempts that are forgotten
};

}  // namespace tally::reconciler
