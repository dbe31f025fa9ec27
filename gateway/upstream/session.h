// One session with one upstream, for one client session. Raw JSON goes through as it came.
//
// What a caller may rely on:
//  * A request is written at most once, on a connection that was used for nothing before (HTTP) or in one piece
//  (stdio).
//  * When the upstream dies, or the session is closed, every open exchange ends at once.
//  * Nothing is called back from inside a call of this interface, except the gate.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/mcp/message.h"
#include "gateway/upstream/exchange.h"

namespace tally::gateway {

struct OutgoingRequest {
  std::string method = {};
  std::string params = {};  // raw JSON; empty: none
  Gate gate = nullptr;
  std::map<std::string, std::string> headers = {};  // HTTP only: what a keyed tool's config asks for
  std::string capabilities = {};  // 2026-07-28: what the client declared with this request, raw; empty: nothing
  bool quick = false;  // ends with the connection it was sent on: no resuming (protocol reads, which are asked again)
};

// A notification or request that the upstream sent. `during` is the exchange on whose stream it came; null where that
// cannot be told.
using UpstreamSink = std::function<void(const mcp::Message& message, const SharedExchange& during)>;

struct UpstreamLimits {
  size_t message_bytes_max = 8 * 1024 * 1024;
  size_t waiting_bytes_max = 16 * 1024 * 1024;  // written, but not yet taken by the upstream
  size_t open_requests_max = 1024;
};

class UpstreamSession : public std::enable_shared_from_this<UpstreamSession> {
 public:
  virtual ~UpstreamSession() = default;

  virtual SharedExchange Send(OutgoingRequest request) = 0;
  // Nobody will look at it any more. The upstream is told nothing: what it is doing goes on.
  virtual void Forget(const SharedExchange& exchange) = 0;
  // Notifications, and answers to the upstream's own requests: one message, sent once, its loss is not reported.
  virtual void Post(std::string message) = 0;
  // The number that the last Send() of this session gave its request, as raw JSON: for notifications/cancelled.
  virtual std::string IdOf(const SharedExchange& exchange) const = 0;
  // What was agreed in the handshake; HTTP says it in every request, and the era 2026-07-28 on every transport.
  void SetProtocolVersion(std::string version) { version_ = std::move(version); }
  const std::string& version() const { return version_; }
  // From now on the upstream may speak without being asked. 2025-11-25 over HTTP: opens the GET stream. 2026-07-28:
  // subscriptions/listen for what `filter` says (a raw SubscriptionFilter; empty: nothing), in place of the one before.
  virtual void Listen(std::string filter) = 0;
  // Told of every subscriptions/listen that is sent, for the audit log.
  void SetListened(std::function<void()> listened) { listened_ = std::move(listened); }
  virtual bool alive() const = 0;
  // Ends it; the process behind it is told, then made, to go. May be called again.
  virtual void Close() = 0;

 protected:
  void Listened() const {
    if (listened_) listened_();
  }

 private:
  std::string version_;
  std::function<void()> listened_;
};

using SharedUpstream = std::shared_ptr<UpstreamSession>;

}  // namespace tally::gateway
