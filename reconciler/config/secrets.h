// What the config names by file or by variable. Errors name the file and never quote it.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/keys/secret.h"
#include "reconciler/config/config.h"

namespace tally::reconciler {

using NamedSecrets = std::vector<std::pair<std::string, keys::Secret>>;

// Empty where tallyd.credential_file is. A file that others than its owner can read is refused.
absl::StatusOr<keys::Secret> ReadCredential(const Config& config);

// The values of `secret_headers`. A file may end in a line end; what is left must be printable ASCII.
absl::StatusOr<NamedSecrets> ReadSecretHeaders(const HttpConfig& http);

// The values of `env_files`.
absl::StatusOr<NamedSecrets> ReadEnvironmentFiles(const ExecConfig& exec);

}  // namespace tally::reconciler
