#include "server/postgres/private.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "server/postgres/cluster.h"
#include "server/postgres/postmaster_file.h"

namespace tally::postgres {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kReadyLimit = 120s;     // crash recovery replays up to max_wal_size
constexpr auto kLeftoversLimit = 20s;  // a killed server's connections end by themselves, most within half a second
constexpr auto kReachableLimit = 15s;  // ready by its own word, yet not answering
constexpr auto kFastStopLimit = 30s;
constexpr auto kForcedStopLimit = 10s;
constexpr int kStartsMax = 6;  // refused starts; the causes that pass are gone after two

void Sleep(std::chrono::milliseconds time) { absl::SleepFor(absl::FromChrono(time)); }

// The end of the log, for an error message. It never holds statements or their values (see settings.cc).
std::string LogEnd(const fs::path& log) {
  constexpr std::streamoff kBytes = 1500;
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  if (size <= 0) return "(nothing)";
  file.seekg(std::max<std::streamoff>(0, size - kBytes));
  std::string end{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (size > kBytes) end.erase(0, end.find('\n') + 1);
  return end;
}

// What we give our server on its command line, and so what tells it from others.
std::string ConfigArgument(const Layout& layout) { return absl::StrCat("config_file=", layout.config.string()); }

}  // namespace

PrivatePostgres::PrivatePostgres(Layout layout, PrivateOptions options, Account own, Account server, Install install,
                                 FileLock lock, std::string cluster_name)
    : layout_(std::move(layout)),
      options_(std::move(options)),
      own_(std::move(own)),
      server_(std::move(server)),
      install_(std::move(install)),
      lock_(std::move(lock)),
      cluster_name_(std::move(cluster_name)) {}

absl::StatusOr<std::unique_ptr<PrivatePostgres>> PrivatePostgres::Start(const fs::path& data_dir,
                                                                        PrivateOptions options) {
  const Layout layout(data_dir);
  absl::StatusOr<Account> own = OwnAccount();
  if (!own.ok()) return own.status();
  absl::StatusOr<Account> server = ServerAccount();
  if (!server.ok()) return server.status();
  if (absl::Status status = PrepareRoot(layout, *own, *server); !status.ok()) return status;
  absl::StatusOr<FileLock> lock = FileLock::Take(layout.lock);
  if (!lock.ok()) return lock.status();

  // From here on nobody else makes, starts or stops anything in this folder.
  const absl::StatusOr<std::optional<int>> major = ClusterMajor(layout);
  if (!major.ok()) return major.status();
  absl::StatusOr<Install> install = FindInstall(*server, *major);
  if (!install.ok()) return install.status();
  const auto fsync = options.settings.find("fsync");
  const bool sync = fsync == options.settings.end() || fsync->second != "off";
  if (absl::Status status = MakeCluster(layout, *server, *install, sync); !status.ok()) return status;
  absl::StatusOr<std::string> name = ClusterName(layout);
  if (!name.ok()) return name.status();

  std::unique_ptr<PrivatePostgres> postgres(new PrivatePostgres(layout, std::move(options), *std::move(own),
                                                                *std::move(server), *std::move(install),
                                                                *std::move(lock), *std::move(name)));
  {
    absl::MutexLock held(&postgres->mutex_);
    const absl::StatusOr<bool> adopted = postgres->Adopt();
    if (!adopted.ok()) return adopted.status();
    postgres->adopted_ = *adopted;
    if (!*adopted) {
      if (absl::Status status = postgres->Launch(); !status.ok()) return status;
    }
  }
  return postgres;
}

PrivatePostgres::~PrivatePostgres() { Stop().IgnoreError(); }

absl::Status PrivatePostgres::Launch() {
  const auto deadline = Clock::now() + kLeftoversLimit;
  for (int starts = 0; starts < kStartsMax;) {
    // A tallyd that was killed while its server was starting may have left one that shows itself only now.
    const absl::StatusOr<bool> adopted = Adopt();
    if (!adopted.ok() || *adopted) return adopted.status();

    // A server starts only when the last process of the killed one has let go of their shared memory.
    const std::vector<pid_t> leftovers = ClusterProcesses(cluster_name_, server_.uid);
    if (!leftovers.empty()) {
      if (Clock::now() > deadline) {
        return absl::FailedPreconditionError(
            absl::StrCat("processes of a PostgreSQL that was killed do not end: ", absl::StrJoin(leftovers, ", "),
                         ". It cannot be started beside them; look what they wait for, and end them"));
      }
      Sleep(50ms);
      continue;
    }
    const absl::StatusOr<bool> started = StartOnce();
    if (!started.ok() || *started) return started.status();
    Sleep(++starts * 200ms);
  }
  return absl::FailedPreconditionError(absl::StrCat("PostgreSQL does not start; ", kStartsMax,
                                                    " starts were refused, the last with: ", LogEnd(layout_.log)));
}

absl::StatusOr<bool> PrivatePostgres::Adopt() {
  const std::optional<PostmasterFile> file = ReadPostmasterFile(layout_.cluster);
  if (!file) return false;
  if (sockets_.empty() && file->sockets != layout_.sockets && IsPrivateFolder(file->sockets, server_)) {
    sockets_ = file->sockets;  // a short folder that a killed server left behind: use it again
  }
  const std::optional<Process> process = Process::Find(file->pid);
  if (!process || RunsAs(file->pid) != server_.uid) return false;
  const std::vector<std::string> words = CommandLine(file->pid);
  if (std::find(words.begin(), words.end(), ConfigArgument(layout_)) == words.end()) {
    return DisbelieveFile(file->pid, words);
  }
  postmaster_ = *process;
  return BecomesReady();
}

absl::StatusOr<bool> PrivatePostgres::DisbelieveFile(pid_t pid, const std::vector<std::string>& words) const {
  const bool is_server = !words.empty() && fs::path(words[0]).filename() == "postgres";
  if (is_server && WorksIn(pid, layout_.cluster)) {
    return absl::FailedPreconditionError(
        absl::StrCat("process ", pid, " is a PostgreSQL on ", layout_.cluster.string(),
                     " that tallyd has not started. Nothing was changed: stop it first"));
  }
  // The number was given to some other program since, after a restart of the machine or container. PostgreSQL would
  // refuse to start for as long as that program runs. The lock is ours, and where no process of this cluster is left
  // either, the file says nothing any more.
  std::error_code error;
  if (ClusterProcesses(cluster_name_, server_.uid).empty()) fs::remove(layout_.cluster / "postmaster.pid", error);
  return false;
}

absl::StatusOr<bool> PrivatePostgres::StartOnce() {
  if (sockets_.empty() || !IsPrivateFolder(sockets_, server_)) {
    absl::StatusOr<fs::path> folder = SocketFolder(layout_, server_);
    if (!folder.ok()) return folder.status();
    sockets_ = *std::move(folder);
  }
  if (absl::Status status = WriteSettings(layout_, sockets_, cluster_name_, own_, server_, options_.settings);
      !status.ok()) {
    return status;
  }
  const int log = open(layout_.log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (log < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", layout_.log.string()));
  const absl::StatusOr<pid_t> pid =
      Spawn(server_, {(install_.bin / "postgres").string(), "-c", ConfigArgument(layout_)}, log);
  close(log);
  if (!pid.ok()) return pid.status();
  // It may have ended already: then this process is one that never was, and so not alive.
  postmaster_ = Process::Find(*pid).value_or(Process{.pid = *pid, .start_ticks = 0});
  return BecomesReady();
}

absl::StatusOr<bool> PrivatePostgres::BecomesReady() {
  const auto deadline = Clock::now() + kReadyLimit;
  std::optional<Clock::time_point> unreachable_since;
  absl::Status unreachable;
  for (auto pause = 5ms; Clock::now() < deadline; pause = std::min(pause * 2, 100ms)) {
    if (!Alive()) return false;
    const std::optional<PostmasterFile> file = ReadPostmasterFile(layout_.cluster);
    if (file && file->pid == postmaster_.pid && file->ready) {
      if (!IsPrivateFolder(file->sockets, server_)) {
        return absl::FailedPreconditionError(absl::StrCat("the socket of PostgreSQL lies in ", file->sockets.string(),
                                                          ", which others than ", server_.name, " may enter"));
      }
      sockets_ = file->sockets;
      const absl::Status reached = MakeDatabase(Conninfo(kSuperuser, "postgres"));
      if (!absl::IsUnavailable(reached)) {
        if (!reached.ok()) return reached;
        return true;
      }
      unreachable = reached;
      if (!unreachable_since) unreachable_since = Clock::now();
      if (Clock::now() - *unreachable_since > kReachableLimit) return unreachable;
    }
    Sleep(pause);
  }
  return absl::DeadlineExceededError(
      absl::StrCat("PostgreSQL (process ", postmaster_.pid, ") runs but is not ready after ", kReadyLimit.count(),
                   " s; it goes on, try again later. Its log ends: ", LogEnd(layout_.log)));
}

bool PrivatePostgres::Alive() {
  if (postmaster_.alive()) return true;
  // Where it was our child, its end must be taken note of, once: the number may be given to another child.
  if (postmaster_.pid > 0) waitpid(postmaster_.pid, nullptr, WNOHANG);
  postmaster_ = Process{.pid = 0, .start_ticks = 0};
  return false;
}

bool PrivatePostgres::EndsWithin(std::chrono::seconds limit) {
  for (const auto deadline = Clock::now() + limit; Alive(); Sleep(10ms)) {
    if (Clock::now() > deadline) return false;
  }
  return true;
}

absl::Status PrivatePostgres::EnsureRunning() {
  absl::MutexLock held(&mutex_);
  if (stopped_) return absl::FailedPreconditionError("the private database was stopped");
  return Alive() ? absl::OkStatus() : Launch();
}

absl::Status PrivatePostgres::Stop() {
  absl::MutexLock held(&mutex_);
  stopped_ = true;
  // postgres(1): SIGINT ends connections and writes a checkpoint; SIGQUIT does neither, and the next start recovers.
  if (Alive()) {
    kill(postmaster_.pid, SIGINT);
    if (!EndsWithin(kFastStopLimit)) {
      kill(postmaster_.pid, SIGQUIT);
      if (!EndsWithin(kForcedStopLimit)) {
        return absl::DeadlineExceededError(
            absl::StrCat("PostgreSQL (process ", postmaster_.pid, ") does not stop; the next start will adopt it"));
      }
    }
  }
  if (!sockets_.empty()) RemoveSocketFolder(layout_, sockets_);
  return absl::OkStatus();
}

std::string PrivatePostgres::Conninfo(const std::string& role, const std::string& database) const {
  return absl::StrJoin(
      {ConnectionParameter("host", sockets_.string()), ConnectionParameter("port", absl::StrCat(kPort)),
       ConnectionParameter("user", role), ConnectionParameter("dbname", database),
       // Nobody else than the server's user can pose as the server.
       ConnectionParameter("requirepeer", server_.name), std::string("connect_timeout=10"),
       std::string("application_name=tallyd")},
      " ");
}

std::string PrivatePostgres::ConnectionString() const { return ConnectionString(kRole, kDatabase); }

std::string PrivatePostgres::ConnectionString(const std::string& role, const std::string& database) const {
  absl::MutexLock held(&mutex_);
  return Conninfo(role, database);
}

pid_t PrivatePostgres::postmaster_pid() const {
  absl::MutexLock held(&mutex_);
  return postmaster_.pid;
}

}  // namespace tally::postgres
