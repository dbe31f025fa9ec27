// A client of the era 2026-07-28: no session, each request says all.
#pragma once

#include <string>
#include <utility>

#include "tests/gateway/support.h"

namespace tally::test {

class ModernClient {
 public:
  ModernClient(int port, std::string token) : port_(port), token_(std::move(token)) {}

  // What it declares from now on.
  void Declare(Json capabilities) { capabilities_ = std::move(capabilities); }

  // `params` as this era wants them.
  Json Whole(Json params) const {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28";
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities_;
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = {{"name", "test"}, {"version", "1"}};
    return params;
  }

  HttpAnswer Ask(const std::string& method, const Json& given, const std::map<std::string, std::string>& changed = {},
                 int hang_up_after_ms = 0) const {
    const Json params = Whole(given);
    const Json request = {{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
    std::map<std::string, std::string> headers = {{"Authorization", "Bearer " + token_},
                                                  {"Content-Type", "application/json"},
                                                  {"Accept", "application/json, text/event-stream"},
                                                  {"MCP-Protocol-Version", "2026-07-28"},
                                                  {"Mcp-Method", method}};
    if (params.contains("name")) headers["Mcp-Name"] = params["name"];
    for (const auto& [name, value] : changed) headers[name] = value;
    return Http(port_, "POST", headers, request.dump(), hang_up_after_ms);
  }

  // The answer to a tools/call: a result, or {"error": …}.
  Json Call(const std::string& tool, const Json& arguments, const Json& more = Json::object()) const {
    Json params = {{"name", tool}, {"arguments", arguments}};
    params.update(more);
    const Json answer = Ask("tools/call", params).answer();
    if (answer.is_null()) return answer;
    return answer.contains("result") ? answer["result"] : Json{{"error", answer["error"]}};
  }

 private:
  const int port_;
  const std::string token_;
  Json capabilities_ = Json::object();
};

}  // namespace tally::test
