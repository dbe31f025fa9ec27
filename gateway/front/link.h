// One upstream as one client session sees it: connected when first needed, and again after it died.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gateway/config/config.h"
#include "gateway/mcp/param_headers.h"
#include "gateway/mcp/protocol.h"
#include "gateway/upstream/open.h"

namespace tally::gateway {

enum class ListKind { kTools, kResources, kTemplates, kPrompts };
inline constexpr int kListKinds = 4;

// The method, and the member of its result that has the items.
std::string_view MethodOf(ListKind kind);
std::string_view MemberOf(ListKind kind);

class Link : public std::enable_shared_from_this<Link> {
 public:
  // `capabilities`: what the client declared, raw; the upstream is told the same.
  // `modern`: the client is of 2026-07-28, so that an upstream which speaks both eras is spoken to in that one; else in
  // the older one, where it can ask the client while a call is under way.
  Link(asio::any_io_executor loop, std::string name, const UpstreamConfig& config, int64_t answer_bytes_max,
       std::string capabilities, bool modern = false);

  const std::string& name() const { return name_; }
  const UpstreamConfig& config() const { return config_; }
  // What the upstream sends unasked goes here. To be set once, before anything else.
  void SetSink(UpstreamSink sink) { sink_ = std::move(sink); }
  // Told of every protocol read and what came of it.
  void SetAudit(decltype(ReadPolicy::over) audit) { audit_ = std::move(audit); }

  // Connected, initialised, alive; connects if it is not. Many may ask at once. After a failure it is not tried again
  // for a moment. Unavailable, with what went wrong.
  asio::awaitable<absl::StatusOr<SharedUpstream>> Ready();
  // A protocol read; connects anew where the upstream says that the session has ended.
  // `sent`: told of each send.
  asio::awaitable<UpstreamAnswer> Ask(std::string method, std::string params,
                                      std::function<void(const SharedExchange&)> sent = nullptr);
  // All items of a list, all pages, remembered until Changed(), of an upstream of 2026-07-28 no longer than it says.
  // Empty where the upstream has no such list.
  asio::awaitable<absl::StatusOr<std::shared_ptr<const std::vector<std::string>>>> List(ListKind kind);
  void Changed(ListKind kind);
  // Notifications of changes to this resource, until Unwatch was called as often.
  asio::awaitable<void> Watch(std::string uri);
  void Unwatch(const std::string& uri);
  // What of this tool's arguments an upstream of 2026-07-28 wants to see in headers.
  asio::awaitable<std::vector<mcp::ParamHeader>> ParamHeaders(std::string tool);

  // What it said in its last handshake; null before the first.
  const Handshake* handshake() const { return handshake_ ? &*handshake_ : nullptr; }
  // Whether it declared a member of this name in its capabilities.
  bool Has(std::string_view capability) const;
  // Whether that says `"member": true`: listChanged, subscribe.
  bool Has(std::string_view capability, std::string_view member) const;
  // Connected last in the era 2026-07-28.
  bool modern() const { return handshake_ && mcp::version::IsModern(handshake_->protocol_version); }
  // Null: not connected now.
  SharedUpstream current() const { return upstream_ && upstream_->alive() ? upstream_ : nullptr; }
  // The upstream no longer knows our session: the next Ready() makes a new one.
  void Drop();
  void Close();

 private:
  asio::awaitable<absl::Status> Connect();
  absl::StatusOr<SharedUpstream> Open();
  ReadPolicy Policy() const;
  // All that is listened to, as a SubscriptionFilter; empty: nothing.
  std::string Filter() const;
  asio::awaitable<void> Subscribe(std::string method, std::string uri);

  const asio::any_io_executor loop_;
  const std::string name_;
  const UpstreamConfig config_;
  const int64_t answer_bytes_max_;
  const std::string capabilities_;
  const bool modern_;
  UpstreamSink sink_;
  decltype(ReadPolicy::over) audit_;

  SharedUpstream upstream_;
  std::optional<Handshake> handshake_;
  bool legacy_ = false;  // it speaks no 2026-07-28: it is not asked again
  bool connecting_ = false;
  bool closed_ = false;
  asio::steady_timer connected_;
  absl::Status last_failure_;
  std::chrono::steady_clock::time_point failed_at_;
  std::array<std::shared_ptr<const std::vector<std::string>>, kListKinds> lists_;
  std::array<std::chrono::steady_clock::time_point, kListKinds> stale_at_{};
  int changes_ = 0;                     // of any list: one that changed while it was read is not remembered
  std::map<std::string, int> watched_;  // by uri
  asio::steady_timer acknowledged_;
};

using SharedLink = std::shared_ptr<Link>;

}  // namespace tally::gateway
