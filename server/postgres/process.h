// Which processes are alive, told apart from later ones that got the same number.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tally::postgres {

// A process that was alive when this was made. `start_ticks` tells it from a later process with the same pid.
struct Process {
  pid_t pid;
  uint64_t start_ticks;

  // Empty if no such process is alive; one that has ended and was not waited for yet is not alive.
  static std::optional<Process> Find(pid_t pid);
  bool alive() const;
};

// The words of its command line, and the user it runs as. Empty if it is gone. Readable without privileges.
std::vector<std::string> CommandLine(pid_t pid);
std::optional<uid_t> RunsAs(pid_t pid);

// True if its working folder is this one, and also where we may not know: as root in a container without
// CAP_SYS_PTRACE.
bool WorksIn(pid_t pid, const std::filesystem::path& folder);

// The server's helpers and connections that belong to the cluster of this name, as their process titles say.
std::vector<pid_t> ClusterProcesses(const std::string& cluster_name, uid_t uid);

}  // namespace tally::postgres
