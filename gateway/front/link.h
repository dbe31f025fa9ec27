// One upstream as one client session sees it, or all of them where it is shared: connected when first needed, and again
// after it died.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gateway/config/config.h"
#include "gateway/mcp/param_headers.h"
#include "gateway/mcp/protocol.h"
#include "gateway/pins/keeper.h"
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
  bool shared() const { return config_.shared; }
  // What the upstream sends unasked goes to whoever listens. One owner, or, where the upstream is shared, many: then
  // each gets what is about all of them, updates of the resources it watches, and progress (whose tokens nobody has
  // twice); what cannot be told to be for one of them reaches none.
  using Owner = const void*;
  void Listen(Owner owner, UpstreamSink sink) { sinks_[owner] = std::move(sink); }
  // What it watches is not watched for it any more.
  void Leave(Owner owner);
  // Told of every protocol read and what came of it, unless whoever asks wants to be told himself; of
  // subscriptions/listen, whose answer is a stream, with null.
  void SetAudit(decltype(ReadPolicy::over) audit) { audit_ = std::move(audit); }

  // Holds the upstream's tools against what they are pinned as. To be set once, before anything else; outlives this.
  void SetPins(PinKeeper* pins) { pins_ = pins; }

  // Connected, initialised, alive; connects if it is not. Many may ask at once. After a failure it is not tried again
  // for a moment. Unavailable, with what went wrong.
  asio::awaitable<absl::StatusOr<SharedUpstream>> Ready();
  // The same, for a call of this tool: FailedPrecondition if it is pinned strictly and is not as it was seen first.
  asio::awaitable<absl::StatusOr<SharedUpstream>> ReadyFor(std::string tool);
  // Whether its pin lets a tool of the list be shown and called. After List(kTools).
  asio::awaitable<bool> Allows(std::string tool);
  // A protocol read; connects anew where the upstream says that the session has ended.
  // `sent`: told of each send.
  asio::awaitable<UpstreamAnswer> Ask(std::string method, std::string params,
                                      std::function<void(const SharedExchange&)> sent = nullptr,
                                      decltype(ReadPolicy::over) audit = nullptr);
  // All items of a list, all pages, remembered until Changed(), of an upstream of 2026-07-28 no longer than it says.
  // Empty where the upstream has no such list.
  asio::awaitable<absl::StatusOr<std::shared_ptr<const std::vector<std::string>>>> List(ListKind kind);
  void Changed(ListKind kind);
  // Notifications of changes to this resource, until Unwatch was called as often; made anew, of themselves, when the
  // upstream was connected again.
  asio::awaitable<void> Watch(Owner owner, std::string uri);
  void Unwatch(Owner owner, const std::string& uri);
  // For whoever asks the upstream himself (resources/subscribe): noted once, however often. False: too many.
  bool NoteWatch(Owner owner, const std::string& uri);
  // True: nobody watches it any more.
  bool DropWatch(Owner owner, const std::string& uri);
  bool Watches(Owner owner, const std::string& uri) const;
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
  asio::awaitable<void> Resubscribe(SharedUpstream upstream);
  std::set<std::string> Watched() const;
  bool Wanted(const std::string& uri) const;
  void Take(const mcp::Message& message, const SharedExchange& during);
  void TakeRequestOfShared(const mcp::Message& request);
  bool MayReach(Owner owner, const mcp::Message& message) const;
  asio::awaitable<absl::Status> SeeTools(std::shared_ptr<const std::vector<std::string>> items);

  const asio::any_io_executor loop_;
  const std::string name_;
  const UpstreamConfig config_;
  const int64_t answer_bytes_max_;
  const std::string capabilities_;
  const bool modern_;
  std::map<Owner, UpstreamSink> sinks_;
  decltype(ReadPolicy::over) audit_;
  PinKeeper* pins_ = nullptr;

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
  std::shared_ptr<const SeenTools> seen_ = std::make_shared<SeenTools>();  // of the last list of tools
  int changes_ = 0;  // of any list: one that changed while it was read is not remembered
  std::map<Owner, std::map<std::string, int>> watched_;  // by uri
  asio::steady_timer acknowledged_;
};

using SharedLink = std::shared_ptr<Link>;

}  // namespace tally::gateway
