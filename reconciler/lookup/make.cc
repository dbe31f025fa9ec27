#include "reconciler/lookup/make.h"

#include <algorithm>

#include "lib/json/parse.h"
#include "reconciler/lookup/exec.h"
#include "reconciler/lookup/http.h"
#include "reconciler/lookup/mcp.h"
#include "reconciler/lookup/replay.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {

absl::StatusOr<std::unique_ptr<LookUp>> MakeLookUp(const ToolConfig& tool, const ProviderConfig* provider,
                                                   const LookUpServices& services) {
  switch (tool.kind) {
    case Kind::kHuman:
      return std::unique_ptr<LookUp>();
    case Kind::kHttp:
      return HttpLookUp::Make(tool, *provider);
    case Kind::kExec:
      return ExecLookUp::Make(tool, services.folder);
    case Kind::kMcp:
      return McpLookUp::Make(tool, services.audit);
    case Kind::kReplay: {
      client::CallOptions options;
      options.timeout = std::min(options.timeout, tool.timeout);
      return ReplayLookUp::Make(
          tool,
          [tallyd = services.tallyd, options](const v1::BeginReplayRequest& request) {
            return tallyd->BeginReplay(request, options);
          },
          services.audit);
    }
  }
  return absl::InternalError("a look-up of no known kind");
}

absl::StatusOr<std::unique_ptr<gateway::AuditLog>> OpenAudit(const Config& config) {
  const bool any = std::any_of(config.tools.begin(), config.tools.end(), [](const ToolConfig& tool) {
    return tool.kind == Kind::kMcp || tool.kind == Kind::kReplay;
  });
  if (!any) return std::unique_ptr<gateway::AuditLog>();
  return gateway::AuditLog::Open(
      {.path = config.audit.path, .file_bytes_max = config.audit.file_bytes_max, .files_max = config.audit.files_max});
}

absl::StatusOr<Values> ValuesOf(const Case& asked) {
  Values values;
  values.reference = asked.reference;
  values.provider_key = asked.provider_key;
  values.call_id = asked.parked.call().call_id();
  values.arguments = json::Value(json::Object());
  const std::string& arguments = asked.parked.call().arguments();
  if (arguments.empty()) return values;
  // They were judged and kept in this form; who reads them here must read the same.
  auto parsed = json::Parse(arguments);
  if (!parsed.ok()) return parsed.status();
  values.arguments = *std::move(parsed);
  return values;
}

Answer AnswerOf(Reading reading, std::string body) {
  Answer answer;
  answer.finding = reading.finding;
  answer.detail = std::move(reading.detail);
  answer.body = std::move(body);
  answer.reference = std::move(reading.reference);
  answer.amount = reading.amount;
  answer.result = std::move(reading.result);
  return answer;
}

Answer Unclear(std::string detail, std::string body) {
  Answer answer;
  answer.detail = std::move(detail);
  answer.body = std::move(body);
  return answer;
}

}  // namespace tally::reconciler
