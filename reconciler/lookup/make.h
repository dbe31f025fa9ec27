// The look-up of a tool, by its kind.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "gateway/journal/audit_log.h"
#include "lib/client/client.h"
#include "reconciler/config/config.h"
#include "reconciler/lookup/lookup.h"

namespace tally::reconciler {

// What look-ups may use; all of it outlives them.
struct LookUpServices {
  client::Client* tallyd = nullptr;
  std::string folder;  // the config file's: where programs run
  gateway::AuditLog* audit = nullptr;
};

// The audit log, for the look-ups that write one; null if there are none.
absl::StatusOr<std::unique_ptr<gateway::AuditLog>> OpenAudit(const Config& config);

// Null for Kind::kHuman. Reads secrets and looks whether programs are there; asks nobody. `provider` is null for
// Kind::kHuman alone.
absl::StatusOr<std::unique_ptr<LookUp>> MakeLookUp(const ToolConfig& tool, const ProviderConfig* provider,
                                                   const LookUpServices& services);

// What templates are filled with. Arguments that were erased are an empty object.
absl::StatusOr<Values> ValuesOf(const Case& asked);

// An Answer of what was read.
struct Reading;
Answer AnswerOf(Reading reading, std::string body);
Answer Unclear(std::string detail, std::string body = "");

}  // namespace tally::reconciler
