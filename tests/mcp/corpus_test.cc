// Awkward inputs, kept as files in tests/mcp/corpus so that a fuzzer can begin with them; and those too large to keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "gateway/mcp/message.h"
#include "gateway/mcp/tool_call.h"
#include "tests/mcp/probe.h"

namespace tally::mcp {
namespace {

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(CorpusTest, EveryFileIsTakenOrRefusedAsItsNameSays) {
  size_t taken = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/mcp/corpus")) {
    const std::string name = entry.path().filename();
    const bool good = name.starts_with("good_");
    ASSERT_TRUE(good || name.starts_with("bad_")) << name;
    EXPECT_EQ(Probe(Read(entry.path())), good) << name;
    ++(good ? taken : refused);
  }
  EXPECT_GE(taken, 5u);
  EXPECT_GE(refused, 20u);
}

TEST(CorpusTest, LargeInputsAreRefusedOrTakenInBoundedTime) {
  const std::string head = R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":)";
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_FALSE(Probe(std::string(10'000'000, 'x')));
  EXPECT_FALSE(Probe(std::string(1'000'000, '{')));
  EXPECT_FALSE(Probe(head + std::string(500'000, '[') + std::string(500'000, ']') + "}}"));
  EXPECT_FALSE(Probe(head + "\"" + std::string(2'000'000, 'a') + "\"}}"));
  EXPECT_TRUE(Probe(head + "\"" + std::string(900'000, 'a') + "\"}}"));
  EXPECT_FALSE(Probe(head + many + "\"K7\":0}}}")) << "a case variant among a hundred thousand members";
  EXPECT_FALSE(Probe(std::string(1'000'000, '\0')));
  EXPECT_FALSE(Probe(std::string(1'000'000, '\xff')));
}

}  // namespace
}  // namespace tally::mcp
