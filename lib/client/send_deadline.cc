#include "lib/client/send_deadline.h"

#include <ctime>
#include <utility>

namespace tally::client {
namespace {

constexpr int64_t kNanosPerMilli = 1'000'000;
constexpr int64_t kNanosPerSecond = 1'000'000'000;

std::optional<int64_t> BootTimeNs() {
  timespec now{};
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  return static_cast<int64_t>(now.tv_sec) * kNanosPerSecond + now.tv_nsec;
}

}  // namespace

SendDeadline::SendDeadline(Clock clock, std::optional<int64_t> started_ns)
    : clock_(std::move(clock)), started_ns_(started_ns) {}

SendDeadline SendDeadline::Start() { return Start(BootTimeNs); }

SendDeadline SendDeadline::Start(Clock clock) {
  const std::optional<int64_t> now = clock();
  return SendDeadline(std::move(clock), now);
}

std::optional<int64_t> SendDeadline::ElapsedNs() const {
  const std::optional<int64_t> now = clock_();
  if (!started_ns_ || !now || *now < *started_ns_) return std::nullopt;
  return *now - *started_ns_;
}

bool SendDeadline::MayStillSend(int64_t send_within_ms) const {
  if (send_within_ms <= 0) return false;
  const std::optional<int64_t> elapsed = ElapsedNs();
  // Divided, not multiplied: a limit of any size is compared without overflow.
  return elapsed && *elapsed / kNanosPerMilli < send_within_ms;
}

}  // namespace tally::client
