#include "server/postgres/postmaster_file.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace tally::postgres {

std::optional<PostmasterFile> ReadPostmasterFile(const std::filesystem::path& cluster) {
  constexpr size_t kPid = 0, kSockets = 4, kStatus = 7, kLinesMax = 16;
  std::ifstream file(cluster / "postmaster.pid");
  std::vector<std::string> lines;
  for (std::string line; lines.size() < kLinesMax && std::getline(file, line);) lines.push_back(line);

  PostmasterFile found{.pid = 0, .sockets = {}, .ready = false};
  if (lines.size() <= kPid || !absl::SimpleAtoi(lines[kPid], &found.pid) || found.pid <= 0) return std::nullopt;
  if (lines.size() > kSockets) found.sockets = std::string(absl::StripAsciiWhitespace(lines[kSockets]));
  found.ready = lines.size() > kStatus && absl::StartsWith(lines[kStatus], "ready");
  return found;
}

}  // namespace tally::postgres
