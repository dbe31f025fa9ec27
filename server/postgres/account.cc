#include "server/postgres/account.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tally::postgres {
namespace {

constexpr size_t kOutputBytesMax = 64 * 1024;

absl::StatusOr<Account> FromPasswd(const passwd& entry) {
  Account account{.name = entry.pw_name, .uid = entry.pw_uid, .gid = entry.pw_gid, .groups = {}};
  int count = 256;
  account.groups.resize(static_cast<size_t>(count));
  if (getgrouplist(entry.pw_name, entry.pw_gid, account.groups.data(), &count) < 0) {
    return absl::FailedPreconditionError(absl::StrCat("user ", account.name, " is in more than 256 groups"));
  }
  account.groups.resize(static_cast<size_t>(count));
  return account;
}

// What a child needs, made before fork(): after it, in a process with threads, nothing may allocate.
struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> environment;
  bool change_user;
};

Prepared Prepare(const Account& account, const std::vector<std::string>& argv) {
  static char path[] = "PATH=/usr/bin:/bin", locale[] = "LC_ALL=C", zone[] = "TZ=UTC";
  Prepared prepared{.argv = {}, .environment = {path, locale, zone, nullptr}, .change_user = account.uid != geteuid()};
  for (const std::string& argument : argv) prepared.argv.push_back(const_cast<char*>(argument.c_str()));
  prepared.argv.push_back(nullptr);
  return prepared;
}

[[noreturn]] void GiveUp(const char* what) {
  const char* reason = strerrordesc_np(errno);
  for (const char* part : {what, ": ", reason ? reason : "unknown error", "\n"}) {
    if (write(STDERR_FILENO, part, strlen(part)) < 0) break;
  }
  _exit(127);
}

void CloseAllFrom(unsigned first) {
  if (syscall(SYS_close_range, first, ~0U, 0U) == 0) return;
  for (int fd = static_cast<int>(first); fd < 4096; ++fd) close(fd);
}

// In the child: async-signal-safe calls only.
[[noreturn]] void Become(const Account& account, const Prepared& prepared, int output) {
  const int null = open("/dev/null", O_RDWR);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0) GiveUp("/dev/null");
  if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) GiveUp("output");
  CloseAllFrom(3);
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(077);
  if (prepared.change_user) {
    if (setgroups(account.groups.size(), account.groups.data()) != 0) GiveUp("setgroups");
    if (setgid(account.gid) != 0) GiveUp("setgid");
    if (setuid(account.uid) != 0) GiveUp("setuid");
  }
  if (chdir("/") != 0) GiveUp("chdir");
  execve(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
  GiveUp(prepared.argv[0]);
}

absl::Status Errno(const char* what) { return absl::ErrnoToStatus(errno, what); }

}  // namespace

absl::StatusOr<Account> OwnAccount() {
  errno = 0;
  const passwd* entry = getpwuid(geteuid());
  if (entry == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "user id ", geteuid(),
        " has no name on this system (/etc/passwd), and PostgreSQL needs one; add the user, or give tallyd "
        "a database_url"));
  }
  return FromPasswd(*entry);
}

absl::StatusOr<Account> ServerAccount() {
  if (geteuid() != 0) return OwnAccount();
  const passwd* entry = getpwnam("postgres");
  if (entry == nullptr) {
    return absl::FailedPreconditionError(
        "PostgreSQL refuses to run as root and there is no user postgres: install the package postgresql, run tallyd "
        "as another user, or give it a database_url");
  }
  return FromPasswd(*entry);
}

absl::StatusOr<Finished> RunProgram(const Account& account, const std::vector<std::string>& argv,
                                    std::chrono::milliseconds time_limit) {
  const Prepared prepared = Prepare(account, argv);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Errno("pipe");
  const pid_t pid = fork();
  if (pid < 0) {
    absl::Status status = Errno("fork");
    close(ends[0]);
    close(ends[1]);
    return status;
  }
  if (pid == 0) Become(account, prepared, ends[1]);
  close(ends[1]);

  Finished finished{.exit_code = -1, .output = ""};
  const auto deadline = std::chrono::steady_clock::now() + time_limit;
  bool in_time = true;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd watched{.fd = ends[0], .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? poll(&watched, 1, static_cast<int>(left.count())) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      in_time = false;
      break;
    }
    char buffer[4096];
    const ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const size_t room = kOutputBytesMax - finished.output.size();
    finished.output.append(buffer, std::min(room, static_cast<size_t>(got)));
  }
  close(ends[0]);
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return absl::DeadlineExceededError(absl::StrCat(argv[0], " took more than ", time_limit.count(),
                                                    " ms and was killed; it said: ", finished.output));
  }
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

absl::StatusOr<pid_t> Spawn(const Account& account, const std::vector<std::string>& argv, int log_fd) {
  const Prepared prepared = Prepare(account, argv);
  const pid_t pid = fork();
  if (pid < 0) return Errno("fork");
  if (pid == 0) {
    setsid();
    Become(account, prepared, log_fd);
  }
  return pid;
}

}  // namespace tally::postgres
