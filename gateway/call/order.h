// One tools/call as the front hands it over.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gateway/config/config.h"
#include "gateway/mcp/message.h"
#include "gateway/mcp/param_headers.h"
#include "gateway/mcp/tool_call.h"
#include "gateway/upstream/session.h"
#include "lib/keys/secret.h"
#include "tally/v1/common.pb.h"

namespace tally::gateway {

// A tool result, or a JSON-RPC error.
struct ToolAnswer {
  std::string result = {};  // raw
  std::optional<mcp::RpcError> error = {};
};

struct CallOrder {
  // With `request_state`: the continuation of a call that asked for input (Rounds).
  mcp::ToolCall call;
  std::shared_ptr<const keys::Secret> permit_token;
  std::string upstream_name;
  std::string tool;                 // the upstream's own name for it
  v1::Effect effect = v1::WRITE;    // by the permit's view; decides about words alone
  std::string permit_id;            // for the audit log
  int64_t send_within_ms = 10'000;  // of the grant, by the permit's view: what the lease is asked for is built on it
  ToolConfig config;
  std::string progress_token;  // for the upstream; raw, empty: none
  std::string capabilities;    // 2026-07-28: what the client can be asked for; raw, empty: nothing
  // Connected and ready, or why not; FailedPrecondition: the tool is pinned and has changed. Null: the permit grants
  // nothing on it.
  std::function<asio::awaitable<absl::StatusOr<SharedUpstream>>()> upstream;
  // What of the arguments is repeated as headers. Asked for after `upstream`, of upstreams of 2026-07-28.
  std::function<asio::awaitable<std::vector<mcp::ParamHeader>>()> param_headers;
  // Called when it is handed to the upstream, so that what belongs to it finds its way.
  std::function<void(const SharedExchange&)> sent;
  // The upstream says that it does not know our session.
  std::function<void()> session_ended;
  // What the upstream asks of the client is asked while the client waits for its answer, which is the way of the era
  // before 2026-07-28: inputRequests in, inputResponses out, both raw. Nullopt: it could not be asked, or did not
  // answer. Null: such a call ends with what was asked for, and begins again with the agent's answer.
  std::function<asio::awaitable<std::optional<std::string>>(std::string input_requests, std::chrono::milliseconds)> ask;
  // Called exactly once. Whoever takes the answer calls `undelivered` if it reached nobody.
  std::function<void(ToolAnswer answer, std::function<void()> undelivered)> answer;
  // Called when nothing more is waited for.
  std::function<void()> over;
};

}  // namespace tally::gateway
