#include "gateway/mcp/param_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "gateway/mcp/protocol.h"

namespace tally::mcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Headers = std::map<std::string, std::string, std::less<>>;

constexpr std::string_view kSchema = R"({"type":"object","properties":{
  "region":{"type":"string","x-mcp-header":"Region"},
  "query":{"type":"string"},
  "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"}}}}})";

std::vector<ParamHeader> Params() {
  const auto params = ParamHeadersOf(kSchema);
  EXPECT_TRUE(params.ok()) << params.status();
  return *params;
}

int64_t Check(std::string_view arguments, const Headers& headers) {
  const auto error = CheckParamHeaders(Params(), arguments, [&](std::string_view name) {
    const auto found = headers.find(name);
    return found == headers.end() ? std::nullopt : std::optional(found->second);
  });
  return error ? error->code : 0;
}

TEST(ParamHeadersTest, MarksAreFoundAlongProperties) {
  EXPECT_THAT(Params(),
              ElementsAre(ParamHeader{"Mcp-Param-Region", {"region"}}, ParamHeader{"Mcp-Param-N", {"deep", "n"}},
                          ParamHeader{"Mcp-Param-B", {"deep", "b"}}));
  EXPECT_THAT(*ParamHeadersOf(R"({"type":"object","properties":{"x-mcp-header":{"type":"string"}}})"), IsEmpty());
  EXPECT_THAT(*ParamHeadersOf(R"({"properties":{"a":{"type":"string","default":{"x-mcp-header":"A"}}}})"), IsEmpty());
  EXPECT_THAT(*ParamHeadersOf("true"), IsEmpty());
}

TEST(ParamHeadersTest, MarksThatBreakTheRulesAreRefused) {
  for (const char* property : {
           R"({"type":"string","x-mcp-header":""})",
           R"({"type":"string","x-mcp-header":7})",
           R"({"type":"string","x-mcp-header":"a b"})",
           R"({"type":"string","x-mcp-header":"a\r\nX"})",
           R"({"type":"string","x-mcp-header":"a:"})",
           R"({"type":"number","x-mcp-header":"A"})",
           R"({"type":"object","x-mcp-header":"A"})",
           R"({"x-mcp-header":"A"})",
           R"({"type":"array","items":{"type":"string","x-mcp-header":"A"}})",
           R"({"anyOf":[{"type":"string","x-mcp-header":"A"}]})",
           R"({"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}})",
       }) {
    EXPECT_FALSE(ParamHeadersOf(R"({"properties":{"p":)" + std::string(property) + "}}").ok()) << property;
  }
  EXPECT_FALSE(
      ParamHeadersOf(
          R"({"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}})")
          .ok());
  EXPECT_FALSE(ParamHeadersOf(R"({"$defs":{"a":{"type":"string","x-mcp-header":"X"}}})").ok());
}

TEST(ParamHeadersTest, HeadersMustSayWhatTheArgumentsSay) {
  const char* arguments = R"({"region":"Hello, 世界","deep":{"n":42.0,"b":true}})";
  const Headers good = {
      {"Mcp-Param-Region", "=?base64?SGVsbG8sIOS4lueVjA==?="}, {"Mcp-Param-N", "42"}, {"Mcp-Param-B", "true"}};
  EXPECT_EQ(Check(arguments, good), 0);
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"Mcp-Param-Region", "Hello"},
                                                        {"Mcp-Param-Region", "=?base64?!?="},
                                                        {"Mcp-Param-N", "43"},
                                                        {"Mcp-Param-N", "\"42\""},
                                                        {"Mcp-Param-N", ""},
                                                        {"Mcp-Param-B", "True"}}) {
    Headers bad = good;
    bad[name] = value;
    EXPECT_EQ(Check(arguments, bad), code::kHeaderMismatch) << name << ": " << value;
  }
  Headers missing = good;
  missing.erase("Mcp-Param-B");
  EXPECT_EQ(Check(arguments, missing), code::kHeaderMismatch);
  Headers same_number = good;
  same_number["Mcp-Param-N"] = "42.0";
  EXPECT_EQ(Check(arguments, same_number), 0);
}

TEST(ParamHeadersTest, AnArgumentThatIsAbsentOrNullHasNoHeader) {
  EXPECT_EQ(Check("{}", {}), 0);
  EXPECT_EQ(Check(R"({"region":null,"deep":{}})", {}), 0);
  EXPECT_EQ(Check(R"({"region":null})", {{"Mcp-Param-Region", "null"}}), code::kHeaderMismatch);
  EXPECT_EQ(Check("", {}), 0);
}

TEST(ParamHeadersTest, ValuesAreEncodedForTheHeader) {
  const std::vector<ParamHeader> params = Params();
  const char* arguments = R"({"region":" padded ","deep":{"n":-7,"b":false}})";
  EXPECT_EQ(ParamHeaderValue(params[0], arguments), "=?base64?IHBhZGRlZCA=?=");
  EXPECT_EQ(ParamHeaderValue(params[1], arguments), "-7");
  EXPECT_EQ(ParamHeaderValue(params[2], arguments), "false");
  EXPECT_EQ(ParamHeaderValue(params[1], R"({"deep":{"n":1.5}})"), std::nullopt);
  EXPECT_EQ(ParamHeaderValue(params[1], R"({"deep":[]})"), std::nullopt);
}

}  // namespace
}  // namespace tally::mcp
