// Look-up `replay`: a keyed tool is called again as the gateway called it, with the same arguments and the provider's
// key in the same place. A provider that carried the call out answers as it did then; one that never had it carries it
// out now, once. So this is a send, and never more than the gateway itself would do:
//
//  * only of a tool that the gateway's own config declares `replay = "keyed"`;
//  * only inside the provider's window: granted + replay_window - timeout - lease_margin, by tallyd's clock, counted
//  from
//    the first attempt that may have been sent, for all attempts of a call have one key;
//  * only after BeginReplay, which checks claim, attempt and permit and writes CALL_REPLAY_SENT; soon after it, and
//  while
//    the claim has time left for an answer.
//
// Only success ends it: an earlier send may be unanswered still, so that an error says nothing of the call.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "gateway/call/placement.h"
#include "lib/client/answer.h"
#include "lib/client/send_deadline.h"
#include "reconciler/config/config.h"
#include "reconciler/lookup/lookup.h"
#include "reconciler/lookup/tool_caller.h"

namespace tally::reconciler {

using BeginReplay = std::function<client::Answer<v1::BeginReplayResponse>(const v1::BeginReplayRequest& request)>;

// When a replay may be sent, all by tallyd's clock, in microseconds since 1970.
struct ReplayWindow {
  int64_t first_granted_us = 0;          // the earliest grant whose send the provider may have had
  int64_t claim_until_us = 0;            // 0: no claim is known of
  std::chrono::milliseconds window{0};   // how long the provider knows a key
  std::chrono::milliseconds margin{0};   // how much of that is left alone
  std::chrono::milliseconds timeout{0};  // how long an answer may take

  // Why not, at this time; empty: it may.
  std::string WhyNot(int64_t now_us) const;
};

ReplayWindow WindowOf(const v1::ParkedCall& parked, const gateway::ToolConfig& tool, std::chrono::milliseconds margin,
                      std::chrono::milliseconds timeout);

class ReplayLookUp final : public LookUp {
 public:
  // Reads the gateway's config and its secrets. Fails where the tool is not keyed by it, or where its window leaves no
  // time for an answer. `audit` may be null, and outlives this.
  static absl::StatusOr<std::unique_ptr<LookUp>> Make(const ToolConfig& tool, BeginReplay begin,
                                                      gateway::AuditLog* audit);

  Answer Ask(const Case& asked) override;

 private:
  ReplayLookUp(ToolCaller caller, std::string tool, gateway::ToolConfig config, std::chrono::milliseconds margin,
               std::chrono::milliseconds timeout, BeginReplay begin, gateway::AuditLog* audit)
      : caller_(std::move(caller)),
        tool_(std::move(tool)),
        config_(std::move(config)),
        margin_(margin),
        timeout_(timeout),
        begin_(std::move(begin)),
        audit_(audit) {}

  mcp::Meaning MeaningOf(const ToolCallEnd& end) const;

  const ToolCaller caller_;
  const std::string tool_;
  const gateway::ToolConfig config_;
  const std::chrono::milliseconds margin_;
  const std::chrono::milliseconds timeout_;
  const BeginReplay begin_;
  gateway::AuditLog* const audit_;
};

}  // namespace tally::reconciler
