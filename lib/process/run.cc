#include "lib/process/run.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace tally::process {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kErrorsMax = 4096;

void Close(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

// What can be written now; closes at the end of the input, or when nobody reads it.
void Write(int& descriptor, std::string_view& input) {
  const ssize_t written = write(descriptor, input.data(), input.size());
  if (written > 0) input.remove_prefix(static_cast<size_t>(written));
  const bool gone = written < 0 && errno != EAGAIN && errno != EINTR;
  if (input.empty() || gone) Close(descriptor);
}

// What can be read now; closes at its end.
void Read(int& descriptor, std::string& into, size_t bytes_max) {
  std::array<char, 16 * 1024> buffer;
  const ssize_t got = read(descriptor, buffer.data(), buffer.size());
  if (got > 0) {
    into.append(buffer.data(), std::min(static_cast<size_t>(got), bytes_max - std::min(bytes_max, into.size())));
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    Close(descriptor);
  }
}

}  // namespace

absl::StatusOr<Ended> Run(const Command& command, std::string_view input, std::chrono::milliseconds timeout,
                          size_t output_bytes_max) {
  const Clock::time_point end = Clock::now() + timeout;
  absl::StatusOr<Child> child = StartChild(command);
  if (!child.ok()) return child.status();
  bool waited = false;
  const absl::Cleanup gone = [&] {
    for (int* descriptor : {&child->stdin_fd, &child->stdout_fd, &child->stderr_fd, &child->pid_fd}) Close(*descriptor);
    if (waited) return;
    SignalGroup(child->pid, SIGKILL);
    waitpid(child->pid, nullptr, 0);
  };
  Ended ended;
  if (input.empty()) Close(child->stdin_fd);
  // Ends at the deadline at the latest. The program's end counts, not that of its output: something it left behind may
  // hold that open.
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return absl::DeadlineExceededError(absl::StrCat("it did not end within ", timeout.count(), " ms"));
    std::array<pollfd, 4> polled = {pollfd{child->pid_fd, POLLIN, 0}, pollfd{child->stdin_fd, POLLOUT, 0},
                                    pollfd{child->stdout_fd, POLLIN, 0}, pollfd{child->stderr_fd, POLLIN, 0}};
    if (poll(polled.data(), polled.size(), static_cast<int>(std::min<int64_t>(left, 60'000))) < 0 && errno != EINTR) {
      return absl::ErrnoToStatus(errno, "the program cannot be waited for");
    }
    if (polled[1].revents != 0) Write(child->stdin_fd, input);
    if (polled[2].revents != 0) Read(child->stdout_fd, ended.output, output_bytes_max + 1);
    if (polled[3].revents != 0) Read(child->stderr_fd, ended.errors, kErrorsMax);
    if (ended.output.size() > output_bytes_max) {
      return absl::ResourceExhaustedError(absl::StrCat("it wrote more than ", output_bytes_max, " bytes"));
    }
    // All that was written before the end is read first: the pipe still holds it.
    if (polled[0].revents != 0 && (polled[2].revents & POLLIN) == 0) break;
  }
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOWAIT);
  ended.exit_code = info.si_code == CLD_EXITED ? info.si_status : -1;
  waited = Reap(child->pid);
  return ended;
}

}  // namespace tally::process
