#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "gateway/journal/audit_log.h"
#include "lib/client/client.h"
#include "reconciler/config/config.h"
#include "reconciler/engine/work.h"

namespace tally::reconciler {

// Until SIGTERM or SIGINT; finishes what is under way. SIGHUP opens the audit log anew. The exit code.
int Serve(const Config& config);

// What serve and check begin with. Reads credentials; asks nobody.
absl::StatusOr<std::unique_ptr<client::Client>> OpenTallyd(const Config& config);
// `audit` may be null, and outlives them.
absl::StatusOr<Work::LookUps> MakeLookUps(const Config& config, client::Client& tallyd, gateway::AuditLog* audit);

}  // namespace tally::reconciler
