// What the config names by file or by variable. Errors name the file and never quote it.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <utility>
#include <vector>

#include "gateway/config/config.h"
#include "lib/keys/secret.h"

namespace tally::gateway {

// Empty where tallyd.credential_file is. A file that others than its owner can read is refused.
absl::StatusOr<keys::Secret> ReadCredential(const Config& config);

// By `source`, "env:NAME" or "file:PATH", as `permit.stdio` has it; NotFound: there is no such variable. A variable is
// wiped from the environment, so that no upstream has it: call this before any thread or process is started.
absl::StatusOr<keys::Secret> ReadPermitToken(const std::string& source);
absl::StatusOr<keys::Secret> ReadStdioPermitToken(const Config& config);

// The values of `env_files`.
absl::StatusOr<std::vector<std::pair<std::string, keys::Secret>>> ReadEnvironmentFiles(const UpstreamConfig& upstream);

// The headers of `headers_file`, names as they are written; none where there is no file.
absl::StatusOr<std::vector<std::pair<std::string, keys::Secret>>> ReadHeaders(const UpstreamConfig& upstream);

}  // namespace tally::gateway
