// Everything that fuzzers ever found worth keeping, through the same entry points, in every run of the suite.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace tally::fuzz {
namespace {

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Target {
  const char* name;
  void (*take)(std::string_view bytes);
};

class CorpusTest : public ::testing::TestWithParam<Target> {};
INSTANTIATE_TEST_SUITE_P(Fuzz, CorpusTest,
                         ::testing::Values(Target{"message", FuzzMessage}, Target{"sse", FuzzSse},
                                           Target{"lines", FuzzLines}, Target{"judge", FuzzJudge},
                                           Target{"headers", FuzzHeaders}),
                         [](const auto& instance) { return instance.param.name; });

// A broken promise or a sanitizer ends the program.
TEST_P(CorpusTest, NoInputBreaksAPromise) {
  size_t count = 0;
  const std::vector<std::string> folders = {std::string("tests/fuzz/corpus/") + GetParam().name, "tests/mcp/corpus"};
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      SCOPED_TRACE(entry.path());
      const std::string text = Read(entry.path());
      GetParam().take(text);
      // Cut short, it is another input.
      GetParam().take(std::string_view(text).substr(0, text.size() / 2));
      ++count;
    }
  }
  EXPECT_GE(count, 20u);
}

}  // namespace
}  // namespace tally::fuzz
