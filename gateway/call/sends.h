// The sends of one attempt of a keyed tool, each of which may still be answered.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>

#include "gateway/upstream/session.h"

namespace tally::gateway {

namespace asio = boost::asio;

struct Sent {
  SharedUpstream upstream;
  SharedExchange exchange;
  std::chrono::steady_clock::time_point began;
  int number = 1;      // of the attempt's sends
  bool heard = false;  // its answer was looked at
};

class Sends {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Sends(const asio::any_io_executor& loop)
      : changed_(std::make_shared<asio::steady_timer>(loop, Clock::time_point::max())) {}
  ~Sends();
  Sends(const Sends&) = delete;

  // The reference stays good.
  Sent& Add(SharedUpstream upstream, SharedExchange exchange, Clock::time_point began, int number);
  // The next that was answered and not heard yet; null: none until then. One waiter at a time.
  asio::awaitable<Sent*> Next(Clock::time_point until);
  // Whether one that was written has no answer yet.
  bool outstanding() const;

 private:
  const std::shared_ptr<asio::steady_timer> changed_;
  std::deque<Sent> all_;
};

// When a request may be sent again, counted from before Authorize: the provider must remember its key for as long as an
// answer may take, and a margin.
struct ReplayLimits {
  std::chrono::milliseconds window;
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds margin;

  bool Allow(std::chrono::milliseconds elapsed) const { return elapsed + timeout + margin <= window; }
};

// Of one attempt, the first included.
inline constexpr int kSendsMax = 4;
// Before the send of that number (from 2): from half a second, doubling, half of it by chance.
std::chrono::milliseconds PauseBefore(int number);

}  // namespace tally::gateway
