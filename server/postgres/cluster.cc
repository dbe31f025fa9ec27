#include "server/postgres/cluster.h"

#include <fcntl.h>
#include <libpq-fe.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/postgres/folders.h"

namespace tally::postgres {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

absl::Status SyncFolder(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", folder.string()));
  const bool synced = fsync(fd) == 0;
  const int reason = errno;
  close(fd);
  return synced ? absl::OkStatus() : absl::ErrnoToStatus(reason, absl::StrCat("cannot sync ", folder.string()));
}

using Connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using Result = std::unique_ptr<PGresult, decltype(&PQclear)>;

// The first column of the first row, empty if there is none.
absl::StatusOr<std::string> Execute(PGconn* connection, const char* sql) {
  const Result result(PQexec(connection, sql), &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    const std::string message = absl::StrCat("the private database refused ", sql, ": ", PQerrorMessage(connection));
    return PQstatus(connection) == CONNECTION_OK ? absl::InternalError(message) : absl::UnavailableError(message);
  }
  return std::string(PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "");
}

}  // namespace

absl::StatusOr<std::optional<int>> ClusterMajor(const Layout& layout) {
  std::error_code error;
  if (!fs::exists(layout.cluster, error)) {
    if (error)
      return absl::InternalError(absl::StrCat("cannot look at ", layout.cluster.string(), ": ", error.message()));
    return std::nullopt;
  }
  int major = 0;
  if (!(std::ifstream(layout.cluster / "PG_VERSION") >> major)) {
    return absl::FailedPreconditionError(absl::StrCat(layout.cluster.string(),
                                                      " is there but holds no PostgreSQL cluster. Nothing was changed: "
                                                      "restore it from a backup, or choose another data folder"));
  }
  return major;
}

absl::Status MakeCluster(const Layout& layout, const Account& server, const Install& install, bool sync) {
  const absl::StatusOr<std::optional<int>> made = ClusterMajor(layout);
  if (!made.ok()) return made.status();
  if (made->has_value()) return absl::OkStatus();

  // A crash in what follows leaves pg.new, which the next start removes here.
  std::error_code error;
  fs::remove_all(layout.initializing, error);
  if (error)
    return absl::InternalError(absl::StrCat("cannot remove ", layout.initializing.string(), ": ", error.message()));
  if (absl::Status status = PrivateFolder(layout.initializing, server); !status.ok()) return status;
  std::vector<std::string> command = {
      (install.bin / "initdb").string(), "--pgdata", layout.initializing.string(), "--username", kSuperuser, "--auth",
      "peer", "--encoding", "UTF8",
      // Keys and ids are bytes: no language's order applies, nor changes under an index.
      "--locale", "C", "--data-checksums", "--no-instructions"};
  if (!sync) command.push_back("--no-sync");
  const absl::StatusOr<Finished> finished = RunProgram(server, command, 120s);
  if (!finished.ok()) return finished.status();
  if (finished->exit_code != 0) {
    return absl::InternalError(absl::StrCat("initdb failed (exit ", finished->exit_code, "): ", finished->output));
  }
  fs::rename(layout.initializing, layout.cluster, error);
  if (error) return absl::InternalError(absl::StrCat("cannot make ", layout.cluster.string(), ": ", error.message()));
  return SyncFolder(layout.root);
}

absl::StatusOr<std::string> ClusterName(const Layout& layout) {
  struct stat entry;
  if (stat(layout.cluster.c_str(), &entry) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", layout.cluster.string()));
  }
  return absl::StrFormat("tallyd-%x-%x", entry.st_dev, entry.st_ino);
}

absl::Status MakeDatabase(const std::string& superuser_connection) {
  const Connection connection(PQconnectdb(superuser_connection.c_str()), &PQfinish);
  if (PQstatus(connection.get()) != CONNECTION_OK) {
    return absl::UnavailableError(absl::StrCat("cannot connect to the private database: ",
                                               absl::StripSuffix(PQerrorMessage(connection.get()), "\n")));
  }
  // Each statement commits for itself; a crash between them is made good by the next start.
  struct Step {
    const char* wanted;
    const char* make;
  };
  static constexpr Step kSteps[] = {
      {"SELECT 1 FROM pg_roles WHERE rolname = 'tally'", "CREATE ROLE tally LOGIN"},
      {"SELECT 1 FROM pg_database WHERE datname = 'tally'", "CREATE DATABASE tally OWNER tally TEMPLATE template0"},
  };
  for (const Step& step : kSteps) {
    const absl::StatusOr<std::string> stands = Execute(connection.get(), step.wanted);
    if (!stands.ok()) return stands.status();
    if (!stands->empty()) continue;
    if (const auto made = Execute(connection.get(), step.make); !made.ok()) return made.status();
  }
  return absl::OkStatus();
}

}  // namespace tally::postgres
