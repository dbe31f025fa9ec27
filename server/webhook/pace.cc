#include "server/webhook/pace.h"

#include <algorithm>

namespace tally::webhook {
namespace {

constexpr size_t kStatesMax = 4096;

template <typename Duration>
Duration Doubled(Duration first, Duration longest, int times) {
  Duration delay = std::min(first, longest);
  for (int i = 0; i < times && delay < longest; ++i) delay = std::min(delay * 2, longest);
  return delay;
}

}  // namespace

std::chrono::microseconds RetryDelay(int tries, std::chrono::microseconds first, std::chrono::microseconds longest,
                                     double chance) {
  const auto most = Doubled(first, longest, tries - 1);
  return std::chrono::microseconds(static_cast<int64_t>(static_cast<double>(most.count()) * chance));
}

size_t Pace::Room(const WebhookId& webhook, Clock::time_point now) const {
  const auto found = states_.find(webhook);
  if (found == states_.end()) return kAtOnceMax;
  const State& state = found->second;
  if (now < state.paused_until) return 0;
  const size_t most = state.no_answers > 0 || state.errors > kErrorsMax ? 1 : kAtOnceMax;
  return state.at_once < most ? most - state.at_once : 0;
}

void Pace::Begin(const WebhookId& webhook) { ++states_[webhook].at_once; }

void Pace::Ended(const WebhookId& webhook, End end, Clock::time_point now, double chance) {
  State& state = states_[webhook];
  if (state.at_once > 0) --state.at_once;
  state.no_answers = end == End::kNoAnswer ? state.no_answers + 1 : 0;
  state.errors = end == End::kTaken ? 0 : state.errors + 1;
  // The first silence may be the message's; what comes after it is the webhook's.
  const int steps = std::max(state.no_answers - 2, state.errors - kErrorsMax - 1);
  state.paused_until = {};
  if (steps >= 0) {
    using std::chrono::milliseconds;
    const milliseconds most = Doubled<milliseconds>(kPauseFirst, kPauseLongest, steps);
    state.paused_until =
        now + milliseconds(static_cast<int64_t>(static_cast<double>(most.count()) * (0.5 + chance / 2)));
  }
  if (end == End::kTaken && state.at_once == 0) states_.erase(webhook);
  if (states_.size() > kStatesMax) {  // webhooks that were deleted while they failed are never heard of again
    absl::erase_if(states_,
                   [now](const auto& entry) { return entry.second.at_once == 0 && entry.second.paused_until <= now; });
  }
}

}  // namespace tally::webhook
