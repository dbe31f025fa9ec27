// What stands in the cluster: making its files once, and its role and database.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/postgres/account.h"
#include "server/postgres/install.h"
#include "server/postgres/settings.h"

namespace tally::postgres {

// The major version that made the cluster; empty if there is no cluster.
absl::StatusOr<std::optional<int>> ClusterMajor(const Layout& layout);

// Makes the cluster if there is none. A crash leaves either none or a whole one. Without `sync` a power cut may spoil
// it.
absl::Status MakeCluster(const Layout& layout, const Account& server, const Install& install, bool sync);

// Names the cluster in the titles of its processes, the same for as long as it exists.
absl::StatusOr<std::string> ClusterName(const Layout& layout);

// Makes the role and the database if they are missing. Unavailable if the server cannot be reached.
absl::Status MakeDatabase(const std::string& superuser_connection);

}  // namespace tally::postgres
