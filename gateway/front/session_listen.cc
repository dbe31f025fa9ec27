// subscriptions/listen, 2026-07-28: one request that stays open, and on which changes are told. It lives in the session
// of its permit token, and so hears of that permit's upstreams alone.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "gateway/front/session.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

constexpr size_t kUrisMax = 256;  // of one subscription
constexpr size_t kSubscriptionsMax = 64;

// What a client asks for. Nullopt: it is no SubscriptionFilter.
struct Wanted {
  bool tools = false;
  bool prompts = false;
  bool resources = false;
  std::vector<std::string> uris;
};

std::optional<Wanted> WantedIn(const std::string& raw_params) {
  const auto params = mcp::RawObject::Parse(raw_params);
  const std::string_view* raw = params.ok() ? params->Find("notifications") : nullptr;
  const auto filter = raw ? mcp::RawObject::Parse(*raw) : absl::NotFoundError("");
  if (!filter.ok()) return std::nullopt;
  Wanted wanted;
  for (const mcp::Member& member : filter->members()) {
    bool* flag = member.name == "toolsListChanged"       ? &wanted.tools
                 : member.name == "promptsListChanged"   ? &wanted.prompts
                 : member.name == "resourcesListChanged" ? &wanted.resources
                                                         : nullptr;
    if (flag != nullptr) {
      const auto value = mcp::BoolOf(member.value);
      if (!value) return std::nullopt;
      *flag = *value;
    } else if (member.name == "resourceSubscriptions") {
      const auto uris = mcp::ElementsOf(member.value);
      if (!uris || uris->size() > kUrisMax) return std::nullopt;
      for (const std::string_view uri : *uris) {
        auto text = mcp::StringOf(uri);
        if (!text) return std::nullopt;
        if (std::ranges::find(wanted.uris, *text) == wanted.uris.end()) wanted.uris.push_back(*std::move(text));
      }
    }
  }
  return wanted;
}

std::string Stamped(std::string_view raw_params, const std::string& raw_id) {
  const std::string params(raw_params.empty() ? "{}" : raw_params);
  const auto object = mcp::RawObject::Parse(params);
  const std::string_view* meta = object.ok() ? object->Find("_meta") : nullptr;
  const std::string_view before = meta != nullptr && mcp::IsObject(*meta) ? *meta : std::string_view("{}");
  return mcp::WithMember(params, "_meta", mcp::WithMember(before, mcp::meta::kSubscriptionId, raw_id));
}

}  // namespace

asio::awaitable<void> Session::Listen(SharedOpen open, const mcp::Message& request) {
  const std::optional<Wanted> wanted = WantedIn(request.params);
  if (!wanted) {
    co_return Fail(open, mcp::code::kInvalidParams,
                   "params.notifications must say what is listened to, with at most 256 resources. Nothing was done.");
  }
  if (subscriptions_.size() >= kSubscriptionsMax) {
    co_return Fail(open, mcp::code::kInvalidRequest,
                   "This permit has as many subscriptions open as it may have. Nothing was done.");
  }
  auto subscription = std::make_shared<Subscription>();
  subscription->open = open;
  const auto permit = co_await services_.authority->GetPermit(std::string(token_->Expose()));
  std::string honoured;
  const auto add = [&honoured](std::string_view name, const std::string& value) {
    absl::StrAppend(&honoured, honoured.empty() ? "" : ",", mcp::Quote(name), ":", value);
  };
  if (permit.ok() && permit.value()->state() == v1::ACTIVE) {
    co_await Connect();
    subscription->tools = wanted->tools && AnyHas("tools", "listChanged");
    subscription->prompts = wanted->prompts && AnyHas("prompts", "listChanged");
    subscription->resources = wanted->resources && AnyHas("resources", "listChanged");
    std::string uris;
    for (const std::string& uri : wanted->uris) {
      const std::vector<SharedLink> links = co_await LinksFor(uri);
      if (links.empty() || !links.front()->Has("resources", "subscribe") || open->cancelled) continue;
      subscription->watched.emplace_back(uri, links.front());
      co_await links.front()->Watch(this, uri);
      absl::StrAppend(&uris, uris.empty() ? "[" : ",", mcp::Quote(uri));
    }
    if (subscription->tools) add("toolsListChanged", "true");
    if (subscription->prompts) add("promptsListChanged", "true");
    if (subscription->resources) add("resourcesListChanged", "true");
    if (!uris.empty()) add("resourceSubscriptions", uris + "]");
  }
  subscriptions_.push_back(subscription);
  // It was cancelled meanwhile.
  if (open->cancelled || closed_) co_return EndSubscription(open);
  open->outlet->Send(mcp::NotificationText(mcp::notification::kSubscriptionsAcknowledged,
                                           Stamped(absl::StrCat(R"({"notifications":{)", honoured, "}}"), open->id)));
  // There is nothing that could come.
  if (honoured.empty()) Answer(open, SubscriptionEnd(open));
}

std::string Session::SubscriptionEnd(const SharedOpen& open) const { return Stamped("{}", open->id); }

void Session::Publish(const SharedLink& link, const mcp::Message& notification) {
  namespace n = mcp::notification;
  const auto params = mcp::RawObject::Parse(notification.params);
  const std::string_view* raw_uri = params.ok() ? params->Find("uri") : nullptr;
  const auto uri = raw_uri ? mcp::StringOf(*raw_uri) : std::nullopt;
  for (const auto& subscription : subscriptions_) {
    const bool wanted = (notification.method == n::kToolsChanged && subscription->tools) ||
                        (notification.method == n::kPromptsChanged && subscription->prompts) ||
                        (notification.method == n::kResourcesChanged && subscription->resources) ||
                        (notification.method == n::kResourcesUpdated && uri &&
                         std::ranges::any_of(subscription->watched, [&](const auto& entry) {
                           return entry.first == *uri && entry.second == link;
                         }));
    if (!wanted) continue;
    subscription->open->outlet->Send(
        mcp::NotificationText(notification.method, Stamped(notification.params, subscription->open->id)));
  }
}

void Session::EndSubscription(const SharedOpen& open) {
  const auto found = std::ranges::find_if(subscriptions_, [&](const auto& one) { return one->open == open; });
  if (found == subscriptions_.end()) return;
  const std::shared_ptr<Subscription> subscription = *found;
  subscriptions_.erase(found);
  for (const auto& [uri, link] : subscription->watched) link->Unwatch(this, uri);
}

void Session::CheckSubscriptions() {
  if (subscriptions_.empty()) return;
  auto self = shared_from_this();
  asio::co_spawn(
      services_.loop,
      [self]() -> asio::awaitable<void> {
        const auto permit = co_await self->services_.authority->GetPermit(std::string(self->token_->Expose()));
        // Only what is known counts: tallyd being away ends nothing.
        const bool over =
            permit.ok() ? permit.value()->state() != v1::ACTIVE : permit.failure().kind == v1::KIND_UNAUTHORIZED;
        if (!over) co_return;
        const auto subscriptions = self->subscriptions_;
        for (const auto& one : subscriptions) self->Answer(one->open, self->SubscriptionEnd(one->open));
      },
      asio::detached);
}

}  // namespace tally::gateway
