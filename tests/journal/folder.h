// What the tests here share.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "gateway/journal/record.h"

namespace tally::gateway {

class Folder {
 public:
  Folder() {
    std::string path = testing::TempDir() + "tally_journal_XXXXXX";
    if (mkdtemp(path.data()) == nullptr) std::abort();
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

// While it lives, no file of this process grows over `bytes`: a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

inline std::string AttemptId(int number) {
  std::string id(16, '\0');
  for (size_t i = 0; i < 4; ++i) id[i] = static_cast<char>(static_cast<unsigned>(number) >> (8 * i));
  return id;
}

inline Record MakeRecord(Stage stage, int attempt, const std::string& result = "") {
  Record record{stage, stage == Stage::kGranted ? 10'000 : 0, {}};
  record.commit.set_attempt_id(AttemptId(attempt));
  if (stage != Stage::kDelivered) record.commit.set_call_id("call-" + std::to_string(attempt));
  if (stage == Stage::kOutcome) {
    record.commit.set_outcome(v1::OUTCOME_SUCCEEDED);
    record.commit.set_result(result);
  }
  return record;
}

}  // namespace tally::gateway
