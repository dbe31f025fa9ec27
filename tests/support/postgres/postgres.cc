#include "tests/support/postgres/postgres.h"

#include <fcntl.h>
#include <libpq-fe.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/postgres/cluster.h"
#include "server/postgres/postmaster_file.h"
#include "server/postgres/process.h"

namespace tally::test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Die(const std::string& why) {
  fprintf(stderr, "test PostgreSQL: %s\n", why.c_str());
  std::exit(1);
}

// Waits until the program is gone or has closed its end, then ends the server in the folder, if it is one in that very
// folder (its command line says so), and removes the folder.
constexpr char kWatchdog[] =
    "cat >/dev/null\n"
    "pid=$(head -n 1 \"$1/data/pg/postmaster.pid\" 2>/dev/null)\n"
    "mine() { [ -n \"$pid\" ] && tr '\\0' '\\n' <\"/proc/$pid/cmdline\" 2>/dev/null | "
    "grep -qxF \"config_file=$1/data/postgres.conf\"; }\n"
    "mine \"$1\" && kill -QUIT \"$pid\"\n"
    "for i in $(seq 50); do mine \"$1\" || break; sleep 0.1; done\n"
    "mine \"$1\" && kill -KILL \"$pid\"\n"
    "rm -rf -- \"$1\"\n";

}  // namespace

ServerFolder::ServerFolder() {
  std::string name = "/tmp/tally-test-XXXXXX";
  if (mkdtemp(name.data()) == nullptr || chmod(name.c_str(), geteuid() == 0 ? 0711 : 0700) != 0) {
    Die("cannot make a folder in /tmp");
  }
  path_ = name;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) Die("no pipe");
  watchdog_ = fork();
  if (watchdog_ < 0) Die("no fork");
  if (watchdog_ == 0) {
    setsid();
    // Standard output stays ours no longer: who reads it must see its end when the program ends.
    const int null = open("/dev/null", O_RDWR);
    dup2(ends[0], STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execl("/bin/sh", "sh", "-c", kWatchdog, "tally-test-watchdog", name.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[0]);
  lifeline_ = ends[1];
}

ServerFolder::~ServerFolder() {
  close(lifeline_);
  while (waitpid(watchdog_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void KillServer(const fs::path& data_dir) {
  const postgres::Layout layout(data_dir);
  const auto name = postgres::ClusterName(layout);
  const auto file = postgres::ReadPostmasterFile(layout.cluster);
  const auto process = file ? postgres::Process::Find(file->pid) : std::nullopt;
  const auto uid = process ? postgres::RunsAs(process->pid) : std::nullopt;
  if (!name.ok() || !uid) Die("nothing to kill: the server is not running");
  // A file that was left behind may name a process that is not the server.
  const auto words = postgres::CommandLine(process->pid);
  if (std::find(words.begin(), words.end(), absl::StrCat("config_file=", layout.config.string())) == words.end()) {
    Die("nothing to kill: the server is not running");
  }
  // The parent first: it would see its children die and start others.
  kill(process->pid, SIGKILL);
  for (int tries = 0; tries < 1000; ++tries) {
    const auto left = postgres::ClusterProcesses(*name, *uid);
    if (left.empty() && !process->alive()) return;
    for (const pid_t pid : left) kill(pid, SIGKILL);
    absl::SleepFor(absl::Milliseconds(10));
  }
  Die("the server's processes do not die");
}

Postgres::Postgres(Fsync fsync) {
  postgres::PrivateOptions options{.settings = {{"shared_buffers", "64MB"}, {"max_wal_size", "512MB"}}};
  if (fsync == Fsync::kOff) options.settings["fsync"] = "off";
  auto started = postgres::PrivatePostgres::Start(folder_.data_dir(), std::move(options));
  if (!started.ok()) Die(std::string(started.status().message()));
  server_ = *std::move(started);
}

Postgres& Postgres::Shared() {
  static Postgres shared;
  return shared;
}

std::string Postgres::ConnectionString(const std::string& role, const std::string& database) const {
  return server_->ConnectionString(role, database);
}

void Postgres::Execute(const std::string& sql) {
  PGconn* connection = PQconnectdb(ConnectionString(postgres::kSuperuser, "postgres").c_str());
  if (PQstatus(connection) != CONNECTION_OK) Die(PQerrorMessage(connection));
  PGresult* result = PQexec(connection, sql.c_str());
  if (PQresultStatus(result) != PGRES_COMMAND_OK) Die(absl::StrCat(sql, ": ", PQerrorMessage(connection)));
  PQclear(result);
  PQfinish(connection);
}

std::string Postgres::CreateDatabase(const std::string& template_name) {
  static std::atomic<int> made = 0;
  const std::string name = absl::StrCat("test_", ++made);
  Execute(absl::StrCat("CREATE DATABASE \"", name, "\" OWNER tally TEMPLATE \"", template_name, "\""));
  return ConnectionString(postgres::kRole, name);
}

void Postgres::MakeTemplate(const std::string& name, const std::function<void(const std::string&)>& fill) {
  if (!templates_.insert(name).second) return;
  Execute(absl::StrCat("CREATE DATABASE \"", name, "\" OWNER tally"));
  fill(ConnectionString(postgres::kRole, name));
}

void Postgres::Kill() { KillServer(folder_.data_dir()); }

void Postgres::Restart() {
  if (const absl::Status status = server_->EnsureRunning(); !status.ok()) Die(std::string(status.message()));
}

}  // namespace tally::test
