// What a client asks for: tools, prompts, resources, and lists of them over all upstreams.
#include <absl/strings/escaping.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <set>
#include <utility>

#include "gateway/call/own_tools.h"
#include "gateway/front/session.h"
#include "gateway/mcp/names.h"
#include "gateway/mcp/param_headers.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/tool_call.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using How = mcp::Reply::How;

constexpr size_t kPageItems = 200;

// The value of a string member, or nullopt.
std::optional<std::string> StringMember(std::string_view object, std::string_view name) {
  const auto parsed = mcp::RawObject::Parse(object);
  const std::string_view* value = parsed.ok() ? parsed->Find(name) : nullptr;
  return value ? mcp::StringOf(*value) : std::nullopt;
}

// A cursor is a place in a list of ours; opaque to clients, and never an upstream's.
std::string CursorAt(ListKind kind, size_t place) {
  return absl::WebSafeBase64Escape(absl::StrCat(std::string(MemberOf(kind)), ":", place));
}

std::optional<size_t> PlaceOf(ListKind kind, const std::string& cursor) {
  std::string text;
  const std::string begin = absl::StrCat(std::string(MemberOf(kind)), ":");
  size_t place = 0;
  if (!absl::WebSafeBase64Unescape(cursor, &text) || !text.starts_with(begin)) return std::nullopt;
  if (!absl::SimpleAtoi(text.substr(begin.size()), &place)) return std::nullopt;
  return place;
}

// The part of a template before its first variable.
std::string_view LiteralPart(std::string_view uri_template) { return uri_template.substr(0, uri_template.find('{')); }

// 2026-07-28: a tool whose marks break the rules is not to be listed.
bool MarksFit(std::string_view tool) {
  const auto members = mcp::RawObject::Parse(tool);
  const std::string_view* schema = members.ok() ? members->Find("inputSchema") : nullptr;
  return schema == nullptr || mcp::ParamHeadersOf(*schema).ok();
}

}  // namespace

asio::awaitable<void> Session::CallTool(SharedOpen open, const mcp::Message& request,
                                        std::vector<std::string> key_headers) {
  auto parsed = mcp::ParseToolCall(request.params, key_headers);
  if (const auto* error = std::get_if<mcp::RpcError>(&parsed)) co_return Fail(open, *error);
  mcp::ToolCall call = std::get<mcp::ToolCall>(std::move(parsed));
  if (!modern_) {
    // The older era has no such members.
    call.input_responses.clear();
    call.request_state.clear();
  } else if (!call.input_responses.empty() && !mcp::IsObject(call.input_responses)) {
    co_return Fail(open, mcp::code::kInvalidParams, "params.inputResponses must be an object. Nothing was done.");
  } else if (!call.request_state.empty() && !mcp::StringOf(call.request_state)) {
    co_return Fail(open, mcp::code::kInvalidParams, "params.requestState must be a string. Nothing was done.");
  }
  const std::string token(token_->Expose());
  if (call.name == mcp::kCallStatusTool) {
    const std::string status = co_await CallStatus(*services_.authority, token, std::move(call));
    co_return Answer(open, status);
  }
  if (call.name == mcp::kPermitStatusTool) {
    const std::string status = co_await PermitStatus(*services_.authority, token);
    co_return Answer(open, status);
  }
  const auto name = mcp::SplitName(call.name);
  const auto config =
      name ? services_.config->upstreams.find(std::string(name->upstream)) : services_.config->upstreams.end();
  if (config == services_.config->upstreams.end()) {
    co_return Fail(open, mcp::code::kInvalidParams, "Unknown tool. Nothing was done.");
  }

  CallOrder order;
  order.permit_token = token_;
  order.upstream_name = config->first;
  order.tool = name->tool;
  order.config = config->second.ForTool(name->tool);
  if (const auto permit = co_await services_.authority->GetPermit(token); permit.ok()) {
    order.permit_id = permit.value()->permit_id();
    if (const v1::GrantUsage* grant = GrantFor(*permit.value(), call.name)) {
      order.effect = grant->terms().effect();
      if (grant->terms().send_within_ms() > 0) order.send_within_ms = grant->terms().send_within_ms();
    }
  }
  open->progress_token = call.progress_token;
  if (!call.progress_token.empty()) {
    open->upstream_token = NewToken();
    by_token_[open->upstream_token] = open;
    order.progress_token = absl::StrCat(open->upstream_token);
  }
  order.call = std::move(call);
  const auto self = shared_from_this();
  // Without a link there is no grant on the upstream: tallyd says so, with its receipt.
  if (const SharedLink link = FindLink(config->first)) {
    open->link = link;
    order.upstream = [link, tool = order.tool] { return link->ReadyFor(tool); };
    order.session_ended = [link] { link->Drop(); };
    order.param_headers = [link, tool = order.tool] { return link->ParamHeaders(tool); };
  }
  // A shared process is to ask nobody.
  if (!open->link || !open->link->shared()) order.capabilities = open->capabilities;
  if (!modern_) {
    order.ask = [self, open](std::string requests, std::chrono::milliseconds at_most) {
      return self->AskClient(open, std::move(requests), at_most);
    };
  }
  order.sent = [open](const SharedExchange& exchange) { open->exchange = exchange; };
  order.answer = [self, open](ToolAnswer answer, std::function<void()> undelivered) {
    if (answer.error) {
      self->Fail(open, *answer.error, std::move(undelivered));
    } else {
      self->Answer(open, answer.result, std::move(undelivered));
    }
  };
  order.over = [self] {
    if (--self->calls_ == 0 && self->closed_) self->CloseLinks();
  };
  ++calls_;
  services_.caller->Start(std::move(order));
}

asio::awaitable<UpstreamAnswer> Session::Forward(SharedOpen open, SharedLink link, std::string method,
                                                 std::string params) {
  open->link = link;
  params = WithOurToken(open, std::move(params));
  std::function<void(const SharedExchange&)> sent = [open](const SharedExchange& exchange) {
    open->exchange = exchange;
  };
  auto audit = AuditOfReads(services_.audit, link->name(), permit_id_);
  co_return co_await link->Ask(std::move(method), std::move(params), std::move(sent), std::move(audit));
}

std::string Session::WithOurToken(const SharedOpen& open, std::string params) {
  const auto object = mcp::RawObject::Parse(params);
  const std::string_view* meta = object.ok() ? object->Find("_meta") : nullptr;
  const auto members = meta ? mcp::RawObject::Parse(*meta) : absl::NotFoundError("");
  const std::string_view* token = members.ok() ? members->Find(mcp::meta::kProgressToken) : nullptr;
  if (token == nullptr) return params;
  if (open->upstream_token == 0) {
    open->progress_token = *token;
    open->upstream_token = NewToken();
    by_token_[open->upstream_token] = open;
  }
  return mcp::WithMember(params, "_meta",
                         mcp::WithMember(*meta, mcp::meta::kProgressToken, absl::StrCat(open->upstream_token)));
}

asio::awaitable<void> Session::GetPrompt(SharedOpen open, const mcp::Message& request) {
  const auto joined = StringMember(request.params, "name");
  const auto name = joined ? mcp::SplitName(*joined) : std::nullopt;
  const SharedLink link = name ? FindLink(name->upstream) : nullptr;
  if (!link) co_return Fail(open, mcp::code::kInvalidParams, "Unknown prompt.");
  const std::string params = mcp::WithMember(request.params, "name", mcp::Quote(name->tool));
  const UpstreamAnswer answer = co_await Forward(open, link, request.method, params);
  AnswerAs(open, answer, link->name());
}

asio::awaitable<std::vector<SharedLink>> Session::LinksFor(std::string uri) {
  std::vector<SharedLink> exact;
  std::vector<SharedLink> by_template;
  std::vector<SharedLink> others;
  const auto links = links_;
  for (const auto& [name, link] : links) {
    if (const auto upstream = co_await link->Ready(); !upstream.ok() || !link->Has("resources")) continue;
    bool listed = false;
    bool fits = false;
    if (const auto resources = co_await link->List(ListKind::kResources); resources.ok()) {
      for (const std::string& item : **resources) listed = listed || StringMember(item, "uri") == uri;
    }
    if (const auto templates = co_await link->List(ListKind::kTemplates); !listed && templates.ok()) {
      for (const std::string& item : **templates) {
        const std::string pattern = StringMember(item, "uriTemplate").value_or("{");
        fits = fits || (!LiteralPart(pattern).empty() && uri.starts_with(LiteralPart(pattern)));
      }
    }
    (listed ? exact : fits ? by_template : others).push_back(link);
  }
  exact.insert(exact.end(), by_template.begin(), by_template.end());
  exact.insert(exact.end(), others.begin(), others.end());
  co_return exact;
}

asio::awaitable<void> Session::AskAboutResource(SharedOpen open, const mcp::Message& request) {
  const auto uri = StringMember(request.params, "uri");
  if (!uri) co_return Fail(open, mcp::code::kInvalidParams, "A resource is named by its uri.");
  if (request.method == mcp::method::kResourcesSubscribe) co_return co_await Subscribe(open, request, *uri);
  if (request.method == mcp::method::kResourcesUnsubscribe) co_return co_await Unsubscribe(open, request, *uri);
  UpstreamAnswer answer;
  std::string upstream;
  // Reading changes nothing, so that whoever may have it can be asked in turn.
  const std::vector<SharedLink> links = co_await LinksFor(*uri);
  for (const SharedLink& link : links) {
    upstream = link->name();
    answer = co_await Forward(open, link, request.method, request.params);
    if (answer.how == How::kResult || open->cancelled) break;
  }
  if (upstream.empty()) co_return Fail(open, mcp::code::kResourceNotFound, "No upstream has resources.");
  AnswerAs(open, answer, upstream);
}

asio::awaitable<void> Session::Subscribe(SharedOpen open, const mcp::Message& request, std::string uri) {
  UpstreamAnswer answer;
  std::string upstream;
  const std::vector<SharedLink> links = co_await LinksFor(uri);
  for (const SharedLink& link : links) {
    const bool before = link->Watches(this, uri);
    if (link->modern()) {
      // 2026-07-28 has a stream for it in place of a request.
      if (!link->Has("resources", "subscribe")) continue;
      if (!before) co_await link->Watch(this, uri);
      co_return Answer(open, "{}");
    }
    upstream = link->name();
    // Before it is asked: the first update may come before the answer.
    if (!link->NoteWatch(this, uri)) {
      co_return Fail(open, mcp::code::kInvalidRequest, "The session has as many subscriptions as it may have.");
    }
    answer = co_await Forward(open, link, request.method, request.params);
    if (answer.how == How::kResult && !closed_) break;
    if (!before || closed_) link->DropWatch(this, uri);
    if (open->cancelled) break;
  }
  if (upstream.empty()) co_return Fail(open, mcp::code::kResourceNotFound, "No upstream has resources.");
  AnswerAs(open, answer, upstream);
}

asio::awaitable<void> Session::Unsubscribe(SharedOpen open, const mcp::Message& request, std::string uri) {
  const auto links = links_;
  for (const auto& [name, link] : links) {
    if (!link->Watches(this, uri)) continue;
    if (link->modern()) {
      link->Unwatch(this, uri);
      continue;
    }
    // Others may want it still: then the upstream hears nothing of it.
    if (!link->DropWatch(this, uri)) continue;
    const UpstreamAnswer answer = co_await Forward(open, link, request.method, request.params);
    co_return AnswerAs(open, answer, name);
  }
  Answer(open, "{}");
}

asio::awaitable<void> Session::Complete(SharedOpen open, const mcp::Message& request) {
  const auto params =
      mcp::RawObject::Parse(request.params.empty() ? std::string_view("{}") : std::string_view(request.params));
  const std::string_view* ref = params.ok() ? params->Find("ref") : nullptr;
  if (ref == nullptr) co_return Fail(open, mcp::code::kInvalidParams, "A completion needs a ref.");
  if (const auto joined = StringMember(*ref, "name")) {
    const auto name = mcp::SplitName(*joined);
    const SharedLink link = name ? FindLink(name->upstream) : nullptr;
    if (!link) co_return Fail(open, mcp::code::kInvalidParams, "Unknown prompt.");
    const std::string told =
        mcp::WithMember(request.params, "ref", mcp::WithMember(*ref, "name", mcp::Quote(name->tool)));
    const UpstreamAnswer answer = co_await Forward(open, link, request.method, told);
    co_return AnswerAs(open, answer, link->name());
  }
  const auto uri = StringMember(*ref, "uri");
  if (!uri) co_return Fail(open, mcp::code::kInvalidParams, "A ref names a prompt or a uri.");
  const std::vector<SharedLink> links = co_await LinksFor(*uri);
  if (links.empty()) co_return Fail(open, mcp::code::kInvalidParams, "No upstream has resources.");
  const UpstreamAnswer answer = co_await Forward(open, links.front(), request.method, request.params);
  AnswerAs(open, answer, links.front()->name());
}

asio::awaitable<void> Session::SetLevel(SharedOpen open, const mcp::Message& request) {
  UpstreamAnswer answer;
  std::string refused;
  const auto links = links_;
  for (const auto& [name, link] : links) {
    // 2026-07-28 knows levels of requests alone.
    if (!link->Has("logging") || link->modern() || link->shared()) continue;
    const UpstreamAnswer one = co_await Forward(open, link, request.method, request.params);
    if (one.how != How::kRpcError) continue;
    answer = one;
    refused = name;
  }
  if (!refused.empty()) co_return AnswerAs(open, answer, refused);
  Answer(open, "{}");
}

asio::awaitable<std::vector<std::string>> Session::Merged(ListKind kind) {
  std::vector<std::string> all;
  std::set<std::string> seen;
  const auto permit = co_await services_.authority->GetPermit(std::string(token_->Expose()));
  const bool active = permit.ok() && permit.value()->state() == v1::ACTIVE;
  const auto links = links_;
  for (const auto& [name, link] : links) {
    if (!active) break;
    const auto items = co_await link->List(kind);
    if (!items.ok()) continue;  // logged where it failed; what the others have is shown
    for (const std::string& item : **items) {
      if (kind == ListKind::kResources || kind == ListKind::kTemplates) {
        const auto uri = StringMember(item, kind == ListKind::kResources ? "uri" : "uriTemplate");
        if (uri && seen.insert(*uri).second) all.push_back(item);
        continue;
      }
      const auto own = StringMember(item, "name");
      const auto joined = own ? mcp::JoinName(name, *own) : std::nullopt;
      if (!joined) {
        ops::LogWarning("name_left_out", {{"upstream", name}, {"bytes", own ? own->size() : 0}});
        continue;
      }
      // The first counts: of two with one name a client would call it does not know which.
      if (!seen.insert(*joined).second) continue;
      if (kind == ListKind::kTools && GrantFor(*permit.value(), *joined) == nullptr) continue;
      if (kind == ListKind::kTools) {
        if (const bool allowed = co_await link->Allows(*own); !allowed) continue;  // reported where it was seen
      }
      if (kind == ListKind::kTools && link->modern() && !MarksFit(item)) {
        ops::LogWarning("tool_left_out", {{"upstream", name}, {"why", "its x-mcp-header marks break the rules"}});
        continue;
      }
      all.push_back(mcp::WithMember(item, "name", mcp::Quote(*joined)));
    }
  }
  if (kind == ListKind::kTools) {
    all.emplace_back(CallStatusDescription());
    all.emplace_back(PermitStatusDescription());
  }
  co_return all;
}

asio::awaitable<void> Session::List(SharedOpen open, const mcp::Message& request, ListKind kind) {
  size_t from = 0;
  if (const auto cursor = StringMember(request.params, "cursor")) {
    const auto place = PlaceOf(kind, *cursor);
    if (!place) co_return Fail(open, mcp::code::kInvalidParams, "This cursor is not one of ours.");
    from = *place;
  }
  const std::vector<std::string> all = co_await Merged(kind);
  std::string items;
  size_t next = from;
  for (; next < all.size() && next < from + kPageItems; ++next)
    absl::StrAppend(&items, items.empty() ? "" : ",", all[next]);
  std::string result = absl::StrCat("{", mcp::Quote(MemberOf(kind)), ":[", items, "]");
  if (next < all.size()) absl::StrAppend(&result, R"(,"nextCursor":)", mcp::Quote(CursorAt(kind, next)));
  Answer(open, result + "}");
}

}  // namespace tally::gateway
