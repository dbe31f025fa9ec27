#include "gateway/call/sends.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>
#include <utility>

namespace tally::gateway {
namespace {

constexpr std::chrono::milliseconds kPauseFirst{500};

}  // namespace

Sends::~Sends() {
  for (const Sent& sent : all_) sent.upstream->Forget(sent.exchange);
}

Sent& Sends::Add(SharedUpstream upstream, SharedExchange exchange, Clock::time_point began, int number) {
  all_.push_back({std::move(upstream), std::move(exchange), began, number});
  // Weak: the exchange may outlive whoever waits.
  all_.back().exchange->WhenDone([weak = std::weak_ptr(changed_)] {
    if (const auto changed = weak.lock()) changed->cancel();
  });
  return all_.back();
}

asio::awaitable<Sent*> Sends::Next(Clock::time_point until) {
  while (true) {
    for (Sent& sent : all_) {
      if (sent.heard || !sent.exchange->done()) continue;
      sent.heard = true;
      co_return &sent;
    }
    if (Clock::now() >= until) co_return nullptr;
    changed_->expires_at(until);
    co_await changed_->async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

bool Sends::outstanding() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const Sent& sent) { return sent.exchange->written() && !sent.exchange->done(); });
}

std::chrono::milliseconds PauseBefore(int number) {
  static std::mt19937_64 generator{std::random_device{}()};
  const int64_t most = kPauseFirst.count() << std::clamp(number - 2, 0, 6);
  return std::chrono::milliseconds(std::uniform_int_distribution<int64_t>(most / 2, most)(generator));
}

}  // namespace tally::gateway
