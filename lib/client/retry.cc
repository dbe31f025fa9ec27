#include "lib/client/retry.h"

#include <algorithm>
#include <utility>

#include "absl/random/random.h"

namespace tally::client {
namespace {

int64_t SystemUniform(int64_t low, int64_t high) {
  thread_local absl::BitGen generator;
  return absl::Uniform<int64_t>(absl::IntervalClosed, generator, low, high);
}

}  // namespace

RetrySchedule::RetrySchedule(Repeat repeat) : RetrySchedule(repeat, SystemUniform) {}

RetrySchedule::RetrySchedule(Repeat repeat, Uniform uniform) : repeat_(repeat), uniform_(std::move(uniform)) {}

std::optional<std::chrono::milliseconds> RetrySchedule::After(const Failure& failure, std::chrono::milliseconds left) {
  std::chrono::milliseconds wait{};
  if (failure.kind == v1::KIND_CONTENDED) {
    // Rolled back, so nothing was done: safe for requests of either sort.
    if (++contended_ >= kContendedTriesMax) return std::nullopt;
    wait = std::chrono::milliseconds(uniform_(kContendedDelay.count() / 2, kContendedDelay.count() * 3 / 2));
  } else if (failure.kind == v1::KIND_UNAVAILABLE && repeat_ == Repeat::kSafe) {
    if (++unavailable_ >= kUnavailableTriesMax) return std::nullopt;
    const int doublings = std::min(unavailable_ - 1, 10);
    const auto ceiling = std::min(kUnavailableDelayMax, kUnavailableDelayFirst * (1 << doublings));
    wait = std::chrono::milliseconds(uniform_(0, ceiling.count()));
  } else {
    return std::nullopt;
  }
  // The server's wish comes first, our jitter on top of it: many clients were told the same.
  if (failure.retry_delay) wait += *failure.retry_delay;
  if (wait >= left) return std::nullopt;
  return wait;
}

}  // namespace tally::client
