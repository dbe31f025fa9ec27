#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "gateway/mcp/message.h"
#include "gateway/mcp/modern.h"
#include "gateway/mcp/param_headers.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/tool_call.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/targets.h"

namespace tally::fuzz {
namespace {

using mcp::Message;

// What a header may carry, and nothing that would begin another.
bool MayStandInAHeader(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) { return (c >= ' ' && c != 0x7f) || c == '\t'; });
}

void ValueComesBack(std::string_view value) {
  const std::string header = mcp::EncodeHeaderValue(value);
  Promise(MayStandInAHeader(header), "what is encoded may stand in a header");
  const auto back = mcp::DecodeHeaderValue(header);
  Promise(back.has_value() && *back == value, "and comes back as it was");
}

std::string TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

void FuzzHeaders(std::string_view bytes) {
  ValueComesBack(bytes.substr(0, 300));
  mcp::DecodeHeaderValue(bytes);
  std::map<std::string, std::string> headers;
  while (!bytes.empty()) {
    const std::string line = TakeLine(bytes);
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) break;
    headers[line.substr(0, colon)] = line.substr(colon + 2);
  }
  const auto find = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = headers.find(std::string(name));
    return found == headers.end() ? std::nullopt : std::optional(found->second);
  };
  const auto parsed = ParseMessage(bytes, mcp::From::kClient, 1 << 20);
  if (const auto* message = std::get_if<Message>(&parsed)) {
    const mcp::RequestHeaders said = {find("MCP-Protocol-Version"), find("Mcp-Method"), find("Mcp-Name")};
    IsModern(*message, said);
    if (!CheckModernRequest(*message, said) && message->kind == Message::Kind::kRequest) {
      Promise(said.method == message->method, "a request that is taken says its method in its header");
      const auto name = NameInBody(*message);
      if (name) Promise(said.name && mcp::DecodeHeaderValue(*said.name) == *name, "and its name");
      Promise(!CheckModernBody(*message), "and is one by its body alone");
    }
    mcp::ParseToolCall(message->params, std::vector<std::string>{find("Idempotency-Key").value_or("")});
  }
  // The body as a schema whose marks name headers, and as the arguments.
  const auto params = mcp::ParamHeadersOf(bytes);
  if (!params.ok()) return;
  for (const mcp::ParamHeader& param : *params) {
    Promise(param.header.starts_with("Mcp-Param-") && MayStandInAHeader(param.header), "a header has a name");
    const auto value = ParamHeaderValue(param, bytes);
    if (value) Promise(MayStandInAHeader(*value), "and a value");
  }
  CheckParamHeaders(*params, bytes, find);
}

}  // namespace tally::fuzz
