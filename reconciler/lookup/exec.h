// A program that is asked: JSON on its standard input, one JSON object back on its standard output.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "reconciler/config/config.h"
#include "reconciler/config/secrets.h"
#include "reconciler/lookup/lookup.h"

namespace tally::reconciler {

// What the program is told: call_id, reference, provider_key, tool, key, arguments (as JSON; null where erased), unit,
// amount (the hold, minor units), attempt, granted_at, send_before, and sent_at or null (RFC 3339).
std::string ProgramInput(const Case& asked);

class ExecLookUp : public LookUp {
 public:
  // Reads the secrets; fails for a program that is not there or cannot be run. `folder`: where it runs.
  static absl::StatusOr<std::unique_ptr<LookUp>> Make(const ToolConfig& tool, const std::string& folder);
  // At the timeout the program and all that it started in its process group are killed. It inherits no descriptor and
  // no variable that is not named in the config.
  Answer Ask(const Case& asked) override;

 private:
  ExecLookUp(const ToolConfig& tool, std::string folder, NamedSecrets secrets)
      : tool_(tool), folder_(std::move(folder)), secrets_(std::move(secrets)) {}

  const ToolConfig tool_;
  const std::string folder_;
  const NamedSecrets secrets_;
};

}  // namespace tally::reconciler
