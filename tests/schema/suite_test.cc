// The JSON Schema test suite for draft 7, whole. What is compiled must judge every case as the suite does; what is
// refused is printed, and the exact list is pinned here, so that neither a wrong verdict nor a new refusal goes unseen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "lib/json/parse.h"
#include "lib/schema/schema.h"

namespace tally::schema {
namespace {

using json::Value;

const std::filesystem::path kSuite = "/usr/share/json-schema-test-suite/tests/draft7";

struct Tally {
  int passed = 0;
  std::map<std::string, int> refused;  // "file: group" to its number of cases
};

// Case variants are admitted: the suite's own texts have members such as "foo\nbar" and "FOO", and no upstream reads
// them.
Value ReadJson(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  auto value = json::Parse(text, {.bytes_max = 1 << 20, .case_variants = json::CaseVariants::kAdmit});
  EXPECT_TRUE(value.ok()) << path << ": " << value.status();
  return value.ok() ? *std::move(value) : Value(json::Array{});
}

const std::string& Text(const Value& object, const char* name) { return *object.AsObject()->Find(name)->AsString(); }

void RunFile(const std::filesystem::path& path, Tally* tally) {
  const Value groups = ReadJson(path);
  for (const Value& group : *groups.AsArray()) {
    const std::string title = std::filesystem::relative(path, kSuite).string() + ": " + Text(group, "description");
    const json::Array& cases = *group.AsObject()->Find("tests")->AsArray();
    const auto schema = Compile(*group.AsObject()->Find("schema"));
    if (!schema.ok()) {
      EXPECT_EQ(schema.status().code(), absl::StatusCode::kInvalidArgument);
      tally->refused[title] += static_cast<int>(cases.size());
      std::cout << "refused (" << cases.size() << " cases) " << title << " -- " << schema.status().message() << "\n";
      continue;
    }
    for (const Value& test : cases) {
      const Result result = (*schema)->Validate(*test.AsObject()->Find("data"));
      const bool valid = *test.AsObject()->Find("valid")->AsBool();
      EXPECT_EQ(result.outcome, valid ? Outcome::kOk : Outcome::kViolated)
          << title << ": " << Text(test, "description") << ": " << result.keyword << " " << result.sentence;
      ++tally->passed;
    }
  }
}

Tally RunFolder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Tally tally;
  for (const auto& file : files) RunFile(file, &tally);
  int refused = 0;
  for (const auto& [title, cases] : tally.refused) refused += cases;
  std::cout << tally.passed << " cases judged as the suite does, " << refused << " refused at compile, in " << folder
            << "\n";
  return tally;
}

class Suite : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kSuite)) GTEST_SKIP() << "the package json-schema-test-suite is not installed";
  }
};

TEST_F(Suite, RequiredCasesAreJudgedRightAndOnlyThesePinnedGroupsAreRefused) {
  const Tally tally = RunFolder(kSuite);
  EXPECT_EQ(tally.passed, 393);
  EXPECT_THAT(tally.refused,
              testing::ContainerEq(std::map<std::string, int>{
                  // Lead out of the document, or set an $id: 21 cases.
                  {"definitions.json: valid definition", 1},
                  {"definitions.json: invalid definition", 1},
                  {"ref.json: remote ref, containing refs itself", 2},
                  {"ref.json: Recursive references between schemas", 2},
                  {"refRemote.json: remote ref", 2},
                  {"refRemote.json: fragment within remote ref", 2},
                  {"refRemote.json: ref within remote ref", 2},
                  {"refRemote.json: base URI change", 2},
                  {"refRemote.json: base URI change - change folder", 2},
                  {"refRemote.json: base URI change - change folder in subschema", 2},
                  {"refRemote.json: root ref in remote ref", 3},
                  // Schemas under keywords that draft 7 does not have; escaped pointers are in compile_test.cc.
                  {"ref.json: escaped pointer ref", 6},
                  // A constraint beside $ref, which draft 7 would have ignored.
                  {"ref.json: ref overrides any sibling keywords", 3},
              }));
}

TEST_F(Suite, OptionalCasesAreJudgedRightAndOnlyThesePinnedGroupsAreRefused) {
  const Tally tally = RunFolder(kSuite / "optional");
  EXPECT_EQ(tally.passed, 10);
  EXPECT_THAT(tally.refused, testing::ContainerEq(std::map<std::string, int>{
                                 {"optional/content.json: validation of string-encoded content based on media type", 3},
                                 {"optional/content.json: validation of binary string-encoding", 3},
                                 {"optional/content.json: validation of binary-encoded media type documents", 4},
                                 // format: regex. Its pattern is refused as a pattern too (pattern_test.cc).
                                 {"optional/ecmascript-regex.json: ECMA 262 regex non-compliance", 1},
                             }));
}

// No format can be enforced, so every group of these files is refused, for that keyword and by name.
TEST_F(Suite, EveryFormatIsRefused) {
  const Tally tally = RunFolder(kSuite / "optional" / "format");
  EXPECT_EQ(tally.passed, 0);
  EXPECT_EQ(tally.refused.size(), 17u);
}

}  // namespace
}  // namespace tally::schema
