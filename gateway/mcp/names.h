// Names of upstreams and tools: `upstream__tool` is what agents, permits and receipts say.
#ifndef TALLY_GATEWAY_MCP_NAMES_H_
#define TALLY_GATEWAY_MCP_NAMES_H_

#include <optional>
#include <string>
#include <string_view>

namespace tally::mcp {

inline constexpr size_t kToolNameBytesMax = 128;
inline constexpr std::string_view kNameSeparator = "__";
// The gateway's own tools. No upstream may have this name.
inline constexpr std::string_view kOwnUpstream = "tally";
inline constexpr std::string_view kCallStatusTool = "tally__call_status";
inline constexpr std::string_view kPermitStatusTool = "tally__permit_status";

// [a-z0-9-]{1,32}, and not the gateway's own.
bool IsUpstreamName(std::string_view name);
// [A-Za-z0-9_.\-/]{1,128}: what a permit can name.
bool IsToolName(std::string_view name);

struct ToolName {
  std::string_view upstream;
  std::string_view tool;  // as the upstream calls it
};

// Nullopt if the joined name is over 128 bytes or no tool name: such a tool is left out of lists, and reported.
std::optional<std::string> JoinName(std::string_view upstream, std::string_view tool);
// Views into `joined`. No upstream's name has an underscore, so the first separator is the one.
std::optional<ToolName> SplitName(std::string_view joined);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_NAMES_H_
