// What upstreams say unasked: notifications, and requests that only the client can answer.
#include <absl/strings/str_cat.h>

#include <utility>

#include "gateway/front/session.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

constexpr size_t kAskedMax = 256;

std::string WithoutSubscription(const std::string& params) {
  const auto object = mcp::RawObject::Parse(params);
  const std::string_view* meta = object.ok() ? object->Find("_meta") : nullptr;
  if (meta == nullptr || !mcp::IsObject(*meta)) return params;
  return mcp::WithMember(params, "_meta", mcp::WithoutMember(*meta, mcp::meta::kSubscriptionId));
}

}  // namespace

std::string_view CapabilityFor(std::string_view method) {
  if (method == mcp::method::kCreateMessage) return "sampling";
  if (method == mcp::method::kElicit) return "elicitation";
  if (method == mcp::method::kRootsList) return "roots";
  return "";
}

void Session::TakeFromUpstream(const SharedLink& link, const mcp::Message& message, const SharedExchange& during) {
  namespace notification = mcp::notification;
  if (message.kind == mcp::Message::Kind::kRequest) return TakeUpstreamRequest(link, message, during);
  if (message.method == notification::kProgress) return TakeProgress(link, message);
  if (message.method == notification::kCancelled) return TakeUpstreamCancel(link, message);
  const bool of_no_request =
      message.method == notification::kToolsChanged || message.method == notification::kResourcesChanged ||
      message.method == notification::kPromptsChanged || message.method == notification::kResourcesUpdated;
  if (!of_no_request) {
    const SharedOutlet outlet = OutletFor(link, during);
    if (outlet) outlet->Send(mcp::NotificationText(message.method, message.params));
    return;
  }
  if (modern_) return Publish(link, message);
  // To an upstream of 2026-07-28 the subscription is the gateway's own.
  const std::string params = link->modern() ? WithoutSubscription(message.params) : message.params;
  if (general_) general_->Send(mcp::NotificationText(message.method, params));
}

void Session::TakeUpstreamRequest(const SharedLink& link, const mcp::Message& request, const SharedExchange& during) {
  const SharedUpstream upstream = link->current();
  // During its handshake an upstream may only ping.
  if (!upstream) return;
  if (request.method == mcp::method::kPing) return upstream->Post(mcp::ResultText(request.id, "{}"));
  const std::string_view capability = CapabilityFor(request.method);
  const SharedOutlet outlet = OutletFor(link, during);
  if (capability.empty() || !declared_.contains(capability)) {
    return upstream->Post(mcp::ErrorText(
        request.id, {mcp::code::kMethodNotFound, "The client has not declared that it can answer this.", ""}));
  }
  if (!outlet || closed_ || asked_.size() >= kAskedMax) {
    return upstream->Post(
        mcp::ErrorText(request.id, {mcp::code::kInternalError, "The client cannot be asked now.", ""}));
  }
  const int64_t id = ++last_asked_;
  asked_[id] = {link, upstream, request.id};
  outlet->Send(mcp::RequestText(absl::StrCat(id), request.method, request.params));
}

void Session::TakeAnswer(mcp::Message answer) {
  Touch();
  const auto id = mcp::IntegerOf(answer.id);
  const auto found = id ? asked_.find(*id) : asked_.end();
  if (found == asked_.end()) return;
  const Asked asked = std::move(found->second);
  asked_.erase(found);
  if (asked.inquiry) {
    Inquiry& inquiry = *asked.inquiry;
    if (answer.kind == mcp::Message::Kind::kResult) {
      inquiry.results[asked.name] = std::move(answer.result);
    } else {
      inquiry.failed = true;
    }
    --inquiry.awaited;
    inquiry.changed.cancel();
    return;
  }
  const SharedUpstream upstream = asked.upstream.lock();
  if (!upstream) return;
  upstream->Post(answer.kind == mcp::Message::Kind::kResult ? mcp::ResultText(asked.id, answer.result)
                                                            : mcp::ErrorText(asked.id, answer.error));
}

void Session::TakeUpstreamCancel(const SharedLink& link, const mcp::Message& notification) {
  const auto params = mcp::RawObject::Parse(notification.params.empty() ? std::string_view("{}")
                                                                        : std::string_view(notification.params));
  const std::string_view* id = params.ok() ? params->Find("requestId") : nullptr;
  if (id == nullptr || !(mcp::StringOf(*id) || mcp::IntegerOf(*id))) return;
  for (auto asked = asked_.begin(); asked != asked_.end(); ++asked) {
    if (asked->second.link.lock() != link || mcp::IdKey(asked->second.id) != mcp::IdKey(*id)) continue;
    const std::string told = mcp::WithMember(notification.params, "requestId", absl::StrCat(asked->first));
    if (const SharedOutlet outlet = OutletFor(link, nullptr)) {
      outlet->Send(mcp::NotificationText(notification.method, told));
    }
    asked_.erase(asked);
    return;
  }
}

int64_t Session::NewToken() {
  static int64_t last = 0;  // the loop's
  return ++last;
}

void Session::TakeProgress(const SharedLink& link, const mcp::Message& notification) {
  const auto params = mcp::RawObject::Parse(notification.params.empty() ? std::string_view("{}")
                                                                        : std::string_view(notification.params));
  const std::string_view* token = params.ok() ? params->Find(mcp::meta::kProgressToken) : nullptr;
  const auto number = token ? mcp::IntegerOf(*token) : std::nullopt;
  const auto found = number ? by_token_.find(*number) : by_token_.end();
  if (found == by_token_.end()) return;
  const SharedOpen& open = found->second;
  // Another upstream's request is none of its business.
  if (open->cancelled || open->link != link) return;
  open->outlet->Send(mcp::NotificationText(
      notification.method, mcp::WithMember(notification.params, mcp::meta::kProgressToken, open->progress_token)));
}

Session::SharedOpen Session::OpenFor(const SharedLink& link, const SharedExchange& during) const {
  SharedOpen only;
  int candidates = 0;
  for (const auto& [key, open] : open_) {
    if (during && open->exchange == during) return open;
    if (open->link != link || !open->exchange || open->exchange->done()) continue;
    only = open;
    ++candidates;
  }
  // An upstream on a pipe does not say to what a message belongs; where one request is open, it is that.
  return during == nullptr && candidates > 0 ? only : nullptr;
}

SharedOutlet Session::OutletFor(const SharedLink& link, const SharedExchange& during) const {
  const SharedOpen open = OpenFor(link, during);
  return open ? open->outlet : general_;
}

}  // namespace tally::gateway
