#include "gateway/front/session.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <initializer_list>
#include <set>
#include <utility>

#include "gateway/mcp/judge.h"
#include "gateway/mcp/names.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using How = mcp::Reply::How;

constexpr size_t kOpenMax = 256;  // requests of one client at one time
// What a client's initialize waits for slow upstreams; they come later then.
constexpr std::chrono::seconds kConnectPatience{15};
constexpr size_t kInstructionsBytesMax = 16 * 1024;  // of one upstream
constexpr std::string_view kServerInfo = R"({"name":"tally-gateway","title":"Tallystick gateway","version":"0.1.0"})";

// What of declared capabilities an upstream may be told: what it can ask a client for. `names`: theirs.
std::string Askable(std::string_view declared, std::set<std::string, std::less<>>* names) {
  std::string told;
  const auto object = mcp::RawObject::Parse(declared);
  if (!object.ok()) return "{}";
  for (const std::string_view name : {"sampling", "elicitation", "roots"}) {
    const std::string_view* value = object->Find(name);
    if (value == nullptr || !mcp::IsObject(*value)) continue;
    if (names != nullptr) names->emplace(name);
    absl::StrAppend(&told, told.empty() ? "" : ",", mcp::Quote(name), ":", std::string(*value));
  }
  return absl::StrCat("{", told, "}");
}

bool AsksForInput(std::string_view raw_result) {
  const auto result = mcp::RawObject::Parse(raw_result);
  return result.ok() && mcp::ResultTypeOf(*result) == mcp::ResultType::kInputRequired;
}

// 2026-07-28: each request says anew what its client can be asked for.
std::string AskableIn(std::string_view raw_params) {
  const auto params = mcp::RawObject::Parse(raw_params);
  const std::string_view* meta = params.ok() ? params->Find("_meta") : nullptr;
  const auto members = meta ? mcp::RawObject::Parse(*meta) : absl::NotFoundError("");
  const std::string_view* declared = members.ok() ? members->Find(mcp::meta::kClientCapabilities) : nullptr;
  return declared ? Askable(*declared, nullptr) : "{}";
}

}  // namespace

Session::Session(FrontServices services, std::string_view permit_token)
    : services_(std::move(services)), token_(std::make_shared<const keys::Secret>(keys::Secret::Copy(permit_token))) {}

Session::~Session() { CloseLinks(); }

std::function<void()> Session::TakeRequest(mcp::Message request, std::vector<std::string> key_headers,
                                           SharedOutlet outlet) {
  Touch();
  auto open = std::make_shared<Open>();
  open->id = request.id;
  // Without sessions an id is unique on its own connection alone.
  open->id_key = modern_ ? absl::StrCat(++last_request_) : mcp::IdKey(request.id);
  open->method = request.method;
  open->outlet = std::move(outlet);
  open->capabilities = modern_ ? AskableIn(request.params) : upstream_capabilities_;
  if (closed_ || open_.size() >= kOpenMax || open_.contains(open->id_key)) {
    const std::string why = closed_                    ? "The session has ended"
                            : open_.size() >= kOpenMax ? "Too many requests are open in this session"
                                                       : "A request with this id is still open";
    open->outlet->Finish(
        mcp::ErrorText(open->id, {mcp::code::kInvalidRequest, absl::StrCat(why, ". Nothing was done."), ""}));
    return [] {};
  }
  open_.emplace(open->id_key, open);
  auto self = shared_from_this();
  asio::co_spawn(
      services_.loop,
      [self, open, request = std::move(request), key_headers = std::move(key_headers)]() mutable
      -> asio::awaitable<void> { co_await self->Work(open, std::move(request), std::move(key_headers)); },
      asio::detached);
  return [weak = weak_from_this(), open] {
    const SharedSession session = weak.lock();
    if (session && session->open_.contains(open->id_key)) session->Cancel(open);
  };
}

void Session::Adopt(const v1::PermitInfo& permit) {
  modern_ = true;
  version_ = mcp::version::k20260728;
  MakeLinks(permit);
}

asio::awaitable<void> Session::Discover(SharedOpen open) {
  co_await Connect();
  std::string versions;
  for (const std::string_view version : mcp::version::kAll) {
    absl::StrAppend(&versions, versions.empty() ? "" : ",", mcp::Quote(version));
  }
  const std::string instructions = MergedInstructions();
  Answer(open,
         absl::StrCat(R"({"supportedVersions":[)", versions, R"(],"capabilities":)", MergedCapabilities(),
                      R"(,"serverInfo":)", std::string(kServerInfo), R"(,"_meta":{)",
                      mcp::Quote(mcp::meta::kServerInfo), ":", std::string(kServerInfo), "}",
                      instructions.empty() ? "" : absl::StrCat(R"(,"instructions":)", mcp::Quote(instructions)), "}"));
}

asio::awaitable<void> Session::Work(SharedOpen open, mcp::Message request, std::vector<std::string> key_headers) {
  namespace method = mcp::method;
  const std::string& name = request.method;
  if (name == method::kDiscover && modern_) co_return co_await Discover(open);
  if (name == method::kListen && modern_) co_return co_await Listen(open, request);
  if (name == method::kPing && !modern_) co_return Answer(open, "{}");
  if (name == method::kInitialize && !modern_) co_return co_await Initialize(open, request);
  if (!initialized()) {
    co_return Fail(open, mcp::code::kInvalidRequest, "The session is not initialised: send initialize first.");
  }
  if (name == method::kToolsCall) co_return co_await CallTool(open, request, std::move(key_headers));
  if (name == method::kToolsList) co_return co_await List(open, request, ListKind::kTools);
  if (name == method::kResourcesList) co_return co_await List(open, request, ListKind::kResources);
  if (name == method::kResourcesTemplatesList) co_return co_await List(open, request, ListKind::kTemplates);
  if (name == method::kPromptsList) co_return co_await List(open, request, ListKind::kPrompts);
  if (name == method::kPromptsGet) co_return co_await GetPrompt(open, request);
  const bool subscription = name == method::kResourcesSubscribe || name == method::kResourcesUnsubscribe;
  if (name == method::kResourcesRead || (subscription && !modern_)) {
    co_return co_await AskAboutResource(open, request);
  }
  if (name == method::kComplete) co_return co_await Complete(open, request);
  if (name == method::kSetLevel && !modern_) co_return co_await SetLevel(open, request);
  Fail(open, mcp::code::kMethodNotFound, "This method is not known here. Nothing was done.");
}

void Session::TakeCapabilities(std::string_view declared) { upstream_capabilities_ = Askable(declared, &declared_); }

asio::awaitable<void> Session::Initialize(SharedOpen open, const mcp::Message& request) {
  if (initialized() || initializing_) {
    co_return Fail(open, mcp::code::kInvalidRequest, "The session is initialised already.");
  }
  const auto params =
      mcp::RawObject::Parse(request.params.empty() ? std::string_view("{}") : std::string_view(request.params));
  const std::string_view* asked = params.ok() ? params->Find("protocolVersion") : nullptr;
  const auto version = asked ? mcp::StringOf(*asked) : std::nullopt;
  if (!version) co_return Fail(open, mcp::code::kInvalidParams, "initialize must name a protocolVersion.");
  initializing_ = true;
  const auto permit = co_await services_.authority->GetPermit(std::string(token_->Expose()));
  if (!permit.ok()) {
    initializing_ = false;
    co_return Fail(open, mcp::code::kInternalError,
                   absl::StrCat(std::string(client::Info(permit.failure().kind).name),
                                ": the permit could not be looked up. Nothing was done. ", permit.failure().message));
  }
  if (const std::string_view* declared = params->Find("capabilities")) TakeCapabilities(*declared);
  MakeLinks(*permit.value());
  co_await Connect();
  version_ = mcp::version::IsLegacy(*version) ? *version : std::string(mcp::version::kLegacy.front());
  const std::string instructions = MergedInstructions();
  Answer(open,
         absl::StrCat(R"({"protocolVersion":)", mcp::Quote(version_), R"(,"capabilities":)", MergedCapabilities(),
                      R"(,"serverInfo":)", std::string(kServerInfo),
                      instructions.empty() ? "" : absl::StrCat(R"(,"instructions":)", mcp::Quote(instructions)), "}"));
}

void Session::MakeLinks(const v1::PermitInfo& permit) {
  permit_id_ = permit.permit_id();
  for (const auto& [name, config] : services_.config->upstreams) {
    const std::string begin = absl::StrCat(name, std::string(mcp::kNameSeparator));
    const bool granted = std::any_of(permit.grants().begin(), permit.grants().end(), [&](const v1::GrantUsage& grant) {
      std::string_view tool = grant.terms().tool();
      if (!tool.ends_with('*')) return tool.starts_with(begin);
      tool.remove_suffix(1);
      return tool.starts_with(begin) || begin.starts_with(tool);
    });
    if (!granted) continue;
    SharedLink link;
    if (config.shared) {
      link = services_.shared->Get(name);
    } else {
      link = std::make_shared<Link>(services_.loop, name, config, services_.config->limits.answer_bytes_max,
                                    upstream_capabilities_, modern_);
      link->SetPins(services_.pins);
      link->SetAudit(AuditOfReads(services_.audit, name, permit_id_));
    }
    const std::weak_ptr<Session> weak = weak_from_this();
    const std::weak_ptr<Link> weak_link = link;
    link->Listen(this, [weak, weak_link](const mcp::Message& message, const SharedExchange& during) {
      const SharedSession session = weak.lock();
      const SharedLink from = weak_link.lock();
      if (session && from) session->TakeFromUpstream(from, message, during);
    });
    links_.emplace(name, std::move(link));
  }
}

asio::awaitable<void> Session::Connect() {
  auto all = std::make_shared<asio::steady_timer>(services_.loop, kConnectPatience);
  auto waiting = std::make_shared<size_t>(links_.size());
  if (links_.empty()) co_return;
  for (const auto& [name, link] : links_) {
    asio::co_spawn(
        services_.loop,
        [link = link, all, waiting]() -> asio::awaitable<void> {
          co_await link->Ready();
          if (--*waiting == 0) all->cancel();
        },
        asio::detached);
  }
  // Those that were connected have said so already.
  if (*waiting > 0) co_await all->async_wait(asio::as_tuple(asio::use_awaitable));
}

bool Session::AnyHas(std::string_view capability, std::string_view member) const {
  return std::any_of(links_.begin(), links_.end(), [&](const auto& entry) {
    const SharedLink& link = entry.second;
    return member.empty() ? link->Has(capability) : link->Has(capability, member);
  });
}

std::string Session::MergedCapabilities() const {
  // To clients of the older era all is promised at once: an upstream may come later than their initialize.
  const auto said = [this](std::string_view capability, std::initializer_list<std::string_view> members) {
    std::string all;
    for (const std::string_view member : members) {
      if (modern_ && !AnyHas(capability, member)) continue;
      absl::StrAppend(&all, all.empty() ? "" : ",", mcp::Quote(member), ":true");
    }
    return absl::StrCat(mcp::Quote(capability), ":{", all, "}");
  };
  // There are always tools: our own.
  std::string capabilities = absl::StrCat("{", said("tools", {"listChanged"}));
  if (AnyHas("resources", "")) absl::StrAppend(&capabilities, ",", said("resources", {"subscribe", "listChanged"}));
  if (AnyHas("prompts", "")) absl::StrAppend(&capabilities, ",", said("prompts", {"listChanged"}));
  // A shared process' log is about all of its clients: it reaches none.
  const bool logging = std::any_of(links_.begin(), links_.end(), [](const auto& link) {
    return !link.second->shared() && link.second->Has("logging");
  });
  if (logging && !modern_) absl::StrAppend(&capabilities, R"(,"logging":{})");
  if (AnyHas("completions", "")) absl::StrAppend(&capabilities, R"(,"completions":{})");
  return capabilities + "}";
}

std::string Session::MergedInstructions() const {
  std::string all;
  for (const auto& [name, link] : links_) {
    const Handshake* handshake = link->handshake();
    const auto text = handshake ? mcp::StringOf(handshake->instructions) : std::nullopt;
    if (!text || text->empty() || text->size() > kInstructionsBytesMax) continue;
    absl::StrAppend(&all, all.empty() ? "" : "\n\n", "Tools ", name, std::string(mcp::kNameSeparator), "*: ", *text);
  }
  return all;
}

SharedLink Session::FindLink(std::string_view name) const {
  const auto found = links_.find(name);
  return found == links_.end() ? nullptr : found->second;
}

void Session::TakeNotification(const mcp::Message& notification) {
  Touch();
  const auto params = mcp::RawObject::Parse(notification.params.empty() ? std::string_view("{}")
                                                                        : std::string_view(notification.params));
  if (notification.method == mcp::notification::kCancelled) {
    const std::string_view* id = params.ok() ? params->Find("requestId") : nullptr;
    if (id == nullptr || !(mcp::StringOf(*id) || mcp::IntegerOf(*id))) return;
    const auto found = open_.find(mcp::IdKey(*id));
    // initialize must not be cancelled.
    if (found != open_.end() && found->second->method != mcp::method::kInitialize) Cancel(SharedOpen(found->second));
  } else if (notification.method == mcp::notification::kRootsChanged) {
    for (const auto& [name, link] : links_) {
      if (link->current() && !link->shared())
        link->current()->Post(mcp::NotificationText(notification.method, notification.params));
    }
  }
}

// The agent wants no answer any more. A tools/call goes on all the same: it may have been carried out, and what comes
// of it must be committed.
void Session::Cancel(const SharedOpen& open) {
  open->cancelled = true;
  open_.erase(open->id_key);
  EndSubscription(open);
  FailInquiries(open);
  open->outlet->End();
  if (open->method == mcp::method::kToolsCall || !open->exchange || !open->link) return;
  if (const SharedUpstream upstream = open->link->current()) {
    const std::string id = upstream->IdOf(open->exchange);
    if (!id.empty()) {
      upstream->Post(mcp::NotificationText(mcp::notification::kCancelled, absl::StrCat(R"({"requestId":)", id, "}")));
    }
    upstream->Forget(open->exchange);
  }
  UpstreamAnswer cancelled;
  cancelled.how = How::kGarbage;
  cancelled.why = "cancelled";
  open->exchange->Finish(std::move(cancelled));
}

void Session::Answer(const SharedOpen& open, std::string_view raw_result, std::function<void()> undelivered) {
  Finish(open, mcp::ResultText(open->id, raw_result), std::move(undelivered));
}

void Session::Fail(const SharedOpen& open, const mcp::RpcError& error, std::function<void()> undelivered) {
  Finish(open, mcp::ErrorText(open->id, error), std::move(undelivered));
}

void Session::Fail(const SharedOpen& open, int64_t code, std::string message) {
  Fail(open, mcp::RpcError{code, std::move(message), ""});
}

void Session::AnswerAs(const SharedOpen& open, const UpstreamAnswer& answer, const std::string& upstream) {
  if (answer.how == How::kResult && !modern_ && AsksForInput(answer.result)) {
    return Fail(open, mcp::code::kInternalError,
                absl::StrCat("The upstream ", upstream,
                             " asks for input in a way that MCP has since 2026-07-28, and this client speaks an older "
                             "revision. Nothing was changed by asking."));
  }
  if (answer.how == How::kResult) return Answer(open, answer.result);
  const bool said = answer.how == How::kHttpStatus && answer.error.code != 0;
  if (answer.how == How::kRpcError || said) return Fail(open, answer.error);
  Fail(open, mcp::code::kInternalError,
       absl::StrCat("The upstream ", upstream, " gave no answer (", answer.why,
                    "). Nothing was changed by asking; it may be asked again."));
}

void Session::Finish(const SharedOpen& open, std::string message, std::function<void()> undelivered) {
  if (open->upstream_token != 0) by_token_.erase(open->upstream_token);
  Touch();
  if (open->cancelled) {
    if (undelivered) undelivered();
    return;
  }
  open_.erase(open->id_key);
  EndSubscription(open);
  open->outlet->Finish(std::move(message), std::move(undelivered));
}

void Session::Close() {
  if (closed_) return;
  closed_ = true;
  for (const auto& [id, asked] : asked_) {
    if (asked.inquiry) continue;
    if (const SharedUpstream upstream = asked.upstream.lock()) {
      upstream->Post(mcp::ErrorText(asked.id, {mcp::code::kInternalError, "The client has gone.", ""}));
    }
  }
  std::erase_if(asked_, [](const auto& entry) { return entry.second.inquiry == nullptr; });
  const auto subscriptions = subscriptions_;
  for (const auto& subscription : subscriptions) Answer(subscription->open, SubscriptionEnd(subscription->open));
  const auto open = open_;
  for (const auto& [key, request] : open) Cancel(request);
  asked_.clear();
  if (calls_ == 0) CloseLinks();
}

void Session::CloseLinks() {
  for (const auto& [name, link] : links_) {
    if (link->shared()) {
      link->Leave(this);
    } else {
      link->Close();
    }
  }
  links_.clear();
}

}  // namespace tally::gateway
