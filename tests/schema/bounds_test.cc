// Whatever schema and instance are: validation ends, within its steps and its stack, and what it could not judge never
// passes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lib/json/parse.h"
#include "lib/schema/schema.h"

namespace tally::schema {
namespace {

std::shared_ptr<const Schema> S(std::string_view text) {
  auto schema = Compile(*json::Parse(text));
  EXPECT_TRUE(schema.ok()) << schema.status();
  return *schema;
}

Result Judge(std::string_view schema, std::string_view instance, int64_t steps_max = kStepsMax) {
  return S(schema)->Validate(*json::Parse(instance), steps_max);
}

// Each definition applies the next one twice: 2^40 ways down.
std::string Doubling(const std::string& keyword, const std::string& last) {
  std::string text = R"({"$ref":"#/definitions/0","definitions":{)";
  for (int i = 0; i < 25; ++i) {
    const std::string next = "{\"$ref\":\"#/definitions/" + std::to_string(i + 1) + "\"}";
    text += "\"" + std::to_string(i) + "\":{\"" + keyword + "\":[" + next + "," + next + "]},";
  }
  return text + "\"25\":" + last + "}}";
}

TEST(BoundsTest, SchemasThatApplyThemselvesExponentiallyOftenAreUnenforceable) {
  EXPECT_EQ(Judge(Doubling("allOf", "true"), "1").outcome, Outcome::kUnenforceable);
  EXPECT_EQ(Judge(Doubling("anyOf", "false"), "1").outcome, Outcome::kUnenforceable);
  EXPECT_EQ(Judge(Doubling("oneOf", "false"), "1").outcome, Outcome::kUnenforceable);
  EXPECT_THAT(Judge(Doubling("allOf", "true"), "1").sentence, testing::HasSubstr("more steps"));
}

TEST(BoundsTest, WhatStopsInsideACombinationIsNeverTurnedIntoAVerdict) {
  constexpr int64_t kFew = 20'000;
  const std::string doubling = Doubling("allOf", "true");
  const std::string definitions = doubling.substr(doubling.find("\"definitions\""));
  const std::string stops = R"({"$ref":"#/definitions/0"})";
  for (const std::string& around :
       {"\"not\":" + stops, "\"anyOf\":[" + stops + ",true]", "\"oneOf\":[" + stops + ",true]",
        "\"allOf\":[" + stops + "]", "\"if\":" + stops + ",\"then\":true,\"else\":true",
        "\"if\":true,\"then\":" + stops}) {
    EXPECT_EQ(Judge("{" + around + "," + definitions, "1", kFew).outcome, Outcome::kUnenforceable) << around;
  }
  EXPECT_EQ(Judge("{\"contains\":" + stops + "," + definitions, "[1]", kFew).outcome, Outcome::kUnenforceable);
  EXPECT_EQ(Judge("{\"not\":{\"contains\":" + stops + "}," + definitions, "[1]", kFew).outcome,
            Outcome::kUnenforceable);
  EXPECT_EQ(Judge("{\"propertyNames\":" + stops + "," + definitions, "{\"a\":1}", kFew).outcome,
            Outcome::kUnenforceable);
  EXPECT_EQ(Judge("{\"dependencies\":{\"a\":" + stops + "}," + definitions, "{\"a\":1}", kFew).outcome,
            Outcome::kUnenforceable);
}

TEST(BoundsTest, StepsAreAParameterAndTheirLastOneCounts) {
  const auto schema = S(R"({"allOf":[true,true,true]})");
  const auto value = json::Parse("1");
  EXPECT_EQ(schema->Validate(*value, 4).outcome, Outcome::kOk);
  EXPECT_EQ(schema->Validate(*value, 3).outcome, Outcome::kUnenforceable);
  EXPECT_EQ(schema->Validate(*value, 0).outcome, Outcome::kUnenforceable);
}

TEST(BoundsTest, FullSizedArgumentsAreJudgedWithinTheSteps) {
  std::string array = "[0";
  for (int i = 1; array.size() < 256 * 1024 - 10; ++i) array += "," + std::to_string(i);
  array += "]";
  EXPECT_EQ(
      Judge(R"({"uniqueItems":true,"items":{"type":"integer","minimum":0,"multipleOf":1,"not":{"const":-1}}})", array)
          .outcome,
      Outcome::kOk);
  const std::string text = "\"" + std::string(256 * 1024 - 2, 'a') + "\"";
  EXPECT_EQ(Judge(R"({"pattern":"^[a-z ]*$","minLength":262142,"maxLength":262142})", text).outcome, Outcome::kOk);
  EXPECT_EQ(Judge(R"({"pattern":"(a+)+$"})", text).outcome, Outcome::kOk);
  EXPECT_EQ(Judge(R"({"pattern":"^(a|aa)+b$"})", text).outcome, Outcome::kViolated);
  std::string object = "{\"k0\":0";
  for (int i = 1; object.size() < 256 * 1024 - 20; ++i)
    object += ",\"k" + std::to_string(i) + "\":" + std::to_string(i);
  object += "}";
  EXPECT_EQ(Judge(R"({"patternProperties":{"^k[0-9]+$":{"type":"integer"}},"additionalProperties":false,
                      "propertyNames":{"maxLength":8}})",
                  object)
                .outcome,
            Outcome::kOk);
}

TEST(BoundsTest, APatternThatOutgrowsItsAutomatonIsUnenforceableOnLongTexts) {
  std::string text = "\"";
  for (uint32_t x = 1; text.size() < 256 * 1024 - 2;) {
    x = x * 1664525 + 1013904223;
    text += x >> 31 ? 'a' : 'b';
  }
  text += "\"";
  EXPECT_EQ(Judge(R"({"pattern":"[ab]*a[ab]{1000}c"})", text).outcome, Outcome::kUnenforceable);
  EXPECT_EQ(Judge(R"({"pattern":"[ab]*a[ab]{1000}c"})", text.substr(0, 2000) + "\"").outcome, Outcome::kViolated);
}

TEST(BoundsTest, LongNumbersAreJudged) {
  const std::string digits(200'000, '7');
  EXPECT_EQ(Judge(R"({"multipleOf":7})", digits).outcome, Outcome::kOk);
  EXPECT_EQ(Judge(R"({"multipleOf":7})", digits + "1").outcome, Outcome::kViolated);
  EXPECT_EQ(Judge(R"({"maximum":7})", "0." + digits).outcome, Outcome::kOk);
  EXPECT_EQ(Judge(R"({"multipleOf":0.123456789012345678})", "1e999999999999999").outcome, Outcome::kViolated);
}

TEST(BoundsTest, DepthOfInstanceTimesReferencesIsBounded) {
  // Thirty schemas in place at every level.
  std::string schema = R"({"$ref":"#/definitions/0","definitions":{)";
  for (int i = 0; i < 30; ++i) {
    schema += "\"" + std::to_string(i) + "\":{\"$ref\":\"#/definitions/" + std::to_string(i + 1) + "\"},";
  }
  schema += R"("30":{"items":{"$ref":"#"}}}})";
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(Judge(schema, nested(20)).outcome, Outcome::kOk);
  const Result deep = Judge(schema, nested(64));
  EXPECT_EQ(deep.outcome, Outcome::kUnenforceable);
  EXPECT_THAT(deep.sentence, testing::HasSubstr("too deeply"));
  const auto very_deep = json::Parse(nested(json::kDepthMax), {.depth_max = json::kDepthMax});
  EXPECT_EQ(S(R"({"items":{"$ref":"#"}})")->Validate(*very_deep).outcome, Outcome::kUnenforceable);
}

}  // namespace
}  // namespace tally::schema
