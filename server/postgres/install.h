// Where PostgreSQL's programs lie on this system.
#pragma once

#include <filesystem>
#include <optional>

#include "absl/status/statusor.h"
#include "server/postgres/account.h"

namespace tally::postgres {

struct Install {
  std::filesystem::path bin;  // absolute, holds postgres and initdb
  int major;
};

inline constexpr int kMajorMin = 15;

// The installation with exactly `major` if given (a cluster can be run by the version that made it, only), else the
// newest, of at least kMajorMin. `account` must be able to run it.
absl::StatusOr<Install> FindInstall(const Account& account, std::optional<int> major);

}  // namespace tally::postgres
