#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/json/parse.h"
#include "lib/schema/schema.h"

namespace tally::schema {
namespace {

Result Judge(std::string_view schema, std::string_view instance) {
  const auto document = json::Parse(schema);
  const auto value = json::Parse(instance);
  EXPECT_TRUE(document.ok()) << schema << document.status();
  EXPECT_TRUE(value.ok()) << instance << value.status();
  const auto compiled = Compile(*document);
  EXPECT_TRUE(compiled.ok()) << schema << compiled.status();
  return (*compiled)->Validate(*value);
}

// "ok", or "keyword pointer".
std::string Says(std::string_view schema, std::string_view instance) {
  const Result result = Judge(schema, instance);
  if (result.outcome == Outcome::kOk) return "ok";
  if (result.outcome == Outcome::kUnenforceable) return "unenforceable";
  EXPECT_FALSE(result.sentence.empty());
  return result.keyword + " " + result.pointer;
}

constexpr std::string_view kRefund = R"({"type":"object","required":["customer","amount"],"additionalProperties":false,
  "properties":{"customer":{"type":"string"},"amount":{"type":"integer","maximum":10000},"request_id":{"type":"string"}}})";

TEST(ValidateTest, APermitsConstraintsAreEnforced) {
  EXPECT_EQ(Says(kRefund, R"({"customer":"c","amount":10000})"), "ok");
  EXPECT_EQ(Says(kRefund, R"({"customer":"c","amount":10000.0,"request_id":"r"})"), "ok");
  EXPECT_EQ(Says(kRefund, R"({"customer":"c","amount":10001})"), "maximum /amount");
  EXPECT_EQ(Says(kRefund, R"({"customer":"c","amount":1.5})"), "type /amount");
  EXPECT_EQ(Says(kRefund, R"({"customer":"c","amount":"5"})"), "type /amount");
  EXPECT_EQ(Says(kRefund, R"({"customer":"c"})"), "required ");
  EXPECT_EQ(Says(kRefund, R"({"customer":"c","amount":1,"to/me":1})"), "additionalProperties /to~1me");
  EXPECT_EQ(Says(kRefund, "[]"), "type ");
}

TEST(ValidateTest, ViolationsSayInTheSchemasWordsWhatIsWrong) {
  const Result result = Judge(kRefund, R"({"customer":"c","amount":987654321})");
  EXPECT_EQ(result.sentence, "the number is greater than 10000");
  EXPECT_EQ(Judge(kRefund, R"({"amount":1})").sentence, "a required member is missing: customer");
  for (const char* schema : {R"({"const":1})", R"({"enum":[1,2]})", R"({"pattern":"^x"})", R"({"maxLength":3})",
                             R"({"type":"null"})", R"({"not":{}})", R"({"anyOf":[false]})", "false"}) {
    const Result refused = Judge(schema, R"("hunter2")");
    EXPECT_EQ(refused.outcome, Outcome::kViolated) << schema;
    EXPECT_EQ(refused.sentence.find("hunter2"), std::string::npos) << schema;
  }
}

TEST(ValidateTest, PointersLeadToTheViolation) {
  EXPECT_EQ(Says(R"({"items":{"properties":{"a":{"items":[true,{"type":"null"}]}}}})", R"([{},{"a":[1,2]}])"),
            "type /1/a/1");
  EXPECT_EQ(Says(R"({"allOf":[{"$ref":"#/definitions/n"}],"definitions":{"n":{"properties":{"x":{"minimum":1}}}}})",
                 R"({"x":0})"),
            "minimum /x");
  EXPECT_EQ(Says(R"({"anyOf":[{"type":"null"},{"required":["b"]}]})", R"({"a":1})"), "anyOf ");
  EXPECT_EQ(Says(R"({"propertyNames":{"maxLength":1}})", R"({"ab":1})"), "maxLength /ab");
  EXPECT_EQ(Says(R"({"if":{"required":["a"]},"then":{"required":["b"]}})", R"({"a":1})"), "required ");
}

TEST(ValidateTest, NumbersAreExactDecimals) {
  EXPECT_EQ(Says(R"({"multipleOf":0.0001})", "0.0075"), "ok");
  EXPECT_EQ(Says(R"({"multipleOf":0.0001})", "0.00751"), "multipleOf ");
  EXPECT_EQ(Says(R"({"multipleOf":0.01})", "19.99"), "ok");
  EXPECT_EQ(Says(R"({"multipleOf":0.01})", "4.35"), "ok");
  EXPECT_EQ(Says(R"({"multipleOf":0.123456789})", "1e308"), "multipleOf ");
  EXPECT_EQ(Says(R"({"multipleOf":0.5})", "1e308"), "ok");
  EXPECT_EQ(Says(R"({"type":"integer","multipleOf":7})", "7e1000000000"), "ok");
  EXPECT_EQ(Says(R"({"maximum":9007199254740992})", "9007199254740993"), "maximum ");
  EXPECT_EQ(Says(R"({"exclusiveMinimum":0.1})", "0.1000000000000000055511151231257827"), "ok");
  EXPECT_EQ(Says(R"({"maximum":1e308})", "1e309"), "maximum ");
  EXPECT_EQ(Says(R"({"minimum":1e-400})", "0"), "minimum ");
  EXPECT_EQ(Says(R"({"maximum":0})", "1e-999999999999999"), "maximum ");
  EXPECT_EQ(Says(R"({"type":"integer"})", "1e1000000000"), "ok");
  EXPECT_EQ(Says(R"({"type":"integer"})", "1e-1000000000"), "type ");
  EXPECT_EQ(Says(R"({"type":"integer"})", "100.00e-2"), "ok");
  EXPECT_EQ(Says(R"({"type":["integer","null"]})", "0.5"), "type ");
  EXPECT_EQ(Says(R"({"type":"number"})", "0.5"), "ok");
}

TEST(ValidateTest, EqualityIsByValue) {
  EXPECT_EQ(Says(R"({"const":1})", "1.0"), "ok");
  EXPECT_EQ(Says(R"({"enum":[[{"a":1,"b":100}]]})", R"([{"b":1e2,"a":1.00}])"), "ok");
  EXPECT_EQ(Says(R"({"const":0})", "false"), "const ");
  EXPECT_EQ(Says(R"({"const":9007199254740992})", "9007199254740993"), "const ");
  EXPECT_EQ(Says(R"({"uniqueItems":true})", "[1,1.0]"), "uniqueItems ");
  EXPECT_EQ(Says(R"({"uniqueItems":true})", R"([{"a":1,"b":2},{"b":2.0,"a":1}])"), "uniqueItems ");
  EXPECT_EQ(Says(R"({"uniqueItems":true})", R"([1,"1",true,[1],{"1":1},null,0,false,"",[],{}])"), "ok");
}

TEST(ValidateTest, LengthsAreInCodePoints) {
  EXPECT_EQ(Says(R"({"maxLength":2})", "\"\U0001F602\U0001F602\""), "ok");
  EXPECT_EQ(Says(R"({"minLength":2})", R"("\ud83d\ude02")"), "minLength ");
  EXPECT_EQ(Says(R"({"minLength":2})", "\"e\u0301\""), "ok");
  EXPECT_EQ(Says(R"({"maxLength":1e400})", "\"abc\""), "ok");
}

TEST(ValidateTest, RecursionThroughReferencesFollowsTheInstance) {
  constexpr std::string_view tree = R"({"$ref":"#/definitions/node","definitions":{"node":{"type":"object",
      "required":["v"],"properties":{"v":{"type":"integer"},"next":{"$ref":"#/definitions/node"}},"additionalProperties":false}}})";
  std::string good = R"({"v":0})";
  std::string bad = R"({"w":0})";
  for (int i = 0; i < 60; ++i) {
    good = R"({"v":1,"next":)" + good + "}";
    bad = R"({"v":1,"next":)" + bad + "}";
  }
  EXPECT_EQ(Says(tree, good), "ok");
  std::string pointer;
  for (int i = 0; i < 60; ++i) pointer += "/next";
  EXPECT_EQ(Says(tree, bad), "required " + pointer);
}

TEST(ValidateTest, OneSchemaServesManyThreads) {
  const auto schema = *Compile(*json::Parse(
      R"({"items":{"pattern":"^(a|b)*c$","anyOf":[{"maxLength":5},{"minLength":10}]},"uniqueItems":true})"));
  const auto good = json::Parse(R"(["abc","ababababababac","c"])");
  const auto bad = json::Parse(R"(["abc","abx"])");
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        right[t] += schema->Validate(*good).outcome == Outcome::kOk && schema->Validate(*bad).pointer == "/1";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 500));
}

}  // namespace
}  // namespace tally::schema
