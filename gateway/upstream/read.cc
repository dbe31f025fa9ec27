#include "gateway/upstream/read.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

using How = mcp::Reply::How;
using std::chrono::milliseconds;

bool MayAskAgain(const UpstreamAnswer& answer) {
  if (answer.how == How::kNothing) return true;
  const int status = answer.http_status;
  return answer.how == How::kHttpStatus && (status == 408 || status == 429 || status >= 500);
}

milliseconds Jittered(milliseconds most) {
  static std::mt19937_64 generator{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<int64_t>(0, most.count())(generator));
}

}  // namespace

asio::awaitable<UpstreamAnswer> Read(SharedUpstream upstream, std::string method, std::string params,
                                     ReadPolicy policy) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  milliseconds backoff = policy.backoff_first;
  for (int i = 1;; ++i) {
    OutgoingRequest request;
    request.method = method;
    request.params = params;
    request.quick = true;
    const auto began = std::chrono::steady_clock::now();
    const SharedExchange exchange = upstream->Send(std::move(request));
    if (policy.sent) policy.sent(exchange);
    if (!co_await exchange->Wait(policy.timeout)) {
      upstream->Forget(exchange);
      exchange->FinishWithNothing("it did not answer in time");
    }
    if (policy.over) {
      policy.over(method, exchange,
                  std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - began));
    }
    if (!MayAskAgain(exchange->answer()) || i >= policy.tries || !upstream->alive()) co_return exchange->answer();
    timer.expires_after(Jittered(backoff));
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    backoff *= 2;
  }
}

asio::awaitable<absl::StatusOr<Handshake>> Initialize(SharedUpstream upstream, std::string capabilities,
                                                      ReadPolicy policy) {
  const std::string params =
      absl::StrCat(R"({"protocolVersion":"2025-11-25","capabilities":)", capabilities,
                   R"(,"clientInfo":{"name":"tally-gateway","title":"Tallystick gateway","version":"0.1.0"}})");
  const UpstreamAnswer answer = co_await Read(upstream, std::string(mcp::method::kInitialize), params, policy);
  if (answer.how == How::kRpcError) {
    co_return absl::UnavailableError(absl::StrCat("initialize was refused with code ", answer.error.code));
  }
  if (answer.how != How::kResult) co_return absl::UnavailableError(absl::StrCat("initialize failed: ", answer.why));
  const auto result = mcp::RawObject::Parse(answer.result);
  if (!result.ok()) co_return absl::UnavailableError("initialize was answered with what is no object");
  const std::string_view* version = result->Find("protocolVersion");
  Handshake handshake;
  handshake.protocol_version = version ? mcp::StringOf(*version).value_or("") : "";
  if (!mcp::version::IsLegacy(handshake.protocol_version)) {
    co_return absl::UnavailableError("it speaks no revision of MCP that the gateway speaks");
  }
  if (const auto* found = result->Find("capabilities"); found && mcp::IsObject(*found)) handshake.capabilities = *found;
  if (const auto* found = result->Find("serverInfo")) handshake.server_info = *found;
  if (const auto* found = result->Find("instructions")) handshake.instructions = *found;
  upstream->SetProtocolVersion(handshake.protocol_version);
  upstream->Post(mcp::NotificationText(mcp::notification::kInitialized, ""));
  co_return handshake;
}

asio::awaitable<absl::StatusOr<Handshake>> Discover(SharedUpstream upstream, ReadPolicy policy) {
  upstream->SetProtocolVersion(std::string(mcp::version::k20260728));
  const UpstreamAnswer answer = co_await Read(upstream, std::string(mcp::method::kDiscover), "", policy);
  const auto result = answer.how == How::kResult ? mcp::RawObject::Parse(answer.result) : absl::NotFoundError("");
  const std::string_view* versions = result.ok() ? result->Find("supportedVersions") : nullptr;
  const auto spoken = versions ? mcp::ElementsOf(*versions) : std::nullopt;
  if (!spoken || std::none_of(spoken->begin(), spoken->end(),
                              [](std::string_view raw) { return mcp::StringOf(raw) == mcp::version::k20260728; })) {
    upstream->SetProtocolVersion("");
    co_return absl::UnavailableError("it does not speak the revision 2026-07-28");
  }
  Handshake handshake;
  handshake.protocol_version = mcp::version::k20260728;
  if (const auto* found = result->Find("capabilities"); found && mcp::IsObject(*found)) handshake.capabilities = *found;
  if (const auto* found = result->Find("instructions")) handshake.instructions = *found;
  co_return handshake;
}

}  // namespace tally::gateway
