// postmaster.pid, in which a running server says who it is (PostgreSQL: miscadmin.h, LOCK_FILE_LINE_*).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

namespace tally::postgres {

struct PostmasterFile {
  pid_t pid;
  std::filesystem::path sockets;  // empty until the server has got so far
  bool ready;                     // takes connections
};

// Empty if there is none, or it is not yet written in full. A server that was killed leaves its file behind.
std::optional<PostmasterFile> ReadPostmasterFile(const std::filesystem::path& cluster);

}  // namespace tally::postgres
