#include "server/postgres/install.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tally::postgres {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

bool HoldsServer(const fs::path& bin) {
  return access((bin / "postgres").c_str(), X_OK) == 0 && access((bin / "initdb").c_str(), X_OK) == 0;
}

// Folders worth a look, without duplicates: Debian's, one per major version; the PATH; the usual places of others.
std::vector<fs::path> Candidates() {
  std::vector<fs::path> candidates;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", error)) {
    candidates.push_back(entry.path() / "bin");
  }
  const char* path = std::getenv("PATH");
  for (const auto& folder : absl::StrSplit(path ? path : "", ':', absl::SkipEmpty())) {
    // A link in /usr/bin leads to a folder that holds all of the server's programs.
    const fs::path server = fs::canonical(fs::path(std::string(folder)) / "postgres", error);
    if (!error) candidates.push_back(server.parent_path());
  }
  candidates.emplace_back("/usr/local/pgsql/bin");
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::erase_if(candidates, [](const fs::path& bin) { return !HoldsServer(bin); });
  return candidates;
}

// "postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)" → 15
std::optional<int> MajorOf(const Account& account, const fs::path& bin) {
  const absl::StatusOr<Finished> said = RunProgram(account, {(bin / "postgres").string(), "--version"}, 10s);
  if (!said.ok() || said->exit_code != 0) return std::nullopt;
  const std::vector<std::string> words = absl::StrSplit(said->output, ' ');
  if (words.size() < 3) return std::nullopt;
  const std::string digits = words[2].substr(0, words[2].find_first_not_of("0123456789"));
  int major = 0;
  if (!absl::SimpleAtoi(digits, &major)) return std::nullopt;
  return major;
}

}  // namespace

absl::StatusOr<Install> FindInstall(const Account& account, std::optional<int> major) {
  std::optional<Install> best;
  std::vector<std::string> seen;
  for (const fs::path& bin : Candidates()) {
    const std::optional<int> found = MajorOf(account, bin);
    if (!found) continue;
    seen.push_back(absl::StrCat(*found, " in ", bin.string()));
    const bool fits = major ? *found == *major : *found >= kMajorMin;
    if (fits && (!best || *found > best->major)) best = Install{.bin = bin, .major = *found};
  }
  if (best) return *best;
  const std::string have = seen.empty() ? "none was found" : absl::StrCat("found: ", absl::StrJoin(seen, ", "));
  if (major) {
    return absl::FailedPreconditionError(
        absl::StrCat("the private database was made by PostgreSQL ", *major, ", which is needed to run it; ", have,
                     ". Install postgresql-", *major, ", or move the data with pg_upgrade. Nothing was changed"));
  }
  return absl::FailedPreconditionError(absl::StrCat("PostgreSQL ", kMajorMin,
                                                    " or later is needed for the private database; ", have,
                                                    ". Install the package postgresql, or give tallyd a database_url"));
}

}  // namespace tally::postgres
