// What an upstream says unasked: to whom it goes; and which resources it is to speak of.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "gateway/front/link.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

constexpr size_t kWatchedMax = 1'000;
constexpr std::chrono::milliseconds kAcknowledgePatience{2'000};

bool IsListChange(const std::string& method) {
  namespace notification = mcp::notification;
  return method == notification::kToolsChanged || method == notification::kResourcesChanged ||
         method == notification::kPromptsChanged;
}

std::string UriParams(const std::string& uri) { return absl::StrCat(R"({"uri":)", mcp::Quote(uri), "}"); }

std::string UriOf(const mcp::Message& message) {
  const auto params = mcp::RawObject::Parse(message.params);
  const std::string_view* uri = params.ok() ? params->Find("uri") : nullptr;
  return uri ? mcp::StringOf(*uri).value_or("") : "";
}

}  // namespace

void Link::Take(const mcp::Message& message, const SharedExchange& during) {
  namespace notification = mcp::notification;
  if (closed_) return;
  if (message.method == notification::kSubscriptionsAcknowledged) {
    acknowledged_.cancel();
    return;
  }
  const bool request = message.kind == mcp::Message::Kind::kRequest;
  if (request && shared()) return TakeRequestOfShared(message);
  if (message.method == notification::kToolsChanged) Changed(ListKind::kTools);
  if (message.method == notification::kPromptsChanged) Changed(ListKind::kPrompts);
  if (message.method == notification::kResourcesChanged) {
    Changed(ListKind::kResources);
    Changed(ListKind::kTemplates);
  }
  const auto sinks = sinks_;  // one of them may leave meanwhile
  for (const auto& [owner, sink] : sinks) {
    if (!shared() || MayReach(owner, message)) sink(message, during);
  }
}

bool Link::MayReach(Owner owner, const mcp::Message& message) const {
  if (message.method == mcp::notification::kResourcesUpdated) return Watches(owner, UriOf(message));
  return message.method == mcp::notification::kProgress || IsListChange(message.method);
}

// It has been told that it can ask nothing: there is no telling which client it would be.
void Link::TakeRequestOfShared(const mcp::Message& request) {
  const SharedUpstream upstream = current();
  if (!upstream) return;
  if (request.method == mcp::method::kPing) return upstream->Post(mcp::ResultText(request.id, "{}"));
  upstream->Post(mcp::ErrorText(
      request.id, {mcp::code::kMethodNotFound, "This process serves several clients, and none can be asked.", ""}));
}

asio::awaitable<void> Link::Subscribe(std::string method, std::string uri) {
  const auto self = shared_from_this();
  co_await Ask(std::move(method), UriParams(uri));
}

asio::awaitable<void> Link::Watch(Owner owner, std::string uri) {
  const auto self = shared_from_this();
  auto& mine = watched_[owner];
  if (mine.size() >= kWatchedMax && !mine.contains(uri)) co_return;
  const bool wanted = Wanted(uri);
  ++mine[uri];
  const SharedUpstream upstream = current();
  // Not connected: Connect() does it.
  if (wanted || !upstream) co_return;
  if (!modern()) co_return co_await Subscribe(std::string(mcp::method::kResourcesSubscribe), std::move(uri));
  upstream->Listen(Filter());
  acknowledged_.expires_after(kAcknowledgePatience);
  co_await acknowledged_.async_wait(asio::as_tuple(asio::use_awaitable));
}

void Link::Unwatch(Owner owner, const std::string& uri) {
  const auto mine = watched_.find(owner);
  const bool there = mine != watched_.end() && mine->second.contains(uri);
  if (!there || --mine->second[uri] > 0 || !DropWatch(owner, uri)) return;
  const SharedUpstream upstream = current();
  if (!upstream || closed_) return;
  if (modern()) return upstream->Listen(Filter());
  asio::co_spawn(loop_, Subscribe(std::string(mcp::method::kResourcesUnsubscribe), uri), asio::detached);
}

bool Link::NoteWatch(Owner owner, const std::string& uri) {
  auto& mine = watched_[owner];
  if (mine.size() >= kWatchedMax && !mine.contains(uri)) return false;
  mine[uri] = 1;
  return true;
}

bool Link::DropWatch(Owner owner, const std::string& uri) {
  if (const auto mine = watched_.find(owner); mine != watched_.end()) {
    mine->second.erase(uri);
    if (mine->second.empty()) watched_.erase(mine);
  }
  return !Wanted(uri);
}

bool Link::Watches(Owner owner, const std::string& uri) const {
  const auto mine = watched_.find(owner);
  return mine != watched_.end() && mine->second.contains(uri);
}

bool Link::Wanted(const std::string& uri) const {
  return std::any_of(watched_.begin(), watched_.end(), [&](const auto& mine) { return mine.second.contains(uri); });
}

std::set<std::string> Link::Watched() const {
  std::set<std::string> uris;
  for (const auto& [owner, mine] : watched_) {
    for (const auto& [uri, count] : mine) uris.insert(uri);
  }
  return uris;
}

void Link::Leave(Owner owner) {
  sinks_.erase(owner);
  const auto mine = watched_.extract(owner);
  const SharedUpstream upstream = current();
  if (mine.empty() || !upstream) return;
  if (modern()) return upstream->Listen(Filter());
  for (const auto& [uri, count] : mine.mapped()) {
    if (Wanted(uri)) continue;
    asio::co_spawn(loop_, Subscribe(std::string(mcp::method::kResourcesUnsubscribe), uri), asio::detached);
  }
}

asio::awaitable<void> Link::Resubscribe(SharedUpstream upstream) {
  const auto self = shared_from_this();
  const std::set<std::string> uris = Watched();
  for (const std::string& uri : uris) {
    if (upstream != current()) co_return;
    if (!Wanted(uri)) continue;
    std::string method(mcp::method::kResourcesSubscribe);
    std::string params = UriParams(uri);
    const ReadPolicy policy = Policy();
    const UpstreamAnswer answer = co_await Read(upstream, std::move(method), std::move(params), policy);
    if (answer.how != mcp::Reply::How::kResult) {
      ops::LogWarning("subscription_not_renewed", {{"upstream", name_}, {"why", answer.why}});
      continue;
    }
    // What went by meanwhile is not known: whoever wants to be up to date has to read it again.
    mcp::Message updated;
    updated.kind = mcp::Message::Kind::kNotification;
    updated.method = mcp::notification::kResourcesUpdated;
    updated.params = UriParams(uri);
    const auto sinks = sinks_;
    for (const auto& [owner, sink] : sinks) {
      if (Watches(owner, uri)) sink(updated, nullptr);
    }
  }
}

}  // namespace tally::gateway
