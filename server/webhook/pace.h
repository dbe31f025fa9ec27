#ifndef TALLY_SERVER_WEBHOOK_PACE_H_
#define TALLY_SERVER_WEBHOOK_PACE_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"

// Who may be sent to now. Pure: times and chance come from the caller.
namespace tally::webhook {

using Clock = std::chrono::steady_clock;
using WebhookId = std::array<uint8_t, 16>;

// How long a message waits after its `tries`th failed try: exponential between `first` and `longest`, with full jitter:
// anything from nothing to that long. `chance` in [0, 1).
std::chrono::microseconds RetryDelay(int tries, std::chrono::microseconds first, std::chrono::microseconds longest,
                                     double chance);

// Sees to it that webhooks which answer slowly, or not at all, take few of the senders: a few sends at a time to each;
// one while it does not answer, with growing pauses between them. One that does answer, if only with errors, is paused
// only once everything that is sent to it fails: a single call's message that it cannot take holds up no other call's.
class Pace {
 public:
  static constexpr size_t kAtOnceMax = 4;  // sends to one webhook
  static constexpr int kErrorsMax = 8;     // one after the other, before it is paused
  static constexpr std::chrono::seconds kPauseFirst{2};
  static constexpr std::chrono::seconds kPauseLongest{60};

  enum class End { kTaken, kError /* an answer, but not 2xx */, kNoAnswer };

  // How many sends to it may begin now.
  size_t Room(const WebhookId& webhook, Clock::time_point now) const;
  void Begin(const WebhookId& webhook);
  void Ended(const WebhookId& webhook, End end, Clock::time_point now, double chance);

  size_t size() const { return states_.size(); }  // webhooks that it remembers

 private:
  struct State {
    size_t at_once = 0;
    int no_answers = 0;  // one after the other
    int errors = 0;
    Clock::time_point paused_until{};
  };
  absl::flat_hash_map<WebhookId, State> states_;  // only of those that something is sent to, or that failed last
};

}  // namespace tally::webhook

#endif  // TALLY_SERVER_WEBHOOK_PACE_H_
