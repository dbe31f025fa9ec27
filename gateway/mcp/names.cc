#include "gateway/mcp/names.h"

#include <algorithm>

namespace tally::mcp {
namespace {

constexpr size_t kUpstreamNameBytesMax = 32;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool IsUpstreamName(std::string_view name) {
  return !name.empty() && name.size() <= kUpstreamNameBytesMax && name != kOwnUpstream &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

bool IsToolName(std::string_view name) {
  return !name.empty() && name.size() <= kToolNameBytesMax && std::all_of(name.begin(), name.end(), [](char c) {
    return IsLower(c) || IsUpper(c) || IsDigit(c) || c == '_' || c == '.' || c == '-' || c == '/';
  });
}

std::optional<std::string> JoinName(std::string_view upstream, std::string_view tool) {
  if (!IsToolName(tool)) return std::nullopt;
  std::string joined(upstream);
  joined.append(kNameSeparator).append(tool);
  if (!IsToolName(joined)) return std::nullopt;
  return joined;
}

std::optional<ToolName> SplitName(std::string_view joined) {
  const size_t at = joined.find(kNameSeparator);
  if (!IsToolName(joined) || at == std::string_view::npos) return std::nullopt;
  const ToolName name{joined.substr(0, at), joined.substr(at + kNameSeparator.size())};
  if (name.tool.empty() || (!IsUpstreamName(name.upstream) && name.upstream != kOwnUpstream)) return std::nullopt;
  return name;
}

}  // namespace tally::mcp
