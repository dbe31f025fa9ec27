#include "gateway/front/link.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using How = mcp::Reply::How;

constexpr std::chrono::seconds kNotAgainFor{1};
constexpr int kPinTries = 3;
constexpr int kPagesMax = 100;
constexpr size_t kItemsMax = 10'000;
constexpr size_t kListBytesMax = 16 << 20;  // of all pages of one list, which is remembered for each session
// How long an upstream may be silent about server/discover. A server of 2025-11-25 may well not answer what it does not
// know, and a session waits for no upstream longer than kConnectPatience (session.cc).
constexpr std::chrono::milliseconds kProbePatience{8'000};
// A list of 2026-07-28 is remembered as long as it says, within these; for the first where it says nothing.
constexpr int64_t kTtlMinMs = 2'000;
constexpr int64_t kTtlMaxMs = 300'000;

int64_t TtlMsOf(const mcp::RawObject& result) {
  const std::string_view* raw = result.Find("ttlMs");
  return std::clamp(raw ? mcp::IntegerOf(*raw).value_or(0) : 0, kTtlMinMs, kTtlMaxMs);
}

}  // namespace

std::string_view MethodOf(ListKind kind) {
  switch (kind) {
    case ListKind::kTools:
      return mcp::method::kToolsList;
    case ListKind::kResources:
      return mcp::method::kResourcesList;
    case ListKind::kTemplates:
      return mcp::method::kResourcesTemplatesList;
    case ListKind::kPrompts:
      break;
  }
  return mcp::method::kPromptsList;
}

std::string_view MemberOf(ListKind kind) {
  switch (kind) {
    case ListKind::kTools:
      return "tools";
    case ListKind::kResources:
      return "resources";
    case ListKind::kTemplates:
      return "resourceTemplates";
    case ListKind::kPrompts:
      break;
  }
  return "prompts";
}

Link::Link(asio::any_io_executor loop, std::string name, const UpstreamConfig& config, int64_t answer_bytes_max,
           std::string capabilities, bool modern)
    : loop_(std::move(loop)),
      name_(std::move(name)),
      config_(config),
      answer_bytes_max_(answer_bytes_max),
      capabilities_(std::move(capabilities)),
      modern_(modern),
      connected_(loop_, asio::steady_timer::time_point::max()),
      acknowledged_(loop_) {}

asio::awaitable<absl::StatusOr<SharedUpstream>> Link::Ready() {
  const auto self = shared_from_this();
  while (connecting_) co_await connected_.async_wait(asio::as_tuple(asio::use_awaitable));
  if (current()) co_return upstream_;
  if (closed_) co_return absl::UnavailableError("the session has ended");
  if (!last_failure_.ok() && std::chrono::steady_clock::now() - failed_at_ < kNotAgainFor) co_return last_failure_;
  connecting_ = true;
  last_failure_ = co_await Connect();
  connecting_ = false;
  connected_.cancel();
  if (last_failure_.ok()) co_return upstream_;
  failed_at_ = std::chrono::steady_clock::now();
  ops::LogWarning("upstream_unavailable", {{"upstream", name_}, {"why", std::string(last_failure_.message())}});
  co_return last_failure_;
}

absl::StatusOr<SharedUpstream> Link::Open() {
  const std::weak_ptr<Link> weak = weak_from_this();
  return OpenUpstream(loop_, name_, config_, answer_bytes_max_,
                      [weak](const mcp::Message& message, const SharedExchange& during) {
                        if (const SharedLink link = weak.lock()) link->Take(message, during);
                      });
}

asio::awaitable<absl::StatusOr<SharedUpstream>> Link::ReadyFor(std::string tool) {
  const auto self = shared_from_this();
  auto upstream = co_await Ready();
  if (!upstream.ok() || pins_ == nullptr || config_.pin != Pin::kStrict) co_return upstream;
  for (int i = 0; i < kPinTries; ++i) {
    const auto tools = co_await List(ListKind::kTools);
    if (!tools.ok()) co_return absl::UnavailableError(tools.status().message());
    const bool allowed = co_await Allows(tool);
    if (!allowed) co_return absl::FailedPreconditionError("the tool is not as it was when it was first seen");
    // What was looked at must be what is called.
    if (current() && current() == *upstream) co_return upstream;
    upstream = co_await Ready();
    if (!upstream.ok()) co_return upstream;
  }
  co_return absl::UnavailableError("the upstream does not stay connected");
}

asio::awaitable<bool> Link::Allows(std::string tool) {
  if (pins_ == nullptr || config_.pin != Pin::kStrict) co_return true;
  const bool accepted = co_await pins_->Accepts(name_, std::move(tool), seen_);
  co_return accepted;
}

asio::awaitable<absl::Status> Link::SeeTools(std::shared_ptr<const std::vector<std::string>> items) {
  if (pins_ == nullptr || config_.pin == Pin::kOff) co_return absl::OkStatus();
  const auto seen = std::make_shared<const SeenTools>(SeenIn(name_, *items));
  const absl::Status kept = co_await pins_->See(name_, config_.pin, seen);
  seen_ = seen;
  if (!kept.ok() && config_.pin == Pin::kStrict)
    co_return absl::UnavailableError("what its tools look like cannot be kept");
  co_return absl::OkStatus();
}

asio::awaitable<absl::Status> Link::Connect() {
  for (auto& list : lists_) list = nullptr;
  auto opened = Open();
  if (!opened.ok()) co_return absl::UnavailableError(opened.status().message());
  SharedUpstream upstream = *std::move(opened);
  absl::StatusOr<Handshake> handshake = absl::UnavailableError("not asked");
  if (modern_ && !legacy_) {
    ReadPolicy probe = Policy();
    probe.tries = 1;
    probe.timeout = std::min(probe.timeout, kProbePatience);
    handshake = co_await Discover(upstream, probe);
    if (!handshake.ok() && !closed_ && !upstream->alive()) {
      // Some servers end when they are not greeted first.
      opened = Open();
      if (!opened.ok()) co_return absl::UnavailableError(opened.status().message());
      upstream = *std::move(opened);
    }
  }
  if (!handshake.ok() && !closed_ && upstream->alive()) {
    handshake = co_await Initialize(upstream, capabilities_, Policy());
    legacy_ = legacy_ || handshake.ok();
  }
  // A server that knows no session may know the era without them.
  if (!handshake.ok() && !closed_ && upstream->alive()) {
    if (auto discovered = co_await Discover(upstream, Policy()); discovered.ok()) handshake = std::move(discovered);
  }
  if (!handshake.ok() || closed_) {
    upstream->Close();
    co_return handshake.ok() ? absl::UnavailableError("the session has ended") : handshake.status();
  }
  handshake_ = *std::move(handshake);
  upstream_ = upstream;
  upstream_->SetListened([weak = weak_from_this()] {
    const SharedLink link = weak.lock();
    if (link && link->audit_) link->audit_(mcp::method::kListen, nullptr, std::chrono::microseconds(0));
  });
  upstream_->Listen(Filter());
  if (!modern() && !watched_.empty()) asio::co_spawn(loop_, Resubscribe(upstream), asio::detached);
  co_return absl::OkStatus();
}

std::string Link::Filter() const {
  std::string filter;
  const auto add = [&](std::string_view name, const std::string& value) {
    absl::StrAppend(&filter, filter.empty() ? "{" : ",", mcp::Quote(name), ":", value);
  };
  if (Has("tools", "listChanged")) add("toolsListChanged", "true");
  if (Has("prompts", "listChanged")) add("promptsListChanged", "true");
  if (Has("resources", "listChanged")) add("resourcesListChanged", "true");
  if (Has("resources", "subscribe") && !watched_.empty()) {
    std::string uris;
    for (const std::string& uri : Watched()) absl::StrAppend(&uris, uris.empty() ? "[" : ",", mcp::Quote(uri));
    add("resourceSubscriptions", uris + "]");
  }
  return filter.empty() ? filter : filter + "}";
}

asio::awaitable<std::vector<mcp::ParamHeader>> Link::ParamHeaders(std::string tool) {
  std::vector<mcp::ParamHeader> headers;
  // There are no headers on a pipe.
  if (config_.url.empty() || !modern()) co_return headers;
  const auto tools = co_await List(ListKind::kTools);
  if (!tools.ok()) co_return headers;
  for (const std::string& item : **tools) {
    const auto members = mcp::RawObject::Parse(item);
    const std::string_view* name = members.ok() ? members->Find("name") : nullptr;
    const std::string_view* schema = members.ok() ? members->Find("inputSchema") : nullptr;
    if (name == nullptr || schema == nullptr || mcp::StringOf(*name) != tool) continue;
    // Marks that break the rules mean nothing: the upstream will say what it misses.
    if (auto found = mcp::ParamHeadersOf(*schema); found.ok()) headers = *std::move(found);
    break;
  }
  co_return headers;
}

asio::awaitable<UpstreamAnswer> Link::Ask(std::string method, std::string params,
                                          std::function<void(const SharedExchange&)> sent,
                                          decltype(ReadPolicy::over) audit) {
  const auto self = shared_from_this();
  ReadPolicy policy = Policy();
  if (audit) policy.over = std::move(audit);
  policy.sent = std::move(sent);
  UpstreamAnswer answer;
  for (int i = 0; i < 2; ++i) {
    const auto upstream = co_await Ready();
    if (!upstream.ok()) {
      answer.why = std::string(upstream.status().message());
      co_return answer;
    }
    answer = co_await Read(*upstream, method, params, policy);
    if (!answer.session_ended) break;
    Drop();
  }
  co_return answer;
}

ReadPolicy Link::Policy() const {
  ReadPolicy policy = ReadPolicyOf(config_);
  policy.over = audit_;
  return policy;
}

bool Link::Has(std::string_view capability) const {
  if (!handshake_) return false;
  const auto capabilities = mcp::RawObject::Parse(handshake_->capabilities);
  return capabilities.ok() && capabilities->Find(capability) != nullptr;
}

bool Link::Has(std::string_view capability, std::string_view member) const {
  if (!handshake_) return false;
  const auto capabilities = mcp::RawObject::Parse(handshake_->capabilities);
  const std::string_view* whole = capabilities.ok() ? capabilities->Find(capability) : nullptr;
  const auto members = whole ? mcp::RawObject::Parse(*whole) : absl::NotFoundError("");
  const std::string_view* value = members.ok() ? members->Find(member) : nullptr;
  return value != nullptr && mcp::BoolOf(*value).value_or(false);
}

asio::awaitable<absl::StatusOr<std::shared_ptr<const std::vector<std::string>>>> Link::List(ListKind kind) {
  const auto self = shared_from_this();
  if (const auto upstream = co_await Ready(); !upstream.ok()) co_return upstream.status();
  auto& known = lists_[static_cast<size_t>(kind)];
  auto& stale_at = stale_at_[static_cast<size_t>(kind)];
  if (known && (!modern() || std::chrono::steady_clock::now() < stale_at)) co_return known;
  const int changes = changes_;
  auto items = std::make_shared<std::vector<std::string>>();
  const bool templates = kind == ListKind::kTemplates;
  if (!Has(templates ? "resources" : MemberOf(kind))) co_return items;
  std::string cursor;
  size_t bytes = 0;
  bool full = false;
  int64_t ttl_ms = kTtlMaxMs;
  for (int page = 0; page < kPagesMax; ++page) {
    std::string params;
    if (!cursor.empty()) params = absl::StrCat(R"({"cursor":)", cursor, "}");
    const UpstreamAnswer answer = co_await Ask(std::string(MethodOf(kind)), std::move(params));
    // Templates are optional even where resources are not.
    if (templates && answer.how == How::kRpcError) co_return items;
    if (answer.how != How::kResult) co_return absl::UnavailableError("a list could not be had");
    const auto result = mcp::RawObject::Parse(answer.result);
    if (!result.ok()) co_return absl::UnavailableError("a list is no object");
    ttl_ms = std::min(ttl_ms, TtlMsOf(*result));
    const std::string_view* member = result->Find(MemberOf(kind));
    const auto elements = member ? mcp::ElementsOf(*member) : std::nullopt;
    if (!elements) co_return absl::UnavailableError("a list has no items");
    for (const std::string_view element : *elements) {
      if (!mcp::IsObject(element)) continue;
      bytes += element.size();
      full = bytes > kListBytesMax || items->size() >= kItemsMax;
      if (full) break;
      items->emplace_back(element);
    }
    if (full) {
      ops::LogWarning("list_cut_short", {{"upstream", name_}, {"items", items->size()}});
      break;
    }
    const std::string_view* next = result->Find("nextCursor");
    if (next == nullptr || !mcp::StringOf(*next) || *next == cursor) break;
    cursor = *next;
  }
  if (kind == ListKind::kTools) {
    if (const absl::Status kept = co_await SeeTools(items); !kept.ok()) co_return kept;
  }
  stale_at = std::chrono::steady_clock::now() + std::chrono::milliseconds(ttl_ms);
  if (changes == changes_) known = items;
  co_return items;
}

void Link::Changed(ListKind kind) {
  lists_[static_cast<size_t>(kind)] = nullptr;
  ++changes_;
}

void Link::Drop() {
  if (upstream_) upstream_->Close();
  upstream_ = nullptr;
}

void Link::Close() {
  closed_ = true;
  Drop();
  connected_.cancel();
  acknowledged_.cancel();
}

}  // namespace tally::gateway
