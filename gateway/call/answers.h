// What an upstream's answer to tools/call says, beyond what mcp::Judge makes of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gateway/mcp/judge.h"
#include "gateway/upstream/exchange.h"

namespace tally::gateway {

// The audit log's word.
std::string_view Word(mcp::Meaning meaning);

// The bytes that the agent gets, and that are kept and replayed: the result, or for an answer that was none a result
// that tells it.
std::string ResultFor(const UpstreamAnswer& answer);

// A gateway of the same kind further up has the call, and sends nothing again for being asked again.
bool IsParkedFurtherUp(const UpstreamAnswer& answer);

// 2026-07-28: not done yet, and what was done so far is not said.
bool IsIncomplete(const UpstreamAnswer& answer);

// What a tool needs to go on. Both raw; empty: none.
struct InputAsked {
  std::string requests;
  std::string state;
};

// Nullopt: the answer asks for nothing that could be given.
std::optional<InputAsked> InputAskedBy(const UpstreamAnswer& answer);

// 2026-07-28: the client must declare a capability for this call. What was done before the tool noticed is not said.
bool NeedsCapability(const UpstreamAnswer& answer);

}  // namespace tally::gateway
