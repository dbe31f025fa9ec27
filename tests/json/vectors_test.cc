// The JCS test vectors (RFC 8785's reference set): input, output, and output in hexadecimal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"

namespace tally::json {
namespace {

std::filesystem::path Folder() {
  const char* vectors = std::getenv("TALLY_VECTORS");
  return std::filesystem::path(vectors != nullptr ? vectors : "../shared/vectors") / "jcs";
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string FromHex(const std::string& hex) {
  std::istringstream words(hex);
  std::string bytes;
  for (std::string word; words >> word;) bytes.push_back(static_cast<char>(std::stoi(word, nullptr, 16)));
  return bytes;
}

class JcsVectors : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(Folder())) GTEST_SKIP() << "no vectors at " << Folder();
  }
};

TEST_P(JcsVectors, TheSerialiserOfDoublesGivesTheExpectedBytes) {
  const std::string input = ReadFile(Folder() / "input" / (std::string(GetParam()) + ".json"));
  const std::string hex = ReadFile(Folder() / "outhex" / (std::string(GetParam()) + ".txt"));
  const auto value = Parse(input, {.case_variants = CaseVariants::kAdmit});
  ASSERT_TRUE(value.ok()) << value.status();
  const auto bytes = CanonicalOfDoubles(*value);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(*bytes, FromHex(hex));
  EXPECT_EQ(*bytes, ReadFile(Folder() / "output" / (std::string(GetParam()) + ".json")));
}

INSTANTIATE_TEST_SUITE_P(All, JcsVectors,
                         testing::Values("arrays", "french", "structures", "unicode", "values", "weird"),
                         [](const auto& test) { return test.param; });

class JcsAdmission : public JcsVectors {};

TEST_P(JcsAdmission, AdmitsAndTheProductsFormDiffersOnlyInDigitsThatNoDoubleHas) {
  const auto bytes = Canonicalise(ReadFile(Folder() / "input" / (std::string(GetParam()) + ".json")));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  std::string expected = ReadFile(Folder() / "output" / (std::string(GetParam()) + ".json"));
  const size_t rounded = expected.find("333333333.3333333");
  if (rounded != std::string::npos) expected.replace(rounded, 17, "333333333.33333329");
  EXPECT_EQ(*bytes, expected);
}

INSTANTIATE_TEST_SUITE_P(All, JcsAdmission, testing::Values("arrays", "french", "unicode", "values", "weird"),
                         [](const auto& test) { return test.param; });

class JcsStructures : public JcsVectors {};

TEST_P(JcsStructures, IsRefusedByAdmissionForMembersThatDifferByCase) {
  const auto value = Parse(ReadFile(Folder() / "input" / (std::string(GetParam()) + ".json")));
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(std::string(value.status().message()), testing::HasSubstr("differs only by case"));
}

INSTANTIATE_TEST_SUITE_P(One, JcsStructures, testing::Values("structures"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace tally::json
