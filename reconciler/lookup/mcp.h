// Look-up `mcp`: a read tool of an MCP server is called, and what it says is read by [tool.answer].
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reconciler/config/config.h"
#include "reconciler/lookup/lookup.h"
#include "reconciler/lookup/tool_caller.h"

namespace tally::reconciler {

class McpLookUp final : public LookUp {
 public:
  // Reads the gateway's config and its secrets. `audit` may be null, and outlives this.
  static absl::StatusOr<std::unique_ptr<LookUp>> Make(const ToolConfig& tool, gateway::AuditLog* audit);
  Answer Ask(const Case& asked) override;

 private:
  McpLookUp(const ToolConfig& tool, ToolCaller caller) : tool_(tool), caller_(std::move(caller)) {}

  const ToolConfig tool_;
  const ToolCaller caller_;
};

// What one JSON document means.
using JudgeDocument = std::function<Answer(std::string_view json)>;

// What the result of a read tool means: `structuredContent`, and each text of its content that is JSON, are judged, and
// must agree. Without structuredContent the first text must be JSON. An isError, or a result that is no whole one, is
// unclear.
Answer JudgeToolResult(std::string_view raw_result, const JudgeDocument& judge);

}  // namespace tally::reconciler
