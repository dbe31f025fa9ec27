#include "server/postgres/settings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tally::postgres {
namespace {

namespace fs = std::filesystem;

// In postgresql.conf quotes are doubled and backslashes escape.
std::string Quoted(const std::string& value) {
  return absl::StrCat("'", absl::StrReplaceAll(value, {{"'", "''"}, {"\\", "\\\\"}}), "'");
}

// Readable by the server's user, who may be another than ours. Nothing in these files is secret.
absl::Status WriteFile(const fs::path& path, const std::string& text) {
  const fs::path fresh = path.string() + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", fresh.string()));
  const bool written =
      write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && fchmod(fd, 0644) == 0;
  const int reason = errno;
  if (close(fd) != 0 || !written) return absl::ErrnoToStatus(reason, absl::StrCat("cannot write ", fresh.string()));
  if (rename(fresh.c_str(), path.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path.string()));
  }
  return absl::OkStatus();
}

std::map<std::string, std::string> Settings(const Layout& layout, const fs::path& sockets,
                                            const std::string& cluster_name) {
  return {
      {"data_directory", layout.cluster.string()},
      {"hba_file", layout.hba.string()},
      {"ident_file", layout.ident.string()},
      {"cluster_name", cluster_name},
      // Reached through one folder that only its user and root may enter.
      {"listen_addresses", ""},
      // A list, in which double quotes keep commas and spaces together.
      {"unix_socket_directories", absl::StrCat("\"", absl::StrReplaceAll(sockets.string(), {{"\"", "\"\""}}), "\"")},
      {"unix_socket_permissions", "0700"},
      {"port", absl::StrCat(kPort)},
      {"max_connections", "100"},
      // What is confirmed survives a power cut.
      {"fsync", "on"},
      {"full_page_writes", "on"},
      {"synchronous_commit", "on"},
      // Little is shared this way, and /dev/shm is missing, tiny or closed to user postgres in some containers.
      {"dynamic_shared_memory_type", "mmap"},
      {"shared_buffers", "256MB"},
      {"max_wal_size", "2GB"},
      {"checkpoint_timeout", "15min"},
      {"wal_buffers", "16MB"},
      // Batches read hundreds of rows: stock limits trade their row locks for page and relation locks, and then
      // transactions that share nothing abort each other.
      {"max_pred_locks_per_transaction", "1024"},
      {"max_pred_locks_per_page", "128"},
      // Short statements only: compiling one costs more than it saves, and workers would need shared memory that small
      // containers do not have.
      {"jit", "off"},
      {"max_parallel_workers_per_gather", "0"},
      // Errors are the client's to report, and a statement's values may be what a tool was called with: nothing of
      // either is logged. Lost races alone would fill the disk.
      {"logging_collector", "off"},
      {"log_destination", "stderr"},
      {"log_min_messages", "log"},
      {"log_min_error_statement", "panic"},
      {"log_error_verbosity", "terse"},
      {"log_checkpoints", "off"},
      {"log_autovacuum_min_duration", "-1"},
      {"log_line_prefix", "%m [%p] "},
      {"timezone", "UTC"},
      {"log_timezone", "UTC"},
      {"datestyle", "iso, ymd"},
      {"lc_messages", "C"},
  };
}

}  // namespace

Layout::Layout(const fs::path& data_dir)
    : root(fs::absolute(data_dir).lexically_normal()),
      cluster(root / "pg"),
      initializing(root / "pg.new"),
      config(root / "postgres.conf"),
      hba(root / "postgres_hba.conf"),
      ident(root / "postgres_ident.conf"),
      log(root / "postgres.log"),
      lock(root / "postgres.lock"),
      sockets(root / "run") {}

absl::Status WriteSettings(const Layout& layout, const fs::path& sockets, const std::string& cluster_name,
                           const Account& own, const Account& server,
                           const std::map<std::string, std::string>& overrides) {
  auto settings = Settings(layout, sockets, cluster_name);
  for (const auto& [name, value] : overrides) settings[name] = value;
  std::string config = "# Written by tallyd at every start of its private PostgreSQL: changes here are lost.\n";
  for (const auto& [name, value] : settings) absl::StrAppend(&config, name, " = ", Quoted(value), "\n");

  // The kernel says who is at the other end of the socket: no password exists that could be lost.
  const std::string hba =
      "# TYPE DATABASE USER METHOD\n"
      "local all all peer map=tallyd\n"
      "local replication all peer map=tallyd\n";
  std::string ident = "# MAP SYSTEM-USER ROLE\n";
  for (const std::string& user : {own.name, server.name}) {
    absl::StrAppend(&ident, "tallyd \"", user, "\" ", kRole, "\ntallyd \"", user, "\" ", kSuperuser, "\n");
    if (own.name == server.name) break;
  }
  if (absl::Status status = WriteFile(layout.config, config); !status.ok()) return status;
  if (absl::Status status = WriteFile(layout.hba, hba); !status.ok()) return status;
  return WriteFile(layout.ident, ident);
}

std::string ConnectionParameter(const std::string& key, const std::string& value) {
  return absl::StrCat(key, "='", absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

}  // namespace tally::postgres
