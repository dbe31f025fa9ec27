// The configuration files of the private server. They lie beside its data, not in it: they are ours, the data is its
// own.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "server/postgres/account.h"

namespace tally::postgres {

inline constexpr char kRole[] = "tally";  // owns the database, is no superuser
inline constexpr char kDatabase[] = "tally";
inline constexpr char kSuperuser[] = "postgres";
inline constexpr int kPort = 5432;  // listens on no network: only a part of the socket's name

struct Layout {
  explicit Layout(const std::filesystem::path& data_dir);

  std::filesystem::path root;          // tallyd's data folder, absolute
  std::filesystem::path cluster;       // the server's own
  std::filesystem::path initializing;  // becomes `cluster` by one rename
  std::filesystem::path config, hba, ident, log, lock;
  std::filesystem::path sockets;  // used where its path will do
};

// Writes config, hba and ident. `overrides` win over our settings.
absl::Status WriteSettings(const Layout& layout, const std::filesystem::path& sockets, const std::string& cluster_name,
                           const Account& own, const Account& server,
                           const std::map<std::string, std::string>& overrides);

// key='value' for a libpq connection string, whatever the value holds.
std::string ConnectionParameter(const std::string& key, const std::string& value);

}  // namespace tally::postgres
