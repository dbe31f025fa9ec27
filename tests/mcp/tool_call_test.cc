#include "gateway/mcp/tool_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "gateway/mcp/protocol.h"

namespace tally::mcp {
namespace {

using testing::HasSubstr;

using Headers = std::vector<std::string>;

ToolCall Good(std::string_view params, const Headers& headers = {}) {
  auto parsed = ParseToolCall(params, headers);
  if (const auto* error = std::get_if<RpcError>(&parsed)) ADD_FAILURE() << params << ": " << error->message;
  const auto* call = std::get_if<ToolCall>(&parsed);
  return call == nullptr ? ToolCall() : *call;
}

std::string Bad(std::string_view params, const Headers& headers = {}) {
  auto parsed = ParseToolCall(params, headers);
  const auto* error = std::get_if<RpcError>(&parsed);
  if (error == nullptr) ADD_FAILURE() << "was taken: " << params;
  if (error == nullptr) return "";
  EXPECT_EQ(error->code, code::kInvalidParams);
  EXPECT_THAT(error->message, HasSubstr("Nothing was done."));
  return error->message;
}

TEST(ToolCallTest, ArgumentsAndUnknownMetaAreTakenRaw) {
  const ToolCall call =
      Good(R"({"name":"a__b","arguments":{ "id": 9007199254740993, "x":1.0 },)"
           R"("_meta":{"progressToken":5, "com.example/x":{"big": 1e99} ,"dev.tallystick/repeat":true,)"
           R"("traceparent":"00-1-2-01","io.modelcontextprotocol/clientInfo":{}}})");
  EXPECT_EQ(call.name, "a__b");
  EXPECT_EQ(call.arguments, "{ \"id\": 9007199254740993, \"x\":1.0 }");
  EXPECT_EQ(call.meta, R"({"com.example/x":{"big": 1e99},"traceparent":"00-1-2-01"})");
  EXPECT_EQ(call.progress_token, "5");
  EXPECT_TRUE(call.repeat);
  EXPECT_EQ(call.key, std::nullopt);
}

TEST(ToolCallTest, AbsentStaysAbsent) {
  const ToolCall call = Good(R"({"name":"t"})");
  EXPECT_EQ(call.arguments, "");
  EXPECT_EQ(call.meta, "");
  EXPECT_EQ(call.amount, std::nullopt);
  EXPECT_FALSE(call.repeat);
  EXPECT_EQ(Good(R"({"name":"t","_meta":{"progressToken":"x"}})").meta, "");
  EXPECT_EQ(Good(R"({"name":"t","_meta":{}})").meta, "");
}

TEST(ToolCallTest, TheKeyIsTakenFromEachPlace) {
  EXPECT_EQ(Good(R"({"name":"t","_meta":{"dev.tallystick/idempotency-key":"k"}})").key, "k");
  EXPECT_EQ(Good(R"({"name":"t","idempotencyKey":"k"})").key, "k");
  EXPECT_EQ(Good(R"({"name":"t"})", {"k"}).key, "k");
  EXPECT_EQ(Good(R"({"name":"t"})", {"\"k\\\"\\\\\""}).key, "k\"\\");
  EXPECT_EQ(
      Good(R"({"name":"t","idempotencyKey":"\u006b","_meta":{"dev.tallystick/idempotency-key":"k"}})", {"k", "\"k\""})
          .key,
      "k");
}

TEST(ToolCallTest, TwoKeysThatDifferAreRefusedWhereverTheyStand) {
  const char* meta = R"({"name":"t","_meta":{"dev.tallystick/idempotency-key":"a"}})";
  EXPECT_THAT(Bad(meta, {"b"}), HasSubstr("differ"));
  EXPECT_THAT(Bad(R"({"name":"t","idempotencyKey":"b","_meta":{"dev.tallystick/idempotency-key":"a"}})"),
              HasSubstr("differ"));
  EXPECT_THAT(Bad(R"({"name":"t","idempotencyKey":"a"})", {"b"}), HasSubstr("differ"));
  EXPECT_THAT(Bad(R"({"name":"t"})", {"a", "b"}), HasSubstr("differ"));
  EXPECT_THAT(Bad(R"({"name":"t","idempotencyKey":"a"})", {"A"}), HasSubstr("differ"));
}

TEST(ToolCallTest, AKeyIsAStringOfOneTo255BytesWithoutControlCharacters) {
  Good(R"({"name":"t","idempotencyKey":")" + std::string(255, 'k') + "\"}");
  Good(R"({"name":"t","idempotencyKey":"\u00e9 \ud83d\ude00"})");
  for (const std::string& key :
       {std::string("\"\""), "\"" + std::string(256, 'k') + "\"", std::string("1"), std::string("null"),
        std::string(R"("a\u0000")"), std::string(R"("\n")"), std::string(R"("\u007f")"), std::string("{}")}) {
    Bad(R"({"name":"t","idempotencyKey":)" + key + "}");
    Bad(R"({"name":"t","_meta":{"dev.tallystick/idempotency-key":)" + key + "}}");
  }
  for (const char* header : {"", "\"", "\"\"", "\"a", "\"a\\b\"", "\"a\"b\"", "\xff", "a\tb"})
    Bad(R"({"name":"t"})", {header});
}

TEST(ToolCallTest, OurOtherMembersAreReadStrictly) {
  const ToolCall call =
      Good(R"({"name":"t","_meta":{"dev.tallystick/amount":1200,"dev.tallystick/intent":"order 7"}})");
  EXPECT_EQ(call.amount, 1200);
  EXPECT_EQ(call.intent, "order 7");
  for (const char* meta :
       {R"("dev.tallystick/repeat":1)", R"("dev.tallystick/repeat":"true")", R"("dev.tallystick/amount":-1)",
        R"("dev.tallystick/amount":1.5)", R"("dev.tallystick/amount":"12")", R"("dev.tallystick/intent":"")",
        R"("dev.tallystick/intent":7)"}) {
    Bad(std::string(R"({"name":"t","_meta":{)") + meta + "}}");
  }
}

TEST(ToolCallTest, FormsThatMcpDoesNotHaveAreRefused) {
  for (const char* params :
       {"", "{}", R"({"name":7})", R"({"name":null})", R"({"Name":"t"})", R"({"name":"t","arguments":null})",
        R"({"name":"t","arguments":[]})", R"({"name":"t","arguments":"{}"})", R"({"name":"t","_meta":null})",
        R"({"name":"t","_meta":[]})"}) {
    Bad(params);
  }
}

TEST(ToolCallTest, ArgumentsHaveALimit) {
  const auto with = [](size_t bytes) {
    return R"({"name":"t","arguments":{"a":")" + std::string(bytes - 8, 'x') + "\"}}";
  };
  EXPECT_EQ(Good(with(kArgumentsBytesMax)).arguments.size(), kArgumentsBytesMax);
  EXPECT_THAT(Bad(with(kArgumentsBytesMax + 1)), HasSubstr("262145 bytes"));
}

TEST(ToolCallTest, ManyMembersOfOursCostOnePass) {
  std::string meta = "{";
  for (int i = 0; i < 50'000; ++i) meta += "\"dev.tallystick/x" + std::to_string(i) + "\":0, ";
  EXPECT_EQ(MetaToForward(meta + "\"a\":1 }"), "{\"a\":1 }");
  EXPECT_EQ(MetaToForward(meta + "\"progressToken\":1}"), "");
  EXPECT_EQ(MetaToForward(R"({"a":1 , "progressToken":1 ,"io.modelcontextprotocol/x":2 })"),
            R"({"a":1 ,"io.modelcontextprotocol/x":2 })");
}

TEST(ToolCallTest, AContinuationCarriesItsState) {
  const ToolCall call = Good(R"({"name":"t","inputResponses":{"a": {}},"requestState":"s"})");
  EXPECT_EQ(call.input_responses, R"({"a": {}})");
  EXPECT_EQ(call.request_state, "\"s\"");
}

}  // namespace
}  // namespace tally::mcp
