#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "lib/client/client.h"
#include "reconciler/config/config.h"
#include "reconciler/engine/work.h"

namespace tally::reconciler {

// Until SIGTERM or SIGINT; finishes what is under way. The exit code.
int Serve(const Config& config);

// What serve and check begin with. Reads credentials; asks nobody.
absl::StatusOr<std::unique_ptr<client::Client>> OpenTallyd(const Config& config);
absl::StatusOr<Work::LookUps> MakeLookUps(const Config& config, client::Client& tallyd);

}  // namespace tally::reconciler
