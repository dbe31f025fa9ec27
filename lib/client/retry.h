// When a client asks again. Two kinds only, always with the same request, so the same key and attempt id: `contended`,
// 50 ms jittered, three tries in all; and `unavailable`, with full jitter, until the call's deadline. Nothing else,
// ever.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "lib/client/error_map.h"

namespace tally::client {

// Whether a request may be sent again when its answer was lost.
enum class Repeat {
  kSafe,  // reads, and requests that get their original answer again
  kOnce,  // would do a second thing: mint, create, claim
};

inline constexpr int kContendedTriesMax = 3;
inline constexpr int kUnavailableTriesMax = 50;
inline constexpr std::chrono::milliseconds kContendedDelay{50};
inline constexpr std::chrono::milliseconds kUnavailableDelayFirst{50};
inline constexpr std::chrono::milliseconds kUnavailableDelayMax{2000};

// The state of one call's retries.
class RetrySchedule {
 public:
  // uniform(low, high): a random number in [low, high], from the system's generator by default.
  using Uniform = std::function<int64_t(int64_t, int64_t)>;

  explicit RetrySchedule(Repeat repeat);
  RetrySchedule(Repeat repeat, Uniform uniform);

  // How long to wait before asking again after this failure, with `left` of the call's time remaining; nullopt: give up
  // and hand the failure on. A wait that would use up `left` is giving up.
  std::optional<std::chrono::milliseconds> After(const Failure& failure, std::chrono::milliseconds left);

 private:
  Repeat repeat_;
  Uniform uniform_;
  int contended_ = 0;
  int unavailable_ = 0;
};

}  // namespace tally::client
