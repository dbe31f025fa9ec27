#include "gateway/front/modern.h"

#include <absl/strings/str_cat.h>

#include <utility>
#include <vector>

#include "gateway/front/modern_outlet.h"
#include "gateway/mcp/modern.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"

namespace tally::gateway {
namespace {

// An error's own HTTP status can be said only as long as no event was. A first notification ends the waiting.
constexpr std::chrono::seconds kQuick{5};

mcp::RequestHeaders HeadersOf(const ClientRequest& request) {
  return {request.Header("mcp-protocol-version"), request.Header("mcp-method"), request.Header("mcp-name")};
}

ClientReply Refused(int status, const mcp::RpcError& error, std::string_view raw_id) {
  ClientReply reply;
  reply.status = status;
  reply.body = mcp::ErrorText(raw_id.empty() ? "null" : raw_id, error);
  return reply;
}

bool IsKnown(std::string_view method) {
  namespace m = mcp::method;
  return IsCacheable(method) || method == m::kToolsCall || method == m::kPromptsGet || method == m::kComplete ||
         method == m::kListen;
}

}  // namespace

bool Modern::Takes(const ClientRequest& request, const mcp::Message& message) {
  return mcp::IsModern(message, HeadersOf(request));
}

asio::awaitable<ClientReply> Modern::Handle(ClientRequest request, std::string token, mcp::Message message) {
  if (const auto wrong = mcp::CheckModernRequest(message, HeadersOf(request)))
    co_return Refused(400, *wrong, message.id);
  ClientReply reply;
  reply.quick = kQuick;
  if (message.kind != mcp::Message::Kind::kRequest) {
    // Cancelling is closing the stream, and nothing of ours is ever asked: there is nothing to be told.
    reply.status = 202;
    co_return reply;
  }
  const auto bytes_max = static_cast<size_t>(services_.config->limits.stream_bytes_max);
  auto stream = std::make_shared<EventStream>(services_.loop, bytes_max, false);
  SharedOutlet outlet = std::make_shared<ModernOutlet>(stream, message, [weak = std::weak_ptr(stream)](int status) {
    if (const auto to = weak.lock()) to->set_status(status);
  });
  std::vector<std::string> key_headers = request.Headers("idempotency-key");
  ModernAnswer answer = co_await Take(std::move(token), std::move(message), std::move(key_headers), std::move(outlet));
  reply.status = answer.status;
  reply.body = std::move(answer.body);
  if (reply.status == 401) reply.headers.emplace_back("WWW-Authenticate", R"(Bearer realm="tallystick")");
  if (reply.body.empty()) reply.stream = std::move(stream);
  reply.hung_up = std::move(answer.cancel);
  co_return reply;
}

asio::awaitable<ModernAnswer> Modern::Take(std::string token, mcp::Message message,
                                           std::vector<std::string> key_headers, SharedOutlet outlet) {
  const auto refused = [&message](int status, int64_t code, std::string_view what) {
    ModernAnswer answer;
    answer.status = status;
    answer.body = mcp::ErrorText(message.id, {code, std::string(what), ""});
    return answer;
  };
  if (!IsKnown(message.method)) {
    co_return refused(404, mcp::code::kMethodNotFound, "This method is not known here. Nothing was done.");
  }
  const auto permit = co_await services_.authority->GetPermit(token);
  if (!permit.ok() && permit.failure().kind == v1::KIND_UNAUTHORIZED) {
    co_return refused(401, mcp::code::kInvalidRequest,
                      "unauthorized: a permit token is needed (Authorization: Bearer …) that the authority knows. "
                      "Nothing was done.");
  }
  if (!permit.ok() && message.method == mcp::method::kToolsCall) {
    // Not an error of the protocol, on which some frameworks end the agent's run or try again: words for the model.
    const mcp::Refusal refusal = mcp::MakeRefusal(v1::KIND_UNAVAILABLE, mcp::gateway_code::kAuthorityDown);
    const bool plain = services_.config->mcp.error_style == Config::ErrorStyle::kJsonRpc;
    ModernAnswer answer;
    answer.body = plain ? mcp::ErrorText(message.id, mcp::RefusalError(refusal))
                        : mcp::ResultText(message.id, mcp::RefusalResult(refusal, true));
    co_return answer;
  }
  if (!permit.ok()) {
    const std::string kind(client::Info(permit.failure().kind).name);
    co_return refused(200, mcp::code::kInternalError, kind + ": the permit could not be looked up. Nothing was done.");
  }
  SharedSession& session = sessions_[keys::Sha256(token)];
  if (!session) {
    if (sessions_.size() > static_cast<size_t>(services_.config->limits.sessions_max)) {
      sessions_.erase(keys::Sha256(token));
      co_return refused(503, mcp::code::kInternalError,
                        "The gateway has as many sessions as it may have. Nothing was done.");
    }
    session = std::make_shared<Session>(services_, token);
    session->Adopt(*permit.value());
  }
  ModernAnswer answer;
  answer.cancel = session->TakeRequest(std::move(message), std::move(key_headers), std::move(outlet));
  co_return answer;
}

void Modern::Sweep() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(sessions_, [&](const auto& entry) {
    Session& session = *entry.second;
    if (session.busy()) session.Touch();
    session.CheckSubscriptions();
    const bool idle = now - session.last_used() > services_.config->limits.session_idle;
    if (idle) session.Close();
    return idle;
  });
}

void Modern::CloseAll() {
  for (const auto& [token, session] : sessions_) session->Close();
  sessions_.clear();
}

}  // namespace tally::gateway
