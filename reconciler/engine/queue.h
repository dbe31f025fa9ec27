// Parked calls that wait to be worked on, and who is worked on. A provider that is slow, or may be asked no more for
// now, holds up nobody else's calls. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "reconciler/config/config.h"
#include "reconciler/engine/gate.h"

namespace tally::reconciler {

struct Job {
  std::string call_id;
  std::string provider;  // empty: none is asked
};

class JobQueue {
 public:
  JobQueue(const std::vector<ProviderConfig>& providers, size_t size_max);

  // False: it is full, and nothing was taken. A call that is in it or worked on is left alone, and true is returned.
  bool Offer(const Job& job);
  // Waits for one whose provider may be asked now; nullopt once Stop() was called. Done() is owed for it.
  std::optional<Job> Take();
  void Done(const Job& job);
  // Nothing more is handed out.
  void Stop();

  size_t waiting() const;
  size_t in_hand() const;  // handed out and not done

 private:
  // Under the lock: the first that may go, or when to look again.
  std::optional<Job> Next(milliseconds now, std::optional<milliseconds>& look_at);

  const size_t size_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> waiting_;
  std::set<std::string> known_;  // waiting or in hand
  std::map<std::string, ProviderGate> gates_;
  bool stopped_ = false;
};

// A monotonic clock's time since some moment; it does not count suspension, so it never runs ahead of the database's.
milliseconds MonotonicNow();

}  // namespace tally::reconciler
