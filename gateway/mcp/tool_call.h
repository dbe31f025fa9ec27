// The parameters of a tools/call from a client, taken apart.
#ifndef TALLY_GATEWAY_MCP_TOOL_CALL_H_
#define TALLY_GATEWAY_MCP_TOOL_CALL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "gateway/mcp/message.h"

namespace tally::mcp {

struct ToolCall {
  std::string name;       // as the client says it: upstream__tool
  std::string arguments;  // raw object, or empty where there were none
  // Raw object: the caller's _meta without what is addressed to this gateway or renewed at each hop (our own members,
  // progressToken, protocol version, client's name and capabilities); empty if nothing is left.
  std::string meta;
  std::string progress_token;      // raw; empty: none
  std::optional<std::string> key;  // the caller's idempotency key
  bool repeat = false;             // the same act is meant twice
  std::optional<int64_t> amount;   // minor units, for grants whose cost the caller states
  std::optional<std::string> intent;
  // 2026-07-28: this continues a call that asked for input; both raw, empty: none.
  std::string input_responses;
  std::string request_state;
};

// `raw_params` is what ParseMessage took from a client; `key_headers` are the values of all headers Idempotency-Key.
// The key is _meta["dev.tallystick/idempotency-key"], params.idempotencyKey or such a header; two that differ are
// refused. An RpcError (kInvalidParams) says what is wrong; nothing was done.
std::variant<ToolCall, RpcError> ParseToolCall(std::string_view raw_params,
                                               std::span<const std::string> key_headers = {});

// 1 to 255 bytes of UTF-8 without control characters.
bool IsIdempotencyKey(std::string_view key);

// The caller's _meta of any request, as above.
std::string MetaToForward(std::string_view raw_meta);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_TOOL_CALL_H_
