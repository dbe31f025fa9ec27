// A private PostgreSQL for a test program: made in a temporary folder on first use, and gone with the program, however
// that ends. Works as root and as an ordinary user.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "server/postgres/private.h"

namespace tally::test {

// A folder under /tmp that user postgres may pass through. Removed on destruction, and a PostgreSQL that still runs in
// it ended, also if the program dies.
class ServerFolder {
 public:
  ServerFolder();
  ~ServerFolder();
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;

  // For tallyd's data. Does not exist yet.
  std::filesystem::path data_dir() const { return path_ / "data"; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lifeline_;  // its other end is the watchdog's: closed by our death at the latest
  pid_t watchdog_;
};

// SIGKILLs the private server of a data folder and all its processes, as a crash of the machine would, and returns when
// they are gone. Fails the program if none runs there.
void KillServer(const std::filesystem::path& data_dir);

// Any failure to make or run the server ends the program with a message: no test can go on without it.
class Postgres {
 public:
  // kOff saves time where no test asks what a power cut leaves; SIGKILL loses nothing either way.
  enum class Fsync { kOff, kOn };
  explicit Postgres(Fsync fsync = Fsync::kOff);

  // One for the whole program, without fsync. Do not kill it; tests that do so make one of their own.
  static Postgres& Shared();

  // A new database for one test, a copy of `template_name` as it is now, owned by role `tally`. Returns what libpq
  // needs to connect to it as that role. Nobody may be connected to the template meanwhile.
  std::string CreateDatabase(const std::string& template_name = "template1");

  // Makes database `name` on the first call with that name, by `fill(connection string)`: for migrations, run once.
  void MakeTemplate(const std::string& name, const std::function<void(const std::string&)>& fill);

  std::string ConnectionString(const std::string& role, const std::string& database) const;
  pid_t postmaster_pid() const { return server_->postmaster_pid(); }

  void Kill();  // KillServer
  // Starts it again after Kill; crash recovery runs.
  void Restart();

 private:
  void Execute(const std::string& sql);

  ServerFolder folder_;
  std::set<std::string> templates_;
  std::unique_ptr<postgres::PrivatePostgres> server_;
};

}  // namespace tally::test
