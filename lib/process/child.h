// A child process that speaks on its standard streams: clean environment, no shell, a process group of its own.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tally::process {

struct Command {
  std::vector<std::string> argv;                   // argv[0]: a path, or a name looked up in PATH
  std::map<std::string, std::string> environment;  // all there is, besides PATH, HOME, LANG, TZ and TMPDIR of our own
  std::string directory;                           // empty: ours
};

// Descriptors are ours to close; non-blocking.
struct Child {
  pid_t pid = -1;
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  int pid_fd = -1;  // readable when it has ended
};

// As many descriptors as the system lets this process have: each client and each stream is one. Children get what was
// there before. Once, at the start.
void RaiseDescriptorLimit();

// Fails without a child: a program that is not there, no descriptors left.
absl::StatusOr<Child> StartChild(const Command& command);

// To the whole group. The group's leader must not have been reaped yet, so that its number is nobody else's.
void SignalGroup(pid_t leader, int signal);
// Takes the ended leader's status, and what is left of its group with it. False: it has not ended.
bool Reap(pid_t leader);

}  // namespace tally::process
