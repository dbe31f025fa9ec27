// tools/call: Authorize, journal, one send, then Commit while the journal is told the outcome, too. The contract's
// section on the gateway is its specification.
//
// A call belongs to the gateway, not to the connection that asked for it: it goes on when the agent hangs up, and after
// the agent was told that the outcome is not known.
#pragma once

#include <boost/asio/any_io_executor.hpp>

#include "gateway/authority/authority.h"
#include "gateway/call/order.h"
#include "gateway/call/rounds.h"
#include "gateway/call/settler.h"
#include "gateway/config/config.h"
#include "gateway/journal/audit_log.h"
#include "gateway/journal/journal.h"

namespace tally::gateway {

class Caller {
 public:
  Caller(asio::any_io_executor loop, const Config& config, Authority& authority, Journal& journal, AuditLog& audit);
  Caller(const Caller&) = delete;

  // Delivers what the process before left undelivered. Once, before the first call.
  void Recover() { settler_.TakeLeftovers(); }
  // A continuation goes to the call that waits for it; one that no call waits for is refused.
  void Start(CallOrder order);
  // From now on no call is taken; those under way go on, but for what their agents would have to answer.
  void StopTaking() {
    taking_ = false;
    rounds_.GiveUpAll();
  }
  // Calls under way, those included whose late answer, or whose agent's answer, is waited for.
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
  Rounds rounds_;
  bool taking_ = true;
  int open_ = 0;
  int unanswered_ = 0;
};

}  // namespace tally::gateway
