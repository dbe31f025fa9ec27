// The PostgreSQL that tallyd runs for itself where it was given no database_url: made on first use, reached through a
// socket only we may use, left running when tallyd dies, and found again by the next tallyd on the same data folder.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/postgres/account.h"
#include "server/postgres/folders.h"
#include "server/postgres/install.h"
#include "server/postgres/process.h"
#include "server/postgres/settings.h"

namespace tally::postgres {

struct PrivateOptions {
  // Settings of postgresql.conf that win over ours. A server that is adopted keeps those it was started with.
  std::map<std::string, std::string> settings;
};

// Thread-safe.
//
// Under `data_dir` lie pg (the cluster), run (the socket), postgres.log and small files of settings. Started as root,
// the server runs as user postgres and everything it owns is that user's; otherwise it runs as we do. Authentication is
// by the kernel's word about who is at the other end of the socket, so there is no password.
class PrivatePostgres {
 public:
  // Makes the cluster if there is none, starts its server or adopts the one that runs already, and returns once it
  // takes connections and the role and the database stand. Takes a second on first use; recovery after a crash takes as
  // long as it takes, up to two minutes. FailedPrecondition where a person must act: another tallyd holds the folder,
  // no PostgreSQL 15 or later, a folder that the server's user cannot enter, a server there that is not ours.
  static absl::StatusOr<std::unique_ptr<PrivatePostgres>> Start(const std::filesystem::path& data_dir,
                                                                PrivateOptions options = {});

  // Stops the server if Stop was not called.
  ~PrivatePostgres();
  PrivatePostgres(const PrivatePostgres&) = delete;
  PrivatePostgres& operator=(const PrivatePostgres&) = delete;

  // For libpq, as role `tally` (owner of the database, no superuser) on database `tally`. Holds no secret.
  std::string ConnectionString() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Any role and database of the cluster; roles are `tally` and `postgres`, its superuser.
  std::string ConnectionString(const std::string& role, const std::string& database) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts the server again if it has died; cheap when it has not. Not after Stop.
  absl::Status EnsureRunning() ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends its connections, writes a checkpoint and ends the server; forces it after 30 seconds. May be called again.
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // 0 once the server was seen to have died.
  pid_t postmaster_pid() const ABSL_LOCKS_EXCLUDED(mutex_);
  // True if Start found the server running.
  bool adopted() const { return adopted_; }

 private:
  PrivatePostgres(Layout layout, PrivateOptions options, Account own, Account server, Install install, FileLock lock,
                  std::string cluster_name);

  // Adopts the server or starts one, again and again within bounds.
  absl::Status Launch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // These three: true if there is a server that is ready, false if there is none (any more).
  absl::StatusOr<bool> Adopt() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> StartOnce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<bool> BecomesReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // postmaster.pid names a process that is not a server of ours: an error if it is a server on this cluster all the
  // same.
  absl::StatusOr<bool> DisbelieveFile(pid_t pid, const std::vector<std::string>& command_line) const;
  bool Alive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EndsWithin(std::chrono::seconds limit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Conninfo(const std::string& role, const std::string& database) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Layout layout_;
  const PrivateOptions options_;
  const Account own_;
  const Account server_;
  const Install install_;
  const FileLock lock_;
  const std::string cluster_name_;
  bool adopted_ = false;  // written during Start only

  mutable absl::Mutex mutex_;
  Process postmaster_ ABSL_GUARDED_BY(mutex_) = {.pid = 0, .start_ticks = 0};
  std::filesystem::path sockets_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tally::postgres
