#include "gateway/front/link.h"

#include <boost/asio/as_tuple.hpp>
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
constexpr int kPagesMax = 100;
constexpr size_t kItemsMax = 10'000;

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
           std::string capabilities)
    : loop_(std::move(loop)),
      name_(std::move(name)),
      config_(config),
      answer_bytes_max_(answer_bytes_max),
      capabilities_(std::move(capabilities)),
      connected_(loop_, asio::steady_timer::time_point::max()) {}

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

asio::awaitable<absl::Status> Link::Connect() {
  for (auto& list : lists_) list = nullptr;
  const std::weak_ptr<Link> weak = weak_from_this();
  auto opened = OpenUpstream(loop_, name_, config_, answer_bytes_max_,
                             [weak](const mcp::Message& message, const SharedExchange& during) {
                               const SharedLink link = weak.lock();
                               if (link && link->sink_ && !link->closed_) link->sink_(message, during);
                             });
  if (!opened.ok()) co_return opened.status();
  const SharedUpstream upstream = *std::move(opened);
  auto handshake = co_await Initialize(upstream, capabilities_, Policy());
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
  upstream_->Listen();
  co_return absl::OkStatus();
}

asio::awaitable<UpstreamAnswer> Link::Ask(std::string method, std::string params,
                                          std::function<void(const SharedExchange&)> sent) {
  const auto self = shared_from_this();
  ReadPolicy policy = Policy();
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

asio::awaitable<absl::StatusOr<std::shared_ptr<const std::vector<std::string>>>> Link::List(ListKind kind) {
  const auto self = shared_from_this();
  if (const auto upstream = co_await Ready(); !upstream.ok()) co_return upstream.status();
  auto& known = lists_[static_cast<size_t>(kind)];
  if (known) co_return known;
  const int changes = changes_;
  auto items = std::make_shared<std::vector<std::string>>();
  const bool templates = kind == ListKind::kTemplates;
  if (!Has(templates ? "resources" : MemberOf(kind))) co_return items;
  std::string cursor;
  for (int page = 0; page < kPagesMax; ++page) {
    std::string params;
    if (!cursor.empty()) params = absl::StrCat(R"({"cursor":)", cursor, "}");
    const UpstreamAnswer answer = co_await Ask(std::string(MethodOf(kind)), std::move(params));
    // Templates are optional even where resources are not.
    if (templates && answer.how == How::kRpcError) co_return items;
    if (answer.how != How::kResult) co_return absl::UnavailableError("a list could not be had");
    const auto result = mcp::RawObject::Parse(answer.result);
    if (!result.ok()) co_return absl::UnavailableError("a list is no object");
    const std::string_view* member = result->Find(MemberOf(kind));
    const auto elements = member ? mcp::ElementsOf(*member) : std::nullopt;
    if (!elements) co_return absl::UnavailableError("a list has no items");
    for (const std::string_view element : *elements) {
      if (items->size() < kItemsMax && mcp::IsObject(element)) items->emplace_back(element);
    }
    const std::string_view* next = result->Find("nextCursor");
    if (next == nullptr || !mcp::StringOf(*next) || *next == cursor) break;
    cursor = *next;
  }
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
}

}  // namespace tally::gateway
