#include "lib/process/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tally::process {
namespace {

// What a program needs to run at all; nothing of ours that could carry a secret.
constexpr std::array kInherited = {"PATH", "HOME", "LANG", "TZ", "TMPDIR"};

// What this process was started with; none: it was never raised.
std::optional<rlimit> usual_descriptors;

std::vector<std::string> EnvironmentOf(const Command& command) {
  std::map<std::string, std::string> environment = command.environment;
  for (const char* name : kInherited) {
    if (const char* value = std::getenv(name)) environment.try_emplace(name, value);
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : environment) lines.push_back(absl::StrCat(name, "=", value));
  return lines;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void CloseAll(std::initializer_list<int> descriptors) {
  for (const int descriptor : descriptors) {
    if (descriptor >= 0) close(descriptor);
  }
}

int Spawn(const Command& command, const std::array<int, 3>& streams, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  const absl::Cleanup destroy = [&] {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  };
  for (int target = 0; target < 3; ++target) posix_spawn_file_actions_adddup2(&actions, streams[target], target);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (!command.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, command.directory.c_str());
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> arguments = command.argv;
  std::vector<std::string> environment = EnvironmentOf(command);
  return posix_spawnp(&pid, arguments[0].c_str(), &actions, &attributes, Pointers(arguments).data(),
                      Pointers(environment).data());
}

}  // namespace

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  usual_descriptors = limit;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) usual_descriptors.reset();
}

absl::StatusOr<Child> StartChild(const Command& command) {
  if (command.argv.empty()) return absl::InvalidArgumentError("a command is empty");
  std::array<int, 2> in = {-1, -1};
  std::array<int, 2> out = {-1, -1};
  std::array<int, 2> err = {-1, -1};
  if (pipe2(in.data(), O_CLOEXEC) != 0 || pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    CloseAll({in[0], in[1], out[0], out[1], err[0], err[1]});
    return absl::ErrnoToStatus(error, "no pipe for a process");
  }
  Child child;
  const int error = Spawn(command, {in[0], out[1], err[1]}, child.pid);
  CloseAll({in[0], out[1], err[1]});
  child.stdin_fd = in[1];
  child.stdout_fd = out[0];
  child.stderr_fd = err[0];
  if (error != 0) {
    CloseAll({child.stdin_fd, child.stdout_fd, child.stderr_fd});
    return absl::ErrnoToStatus(error, absl::StrCat("the command ", command.argv[0], " cannot be started"));
  }
  // Some programs close every number up to their limit when they start, or use select.
  if (usual_descriptors) prlimit(child.pid, RLIMIT_NOFILE, &*usual_descriptors, nullptr);
  child.pid_fd = static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0));
  if (child.pid_fd < 0) {
    const int failed = errno;
    SignalGroup(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    CloseAll({child.stdin_fd, child.stdout_fd, child.stderr_fd});
    return absl::ErrnoToStatus(failed, "no descriptor for a process");
  }
  for (const int descriptor : {child.stdin_fd, child.stdout_fd, child.stderr_fd}) {
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  }
  return child;
}

void SignalGroup(pid_t leader, int signal) {
  if (leader > 1) kill(-leader, signal);
}

bool Reap(pid_t leader) {
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(leader), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return true;
  if (info.si_pid == 0) return false;
  // While the leader is a zombie its number cannot be given away, so this reaches nobody else.
  SignalGroup(leader, SIGKILL);
  waitpid(leader, nullptr, 0);
  return true;
}

}  // namespace tally::process
