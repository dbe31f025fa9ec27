#include "gateway/front/modern.h"

#include <absl/strings/str_cat.h>

#include <utility>
#include <vector>

#include "gateway/mcp/modern.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"

namespace tally::gateway {
namespace {

// How long a client may go by a list or a resource without asking again.
constexpr int kTtlMs = 5'000;

mcp::RequestHeaders HeadersOf(const ClientRequest& request) {
  return {request.Header("mcp-protocol-version"), request.Header("mcp-method"), request.Header("mcp-name")};
}

ClientReply Refused(int status, const mcp::RpcError& error, std::string_view raw_id) {
  ClientReply reply;
  reply.status = status;
  reply.body = mcp::ErrorText(raw_id.empty() ? "null" : raw_id, error);
  return reply;
}

// What may be kept for a while by whoever asked, and by nobody else: it is filtered by a permit.
bool IsCacheable(std::string_view method) {
  namespace m = mcp::method;
  return method == m::kToolsList || method == m::kResourcesList || method == m::kResourcesTemplatesList ||
         method == m::kPromptsList || method == m::kResourcesRead || method == m::kDiscover;
}

bool IsKnown(std::string_view method) {
  namespace m = mcp::method;
  return IsCacheable(method) || method == m::kToolsCall || method == m::kPromptsGet || method == m::kComplete;
}

// Whether the request asks for log messages; without that there must be none.
bool WantsLog(const mcp::Message& request) {
  const auto params = mcp::RawObject::Parse(request.params);
  const std::string_view* meta = params.ok() ? params->Find("_meta") : nullptr;
  const auto members = meta ? mcp::RawObject::Parse(*meta) : absl::NotFoundError("");
  return members.ok() && members->Find(mcp::meta::kLogLevel) != nullptr;
}

// Adds to an answer what this era has in every result.
class ModernOutlet final : public Outlet {
 public:
  ModernOutlet(std::shared_ptr<EventStream> stream, const mcp::Message& request)
      : stream_(std::move(stream)), method_(request.method), wants_log_(WantsLog(request)) {}

  void Send(std::string message) override {
    if (!wants_log_) {
      const auto parsed = mcp::RawObject::Parse(message);
      const std::string_view* method = parsed.ok() ? parsed->Find("method") : nullptr;
      if (method != nullptr && mcp::StringOf(*method) == mcp::notification::kMessage) return;
    }
    stream_->Send(std::move(message));
  }
  void Finish(std::string message, std::function<void()> undelivered) override {
    stream_->Finish(Completed(message), std::move(undelivered));
  }
  void End() override { stream_->End(); }
  bool read() const override { return stream_->read(); }

 private:
  std::string Completed(const std::string& message) const {
    const auto parsed = mcp::RawObject::Parse(message);
    const std::string_view* result = parsed.ok() ? parsed->Find("result") : nullptr;
    if (result == nullptr) return message;
    const auto members = mcp::RawObject::Parse(*result);
    if (!members.ok()) return message;
    std::string whole(*result);
    if (members->Find("resultType") == nullptr) whole = mcp::WithMember(whole, "resultType", R"("complete")");
    if (IsCacheable(method_)) {
      whole = mcp::WithMember(whole, "ttlMs", absl::StrCat(kTtlMs));
      whole = mcp::WithMember(whole, "cacheScope", R"("private")");
    }
    return mcp::WithMember(message, "result", whole);
  }

  const std::shared_ptr<EventStream> stream_;
  const std::string method_;
  const bool wants_log_;
};

}  // namespace

bool Modern::Takes(const ClientRequest& request, const mcp::Message& message) {
  return mcp::IsModern(message, HeadersOf(request));
}

asio::awaitable<ClientReply> Modern::Handle(ClientRequest request, std::string token, mcp::Message message) {
  if (const auto wrong = mcp::CheckModernRequest(message, HeadersOf(request)))
    co_return Refused(400, *wrong, message.id);
  ClientReply reply;
  if (message.kind != mcp::Message::Kind::kRequest) {
    // Cancelling is closing the stream, and nothing of ours is ever asked: there is nothing to be told.
    reply.status = 202;
    co_return reply;
  }
  if (!IsKnown(message.method)) {
    co_return Refused(404, {mcp::code::kMethodNotFound, "This method is not known here. Nothing was done.", ""},
                      message.id);
  }
  const auto permit = co_await services_.authority->GetPermit(token);
  if (!permit.ok() && permit.failure().kind == v1::KIND_UNAUTHORIZED) {
    reply = Refused(401,
                    {mcp::code::kInvalidRequest,
                     "unauthorized: a permit token is needed (Authorization: Bearer …) that the authority knows. "
                     "Nothing was done.",
                     ""},
                    message.id);
    reply.headers.emplace_back("WWW-Authenticate", R"(Bearer realm="tallystick")");
    co_return reply;
  }
  if (!permit.ok() && message.method == mcp::method::kToolsCall) {
    // Not an error of the protocol, on which some frameworks end the agent's run or try again: words for the model.
    const mcp::Refusal refusal = mcp::MakeRefusal(v1::KIND_UNAVAILABLE, mcp::gateway_code::kAuthorityDown);
    if (services_.config->mcp.error_style == Config::ErrorStyle::kJsonRpc) {
      co_return Refused(200, mcp::RefusalError(refusal), message.id);
    }
    reply.body =
        mcp::ResultText(message.id, mcp::WithMember(mcp::RefusalResult(refusal), "resultType", R"("complete")"));
    co_return reply;
  }
  if (!permit.ok()) {
    co_return Refused(200,
                      {mcp::code::kInternalError,
                       absl::StrCat(std::string(client::Info(permit.failure().kind).name),
                                    ": the permit could not be looked up. Nothing was done."),
                       ""},
                      message.id);
  }
  SharedSession& session = sessions_[keys::Sha256(token)];
  if (!session) {
    if (sessions_.size() > static_cast<size_t>(services_.config->limits.sessions_max)) {
      sessions_.erase(keys::Sha256(token));
      co_return Refused(
          503, {mcp::code::kInternalError, "The gateway has as many sessions as it may have. Nothing was done.", ""},
          message.id);
    }
    session = std::make_shared<Session>(services_, token);
    session->Adopt(*permit.value());
  }
  const auto bytes_max = static_cast<size_t>(services_.config->limits.stream_bytes_max);
  reply.stream = std::make_shared<EventStream>(services_.loop, bytes_max, false);
  auto outlet = std::make_shared<ModernOutlet>(reply.stream, message);
  reply.hung_up = session->TakeRequest(std::move(message), request.Headers("idempotency-key"), std::move(outlet));
  co_return reply;
}

void Modern::Sweep() {
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(sessions_, [&](const auto& entry) {
    Session& session = *entry.second;
    if (session.busy()) session.Touch();
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
