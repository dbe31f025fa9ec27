#include "gateway/call/caller.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "gateway/call/call.h"

namespace tally::gateway {

Caller::Caller(asio::any_io_executor loop, const Config& config, Authority& authority, Journal& journal,
               AuditLog& audit)
    : loop_(std::move(loop)),
      config_(config),
      authority_(authority),
      journal_(journal),
      audit_(audit),
      settler_(loop_, authority, journal),
      rounds_(loop_) {}

void Caller::Start(CallOrder order) {
  if (!order.call.request_state.empty()) {
    if (const auto refused = rounds_.Continue(order)) {
      order.answer({.error = *refused}, nullptr);
      if (order.over) order.over();
    }
    return;
  }
  auto call = std::make_shared<Call>(*this, std::move(order));
  asio::co_spawn(
      loop_, [call]() -> asio::awaitable<void> { co_await call->Run(); }, asio::detached);
}

}  // namespace tally::gateway
