// How hard a provider may be asked.
#pragma once

#include <chrono>
#include <optional>

namespace tally::reconciler {

using std::chrono::milliseconds;

// A token bucket on a monotonic clock that the caller reads. Holds one second's worth of questions and at least one;
// full at first.
class TokenBucket {
 public:
  explicit TokenBucket(double per_second);
  // Takes one if there is one.
  bool Take(milliseconds now);
  // When there will be one, as things stand.
  milliseconds NextAt(milliseconds now);

 private:
  void Fill(milliseconds now);

  const double per_ms_;
  const double size_;
  double held_;
  milliseconds filled_{0};
};

// Bounds questions at one time as well. Not thread-safe.
class ProviderGate {
 public:
  ProviderGate(int concurrency, double per_second) : concurrency_(concurrency), bucket_(per_second) {}

  // True: one question may be asked now, and Leave() is owed for it.
  bool Enter(milliseconds now);
  void Leave() { --inside_; }
  // When Enter may be true; nullopt: not before somebody leaves.
  std::optional<milliseconds> NextAt(milliseconds now);

 private:
  const int concurrency_;
  int inside_ = 0;
  TokenBucket bucket_;
};

}  // namespace tally::reconciler
