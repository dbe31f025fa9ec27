// Receipts and keys as the files that auditors keep and `tally receipt verify` reads.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/keys/key_file.h"
#include "tally/v1/receipt.pb.h"
#include "tally/v1/receipts.pb.h"

namespace tally::cli {

// Replaces the file in one step: a crash leaves the old one or the new one.
absl::Status WriteFile(const std::string& path, std::string_view content);
absl::Status MakeFolder(const std::string& path);

// Checks that the server's ids are those of its keys.
absl::StatusOr<std::vector<keys::KnownKey>> KnownKeys(const v1::KeysResponse& response);
// keys.json and keys.pem; returns the files' names.
absl::StatusOr<std::vector<std::string>> WriteKeys(const std::string& folder, const std::vector<keys::KnownKey>& known);

}  // namespace tally::cli
