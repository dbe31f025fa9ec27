#include "gateway/mcp/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "gateway/mcp/error_words.h"
#include "gateway/mcp/refusal.h"

namespace tally::mcp {
namespace {

using testing::HasSubstr;
using How = Reply::How;

Meaning OfResult(std::string_view result, const ErrorRules& rules = {}) {
  Reply reply;
  reply.how = How::kResult;
  reply.result = result;
  return Judge(reply, rules);
}

std::string ErrorResult(std::string_view text) {
  return R"({"content":[{"type":"text","text":)" + Quote(text) + R"(}],"isError":true})";
}

Meaning OfWords(std::string_view text, const ErrorRules& rules = {}) { return OfResult(ErrorResult(text), rules); }

Meaning OfCode(int64_t code, std::string_view data = "", const ErrorRules& rules = {}) {
  Reply reply;
  reply.how = How::kRpcError;
  reply.error = {code, "why", std::string(data)};
  return Judge(reply, rules);
}

Meaning OfStatus(int status, bool session_ended = false) {
  Reply reply;
  reply.how = How::kHttpStatus;
  reply.http_status = status;
  reply.session_ended = session_ended;
  return Judge(reply, {});
}

TEST(JudgeTest, AnAnswerWithContentIsASuccess) {
  for (const char* result : {
           R"({"content":[]})",
           R"({"content":[{"type":"text","text":"internal error"}]})",
           R"({"content":[{"type":"text","text":"ok"}],"isError":false})",
           R"({"structuredContent":{"a":1}})",
           R"({"resultType":"complete","content":[]})",
       }) {
    EXPECT_EQ(OfResult(result), Meaning::kSucceeded) << result;
  }
}

TEST(JudgeTest, WhatIsNoWholeAnswerIsUncertain) {
  for (const char* result : {
           "",
           "{",
           "null",
           "[]",
           "\"ok\"",
           "{}",
           R"({"task":{"taskId":"1"}})",
           R"({"content":null})",
           R"({"content":"ok"})",
           R"({"content":[],"isError":"false"})",
           R"({"content":[],"isError":null})",
           R"({"content":[],"isError":1})",
           R"({"content":[],"isError":false,"isError":true})",
           R"({"resultType":"input_required","content":[]})",
           R"({"resultType":"task","content":[]})",
           R"({"resultType":7,"content":[]})",
           R"({"isError":true})",
           R"({"content":[{"type":"text","text":"cut)",
       }) {
    EXPECT_EQ(OfResult(result), Meaning::kUncertain) << result;
  }
  for (How how : {How::kNothing, How::kGarbage}) {
    Reply reply;
    reply.how = how;
    EXPECT_EQ(Judge(reply, {}), Meaning::kUncertain);
  }
  EXPECT_EQ(Judge(Reply(), {}), Meaning::kUncertain) << "what nobody filled in";
}

TEST(JudgeTest, JsonRpcErrorsHaveNoEffectOnlyWhereTheySayThatNothingBegan) {
  for (int64_t code : {-32700, -32600, -32601, -32602}) EXPECT_EQ(OfCode(code), Meaning::kNoEffect) << code;
  for (int64_t code :
       {-32603, -32000, -32001, -32003, -32004, -32005, -32006, -32020, -32042, -32800, 0, 1, 404, 500}) {
    EXPECT_EQ(OfCode(code), Meaning::kUncertain) << code;
  }
}

TEST(JudgeTest, HttpStatusesHaveNoEffectOnlyWhereTheySayThatNothingBegan) {
  for (int status = 100; status < 600; ++status) {
    const bool listed = status == 400 || status == 401 || status == 403 || status == 405 || status == 406 ||
                        status == 413 || status == 415 || status == 422 || status == 429;
    EXPECT_EQ(OfStatus(status), listed ? Meaning::kNoEffect : Meaning::kUncertain) << status;
  }
  EXPECT_EQ(OfStatus(404, true), Meaning::kNoEffect);
  EXPECT_EQ(OfStatus(500, true), Meaning::kUncertain);
  EXPECT_EQ(OfStatus(408, true), Meaning::kUncertain);
}

TEST(JudgeTest, AnErrorThatExplainsItselfIsAnAnswer) {
  for (const char* words : {
           "insufficient funds",
           "Customer cus_123 not found",
           "Error: ENOENT: no such file or directory, open '/tmp/x'",
           "amount must be a positive integer",
           "The item is sometimes out of stock",
           "Refunds take some time outside business hours",
           "Error executing tool pay: insufficient funds",
           "MCP error -32602: Input validation error: amount is required",
           "Error calling tool 'pay': card declined",
           "Refund refused: charge ch_5021 has already been refunded",
           "Invalid arguments for tool write_file",
           "order 15023 is closed",
           "the price is $503",
           "connect ECONNREFUSED 127.0.0.1:5432",
           "denied: the permit does not grant this",
           "UNIQUE constraint failed: users.email",
           "item unavailable in blue",
       }) {
    EXPECT_EQ(OfWords(words), Meaning::kToolError) << words;
  }
}

TEST(JudgeTest, AnErrorWhoseWordsSayThatAnAnswerWasLostIsUncertain) {
  for (const char* words : {
           "Request timed out",
           "timeout of 30000ms exceeded",
           "ETIMEDOUT",
           "ESOCKETTIMEDOUT",
           "The upstream took a time-out",
           "httpx.ReadTimeout",
           "GatewayTimeoutException",
           "it times out",
           "ConnectionResetError(104)",
           "RemoteProtocolError",
           "IncompleteRead(0 bytes read)",
           "EOFError",
           "InternalServerError",
           "ServiceUnavailable",
           "BadGateway",
           "Error executing tool pay: Read timed out",
           "MCP error -32001: Request timeout",
           "context deadline exceeded",
           "Deadline was exceeded",
           "read ECONNRESET",
           "Connection reset by peer",
           "connection was closed unexpectedly",
           "the connection has been lost",
           "socket hang up",
           "write EPIPE",
           "broken pipe",
           "fetch failed",
           "TypeError: Failed to fetch",
           "Network Error",
           "network request failed",
           "premature close",
           "unexpected EOF",
           "Unexpected end of JSON input",
           "empty reply from server",
           "Server disconnected without sending a response.",
           "No response from provider",
           "aborted",
           "AbortError: aborted",
           "context canceled",
           "The operation was cancelled",
           "Request failed with status code 500",
           "HTTP 502",
           "502 Bad Gateway",
           "upstream said 503",
           "error 504",
           "(504)",
           "Service Unavailable",
           "service is temporarily unavailable",
           "14 UNAVAILABLE: io exception",
           "rpc error: code = Unknown desc = x",
           "Unexpected token < in JSON at position 0",
           "the refund may have been made",
           "could not confirm the transfer",
           "outcome unknown",
           "delivery_uncertain: the call may have been carried out",
       }) {
    EXPECT_EQ(OfWords(words), Meaning::kUncertain) << words;
  }
}

TEST(JudgeTest, AnErrorThatExplainsNothingIsUncertain) {
  for (const char* words : {"",
                            "  \n",
                            "Internal error",
                            "internal server error",
                            "MCP error -32603: Internal error",
                            "Unknown error",
                            "Unexpected error",
                            "An error occurred.",
                            "Something went wrong",
                            "Error",
                            "error:",
                            "Error: Error",
                            "Failed",
                            "Tool call failed",
                            "Tool execution failed!",
                            "null",
                            "[object Object]",
                            "Unhandled exception",
                            "Error executing tool pay: ",
                            "Error executing tool pay: None",
                            "Error calling tool 'a__b'",
                            "MCP error -32603: ",
                            "MCP error -32603",
                            "500"}) {
    EXPECT_EQ(OfWords(words), Meaning::kUncertain) << words;
  }
  EXPECT_EQ(OfResult(R"({"content":[],"isError":true})"), Meaning::kUncertain);
  EXPECT_EQ(OfResult(R"({"content":[{"type":"image","data":"","mimeType":"image/png"}],"isError":true})"),
            Meaning::kUncertain);
}

TEST(JudgeTest, WordsAreLookedForInAllTextsOfAnAnswer) {
  EXPECT_EQ(
      OfResult(
          R"({"content":[{"type":"text","text":"refund refused"},{"type":"text","text":"fetch \u0066ailed"}],"isError":true})"),
      Meaning::kUncertain);
  EXPECT_EQ(OfResult(R"({"content":[{"type":"resource","resource":{"uri":"x:","text":"timed out"}}],"isError":true})"),
            Meaning::kUncertain);
  EXPECT_EQ(OfResult(R"({"content":[],"structuredContent":{"error":"insufficient funds"},"isError":true})"),
            Meaning::kToolError);
  EXPECT_EQ(
      OfResult(
          R"({"content":[{"type":"text","text":"no"}],"structuredContent":{"error":"gateway timeout"},"isError":true})"),
      Meaning::kUncertain);
}

TEST(JudgeTest, RulesOfAToolComeFirstInTheirOrderAndMayLoosenOrTighten) {
  using enum ErrorRule::Means;
  const ErrorRule list[] = {{"insufficient", kNoEffect},
                            {"(?i)timeout must be", kError},
                            {"funds", kUncertain},
                            {"^-32000 busy$", kNoEffect},
                            {"^-32602 ", kUncertain}};
  const auto rules = ErrorRules::Compile(list);
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(OfWords("insufficient funds", *rules), Meaning::kNoEffect);
  EXPECT_EQ(OfWords("funds are low", *rules), Meaning::kUncertain);
  EXPECT_EQ(OfWords("Timeout must be a number", *rules), Meaning::kToolError);
  EXPECT_EQ(OfWords("timeout", *rules), Meaning::kUncertain);
  EXPECT_EQ(OfWords("something else", *rules), Meaning::kToolError);
  EXPECT_EQ(OfCode(-32602, "", *rules), Meaning::kUncertain);
  Reply busy;
  busy.how = How::kRpcError;
  busy.error = {-32000, "busy", ""};
  EXPECT_EQ(Judge(busy, *rules), Meaning::kNoEffect);
  EXPECT_EQ(Judge(busy, {}), Meaning::kUncertain);
  EXPECT_EQ(OfResult(R"({"content":[{"type":"text","text":"insufficient"}]})", *rules), Meaning::kSucceeded);
}

TEST(JudgeTest, TheListOfWordsCanBeExtended) {
  const std::string words[] = {"tango down"};
  const auto rules = ErrorRules::Compile({}, words);
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(OfWords("TANGO DOWN at 7", *rules), Meaning::kUncertain);
  EXPECT_EQ(OfWords("TANGO DOWN at 7"), Meaning::kToolError);
}

TEST(JudgeTest, APatternThatCannotBeRunIsRefusedByItsPlace) {
  const ErrorRule bad[] = {{"fine", {}}, {"(?=x)", {}}};
  EXPECT_THAT(std::string(ErrorRules::Compile(bad).status().message()), HasSubstr("error_rules[1]"));
  const ErrorRule empty[] = {{"", {}}};
  EXPECT_FALSE(ErrorRules::Compile(empty).ok());
  const std::string words[] = {"("};
  EXPECT_THAT(std::string(ErrorRules::Compile({}, words).status().message()), HasSubstr("uncertain_words[0]"));
}

TEST(JudgeTest, WhatAGatewayOfTheSameKindSaysIsHonoured) {
  const auto said = [](v1::Kind kind, std::string_view code) {
    return OfResult(RefusalResult(MakeRefusal(kind, code)));
  };
  const auto as_error = [](v1::Kind kind, std::string_view code) {
    const RpcError error = RefusalError(MakeRefusal(kind, code));
    return OfCode(error.code, error.data);
  };
  for (v1::Kind kind : {v1::KIND_DENIED, v1::KIND_CAP_EXCEEDED, v1::KIND_CONTENDED, v1::KIND_INVALID,
                        v1::KIND_UNAUTHORIZED, v1::KIND_READ_FAILED, v1::KIND_UNAVAILABLE}) {
    EXPECT_EQ(said(kind, ""), Meaning::kNoEffect) << v1::Kind_Name(kind);
    EXPECT_EQ(as_error(kind, ""), Meaning::kNoEffect) << v1::Kind_Name(kind);
  }
  for (v1::Kind kind : {v1::KIND_DELIVERY_UNCERTAIN, v1::KIND_CONFLICT, v1::KIND_UNSPECIFIED}) {
    EXPECT_EQ(said(kind, "NO_ANSWER"), Meaning::kUncertain) << v1::Kind_Name(kind);
    EXPECT_EQ(as_error(kind, "NO_ANSWER"), Meaning::kUncertain) << v1::Kind_Name(kind);
  }
  EXPECT_EQ(said(v1::KIND_ALREADY_DONE, ""), Meaning::kSucceeded);
}

TEST(JudgeTest, AnUncertainAnswerFromFurtherUpStaysUncertainWhateverElseIsSaid) {
  const ErrorRule loose[] = {{".", ErrorRule::Means::kNoEffect}};
  const auto rules = ErrorRules::Compile(loose);
  ASSERT_TRUE(rules.ok());
  const Refusal uncertain = MakeRefusal(v1::KIND_DELIVERY_UNCERTAIN, "NO_ANSWER");
  EXPECT_EQ(OfResult(RefusalResult(uncertain), *rules), Meaning::kUncertain);
  EXPECT_EQ(OfCode(-32602, RefusalError(uncertain).data, *rules), Meaning::kUncertain);
  EXPECT_EQ(
      OfResult(R"({"content":[],"isError":false,"_meta":{"dev.tallystick/error":{"kind":"delivery_uncertain"}}})"),
      Meaning::kUncertain);
  for (const char* odd : {"1", "null", "{}", R"({"kind":7})", R"({"kind":"new_kind"})", R"({"kind":"unavailable"})",
                          R"({"kind":"unavailable","happened":"maybe"})", R"({"kind":"denied","kind":"denied"})"}) {
    EXPECT_EQ(
        OfResult(R"({"content":[],"isError":true,"_meta":{"dev.tallystick/error":)" + std::string(odd) + "}}", *rules),
        Meaning::kUncertain)
        << odd;
  }
}

TEST(JudgeTest, WhileAnEarlierSendIsUnansweredOnlySuccessEndsIt) {
  Reply reply;
  reply.earlier_send_unanswered = true;
  reply.how = How::kRpcError;
  reply.error = {-32602, "no", ""};
  EXPECT_EQ(Judge(reply, {}), Meaning::kUncertain);
  const std::string refused = ErrorResult("insufficient funds");
  reply.how = How::kResult;
  reply.result = refused;
  EXPECT_EQ(Judge(reply, {}), Meaning::kUncertain);
  reply.result = R"({"content":[]})";
  EXPECT_EQ(Judge(reply, {}), Meaning::kSucceeded);
}

TEST(JudgeTest, TheDocumentListsEveryPattern) {
  std::ifstream file("docs/gateway-errors.md");
  std::stringstream text;
  text << file.rdbuf();
  for (std::string_view pattern : kUncertainWords)
    EXPECT_THAT(text.str(), HasSubstr("\n" + std::string(pattern) + "\n"));
}

}  // namespace
}  // namespace tally::mcp
