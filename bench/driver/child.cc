#include "bench/driver/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tally::bench {
namespace {

constexpr std::chrono::seconds kStopLimit{30};
constexpr size_t kLogTailBytes = 2000;

bool Accepts(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::strcpy(address.sun_path, path.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return connected;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Child>> Child::Start(const std::vector<std::string>& command,
                                                    const std::vector<std::string>& environment,
                                                    const std::string& log) {
  // Everything that allocates comes before the fork.
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.emplace_back(*variable);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(variables);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", log));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(out);
  if (pid < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", command[0]));
  return std::unique_ptr<Child>(new Child(pid, log));
}

Child::~Child() { Stop(); }

bool Child::Ended() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = 0;
  return pid_ == 0;
}

std::string Child::LogTail() const {
  std::ifstream file(log_);
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  return all.size() <= kLogTailBytes ? all : all.substr(all.size() - kLogTailBytes);
}

absl::Status Child::AwaitSocket(const std::string& socket, std::chrono::seconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!Accepts(socket)) {
    if (Ended()) return absl::UnavailableError(absl::StrCat("it ended at once: ", LogTail()));
    if (std::chrono::steady_clock::now() >= until) {
      return absl::DeadlineExceededError(absl::StrCat("it does not serve on ", socket, ": ", LogTail()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return absl::OkStatus();
}

void Child::Stop() {
  if (Ended()) return;
  kill(pid_, SIGTERM);
  const auto until = std::chrono::steady_clock::now() + kStopLimit;
  while (!Ended() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (Ended()) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

}  // namespace tally::bench
