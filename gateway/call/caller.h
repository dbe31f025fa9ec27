// tools/call: Authorize, journal, one send, journal, Commit. The contract's section on the gateway is its
// specification.
//
// A call belongs to the gateway, not to the connection that asked for it: it goes on when the agent hangs up, and after
// the agent was told that the outcome is not known.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "gateway/authority/authority.h"
#include "gateway/call/settler.h"
#include "gateway/config/config.h"
#include "gateway/journal/audit_log.h"
#include "gateway/journal/journal.h"
#include "gateway/mcp/message.h"
#include "gateway/mcp/refusal.h"
#include "gateway/mcp/tool_call.h"
#include "gateway/upstream/session.h"
#include "lib/keys/secret.h"

namespace tally::gateway {

// A tool result, or a JSON-RPC error.
struct ToolAnswer {
  std::string result = {};  // raw
  std::optional<mcp::RpcError> error = {};
};

struct CallOrder {
  mcp::ToolCall call;
  std::shared_ptr<const keys::Secret> permit_token;
  std::string upstream_name;
  std::string tool;                 // the upstream's own name for it
  v1::Effect effect = v1::WRITE;    // by the permit's view; decides about words alone
  std::string permit_id;            // for the audit log
  int64_t send_within_ms = 10'000;  // of the grant, by the permit's view: what the lease is asked for is built on it
  ToolConfig config;
  std::string progress_token;  // for the upstream; raw, empty: none
  // Connected and ready, or why not.
  std::function<asio::awaitable<absl::StatusOr<SharedUpstream>>()> upstream;
  // Called when it is handed to the upstream, so that what belongs to it finds its way.
  std::function<void(const SharedExchange&)> sent;
  // The upstream says that it does not know our session.
  std::function<void()> session_ended;
  // Called exactly once. Whoever takes the answer calls `undelivered` if it reached nobody.
  std::function<void(ToolAnswer answer, std::function<void()> undelivered)> answer;
  // Called when nothing more is waited for.
  std::function<void()> over;
};

class Caller {
 public:
  Caller(asio::any_io_executor loop, const Config& config, Authority& authority, Journal& journal, AuditLog& audit);
  Caller(const Caller&) = delete;

  // Delivers what the process before left undelivered. Once, before the first call.
  void Recover() { settler_.TakeLeftovers(); }
  void Start(CallOrder order);
  // From now on no call is taken; those under way go on.
  void StopTaking() { taking_ = false; }
  // Calls under way, those included whose late answer is waited for.
  int open() const { return open_; }
  // Calls whose agent has no answer yet.
  int unanswered() const { return unanswered_; }
  // Commits that tallyd has not answered yet.
  size_t unsettled() const { return settler_.under_way(); }

 private:
  friend class Call;

  const asio::any_io_executor loop_;
  const Config& config_;
  Authority& authority_;
  Journal& journal_;
  AuditLog& audit_;
  Settler settler_;
  bool taking_ = true;
  int open_ = 0;
  int unanswered_ = 0;
};

}  // namespace tally::gateway
