#include "server/postgres/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tally::postgres {
namespace {

std::string ReadProc(pid_t pid, const char* name) {
  // Not by a stream: its buffer throws if the process ends between open and read (ESRCH).
  std::string text;
  const int file = open(absl::StrCat("/proc/", pid, "/", name).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char buffer[4096];
  for (ssize_t size; (size = read(file, buffer, sizeof(buffer))) > 0;) text.append(buffer, static_cast<size_t>(size));
  close(file);
  return text;
}

}  // namespace

std::optional<Process> Process::Find(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  const std::string stat = ReadProc(pid, "stat");
  // The second field, the program's name in brackets, may hold spaces and brackets itself (proc(5)).
  const size_t after_name = stat.rfind(')');
  if (after_name == std::string::npos || after_name + 2 >= stat.size()) return std::nullopt;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(after_name + 2), ' ');
  constexpr size_t kState = 0, kStartTime = 19;  // fields 3 and 22
  uint64_t start = 0;
  if (fields.size() <= kStartTime || !absl::SimpleAtoi(fields[kStartTime], &start)) return std::nullopt;
  if (fields[kState] == "Z" || fields[kState] == "X") return std::nullopt;
  return Process{.pid = pid, .start_ticks = start};
}

bool Process::alive() const {
  const std::optional<Process> now = Find(pid);
  return now && now->start_ticks == start_ticks;
}

std::vector<std::string> CommandLine(pid_t pid) {
  return absl::StrSplit(ReadProc(pid, "cmdline"), '\0', absl::SkipEmpty());
}

std::optional<uid_t> RunsAs(pid_t pid) {
  struct stat entry;
  if (stat(absl::StrCat("/proc/", pid).c_str(), &entry) != 0) return std::nullopt;
  return entry.st_uid;
}

bool WorksIn(pid_t pid, const std::filesystem::path& folder) {
  std::error_code error;
  const bool same = std::filesystem::equivalent(absl::StrCat("/proc/", pid, "/cwd"), folder, error);
  return error ? Process::Find(pid).has_value() : same;
}

std::vector<pid_t> ClusterProcesses(const std::string& cluster_name, uid_t uid) {
  const std::string title = absl::StrCat("postgres: ", cluster_name, ":");
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || RunsAs(pid) != uid) continue;
    if (absl::StartsWith(ReadProc(pid, "cmdline"), title) && Process::Find(pid)) found.push_back(pid);
  }
  return found;
}

}  // namespace tally::postgres
