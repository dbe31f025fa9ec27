// Protocol reads: what may be asked again because asking changes nothing. Never tools/call.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "gateway/upstream/session.h"

namespace tally::gateway {

struct ReadPolicy {
  std::chrono::milliseconds timeout{30'000};  // of one try
  int tries = 3;
  std::chrono::milliseconds backoff_first{100};  // doubles, with full jitter
  // Told of every send, and of what came of it: for the audit log, and for whoever may want to cancel it.
  std::function<void(const SharedExchange& exchange)> sent = nullptr;
  std::function<void(std::string_view method, const SharedExchange& exchange, std::chrono::microseconds took)> over =
      nullptr;
};

// The first answer that is one; after the last try whatever there is. No answer, HTTP 408, 429 and 5xx are asked again.
asio::awaitable<UpstreamAnswer> Read(SharedUpstream upstream, std::string method, std::string params,
                                     ReadPolicy policy);

// What an upstream said of itself. All raw JSON as it came; empty where it said nothing.
struct Handshake {
  std::string protocol_version;
  std::string capabilities = "{}";
  std::string server_info;
  std::string instructions;
};

// initialize and notifications/initialized, in the 2025-11-25 era. `capabilities`: what the client at the other end
// declared, raw.
asio::awaitable<absl::StatusOr<Handshake>> Initialize(SharedUpstream upstream, std::string capabilities,
                                                      ReadPolicy policy);

// server/discover, in the 2026-07-28 era. After a failure the session may be tried with Initialize, if it is alive.
asio::awaitable<absl::StatusOr<Handshake>> Discover(SharedUpstream upstream, ReadPolicy policy);

}  // namespace tally::gateway
