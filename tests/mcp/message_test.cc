#include "gateway/mcp/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"

namespace tally::mcp {
namespace {

using testing::HasSubstr;
using Kind = Message::Kind;

constexpr size_t kBytesMax = 1 << 20;

Message Good(std::string_view text, From from = From::kClient) {
  auto parsed = ParseMessage(text, from, kBytesMax);
  if (const auto* bad = std::get_if<Malformed>(&parsed)) ADD_FAILURE() << text << ": " << bad->message;
  const auto* message = std::get_if<Message>(&parsed);
  return message == nullptr ? Message() : *message;
}

Malformed Bad(std::string_view text, From from = From::kClient) {
  auto parsed = ParseMessage(text, from, kBytesMax);
  const auto* bad = std::get_if<Malformed>(&parsed);
  if (bad == nullptr) ADD_FAILURE() << "was taken: " << text;
  return bad == nullptr ? Malformed() : *bad;
}

TEST(MessageTest, EachKindIsReadWithItsPartsRaw) {
  const Message request =
      Good(R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{ "n" : 12345678901234567890.10 }})");
  EXPECT_EQ(request.kind, Kind::kRequest);
  EXPECT_EQ(request.id, "7");
  EXPECT_EQ(request.method, "tools/call");
  EXPECT_EQ(request.params, "{ \"n\" : 12345678901234567890.10 }");

  const Message notification = Good(R"( {"method":"notifications/initialized","jsonrpc":"2.0"} )");
  EXPECT_EQ(notification.kind, Kind::kNotification);
  EXPECT_EQ(notification.id, "");
  EXPECT_EQ(notification.params, "");

  const Message result = Good(R"({"jsonrpc":"2.0","id":"a\u0041","result":{"x":[1, 2]}})");
  EXPECT_EQ(result.kind, Kind::kResult);
  EXPECT_EQ(result.id, "\"a\\u0041\"");
  EXPECT_EQ(result.result, "{\"x\":[1, 2]}");

  const Message error = Good(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no","data":{"b": 1}}})");
  EXPECT_EQ(error.kind, Kind::kError);
  EXPECT_EQ(error.error.code, -32603);
  EXPECT_EQ(error.error.message, "no");
  EXPECT_EQ(error.error.data, "{\"b\": 1}");
}

TEST(MessageTest, OnlyStringsAndIntegersAreIds) {
  for (const char* id : {"0", "-1", "7", "123456789012345678901234567890", "\"\"", "\"x\"", "\"\\u0000\""}) {
    EXPECT_EQ(Good(std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"method":"m"})").id, id);
  }
  for (const char* id : {"null", "1.0", "1.5", "1e3", "true", "false", "{}", "[]", "[1]", "{\"a\":1}"}) {
    for (From from : {From::kClient, From::kUpstream}) {
      const Malformed bad = Bad(std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"method":"m"})", from);
      EXPECT_EQ(bad.code, code::kInvalidRequest) << id;
      EXPECT_EQ(bad.id, "null") << id;
    }
  }
  EXPECT_EQ(Bad(R"({"jsonrpc":"2.0","id":")" + std::string(2000, 'a') + R"(","method":"m"})").id, "null");
}

TEST(MessageTest, AnErrorMayAnswerNoRequestInParticularAndAResultMayNot) {
  for (const char* id : {"", R"("id":null,)"}) {
    const Message error = Good(std::string(R"({"jsonrpc":"2.0",)") + id + R"("error":{"code":-32700,"message":"?"}})");
    EXPECT_EQ(error.kind, Kind::kError);
    EXPECT_EQ(error.id, "null");
    EXPECT_EQ(Bad(std::string(R"({"jsonrpc":"2.0",)") + id + R"("result":{}})").code, code::kInvalidRequest);
  }
}

TEST(MessageTest, BatchesAreRefusedByName) {
  for (const char* text : {"[]", R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", " [1, 2]", "["}) {
    for (From from : {From::kClient, From::kUpstream}) {
      const Malformed bad = Bad(text, from);
      EXPECT_EQ(bad.code, code::kInvalidRequest);
      EXPECT_THAT(bad.message, HasSubstr("Batches are not taken"));
      EXPECT_THAT(bad.message, HasSubstr("Nothing was done."));
    }
  }
}

TEST(MessageTest, MembersThatDifferOnlyByCaseAreRefusedAnywhereInAClientsMessage) {
  for (
      const char* text : {
          R"({"jsonrpc":"2.0","id":1,"ID":2,"method":"m"})",
          R"({"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping"})",
          R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Name":"b"}})",
          R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"amount":1,"Amount":2}}})",
          R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"arguments":{"a":[{"k":1,"\u212A":2}]}}})",
          R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"s":1,"\u017F":2}})",
          R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"x":{"ß":1,"SS":2}}}})",
          R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","Action":"decline"}})",
      }) {
    const Malformed bad = Bad(text);
    EXPECT_EQ(bad.code, code::kInvalidRequest) << text;
    EXPECT_THAT(bad.message, HasSubstr("differs only by case")) << text;
    EXPECT_EQ(bad.id, std::string_view(text).find("\"ID\"") == std::string_view::npos ? "1" : "null");
  }
}

TEST(MessageTest, WhatIsJsonAndYetRefusedIsAnsweredUnderItsIdIfThatIsOne) {
  const auto id_of = [](std::string_view head) {
    return Bad("{\"jsonrpc\":\"2.0\"," + std::string(head) + R"("method":"m","params":{"a":1,"A":2}})").id;
  };
  EXPECT_EQ(id_of(R"("id":"x",)"), "\"x\"");
  EXPECT_EQ(id_of(R"("ID":1,)"), "null");
  EXPECT_EQ(id_of(R"("id":1,"Id":2,)"), "null");
  EXPECT_EQ(id_of(R"("id":1.5,)"), "null");
  EXPECT_EQ(id_of(""), "null");
}

TEST(MessageTest, EqualMembersAreRefusedFromBothSides) {
  EXPECT_THAT(Bad(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"m"})").message, HasSubstr("same name"));
  EXPECT_THAT(Bad(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":{"b":1,"b":1}}})").message,
              HasSubstr("same name"));
  Bad(R"({"jsonrpc":"2.0","id":1,"id":1,"result":{}})", From::kUpstream);
  const Malformed bad = Bad(R"({"jsonrpc":"2.0","id":1,"result":{"isError":true,"isError":false}})", From::kUpstream);
  EXPECT_EQ(bad.id, "1") << "so that its call is answered at once";
}

TEST(MessageTest, UpstreamsMaySayWhatClientsMayNot) {
  const char* result = R"({"jsonrpc":"2.0","id":1,"result":{"a":{"k":1,"K":2},"b":{"x":1,"x":2},"c":"\ud83d"}})";
  EXPECT_EQ(Good(result, From::kUpstream).kind, Kind::kResult);
  Bad(result, From::kClient);
  EXPECT_EQ(Good(R"({"jsonrpc":"2.0","method":"n","params":null})", From::kUpstream).params, "");
  Bad(R"({"jsonrpc":"2.0","method":"n","params":null})", From::kClient);
}

TEST(MessageTest, WhatIsNoMessageIsRefusedAndNothingOfItRepeated) {
  struct Case {
    const char* text;
    int64_t code;
    const char* id;
  };
  for (const Case& c : {
           Case{"", code::kParseError, "null"},
           Case{"   ", code::kParseError, "null"},
           Case{"sesame", code::kParseError, "null"},
           Case{"{\"jsonrpc\":\"2.0\"", code::kParseError, "null"},
           Case{"\"sesame\"", code::kInvalidRequest, "null"},
           Case{"1", code::kInvalidRequest, "null"},
           Case{"null", code::kInvalidRequest, "null"},
           Case{R"({"jsonrpc":"2.0"})", code::kInvalidRequest, "null"},
           Case{R"({"id":1,"method":"sesame"})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"1.0","id":1,"method":"sesame"})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":2.0,"id":1,"method":"sesame"})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":"x","method":5})", code::kInvalidRequest, "\"x\""},
           Case{R"({"jsonrpc":"2.0","id":1,"method":""})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"Method":"m"})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"method":"m","params":[1]})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"method":"m","params":"sesame"})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"method":"m","result":{}})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"result":null})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"result":"sesame"})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"error":"sesame"})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"error":{}})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}})", code::kInvalidRequest, "1"},
           Case{R"({"jsonrpc":"2.0","id":1,"error":{"code":1}})", code::kInvalidRequest, "1"},
       }) {
    for (From from : {From::kClient, From::kUpstream}) {
      const Malformed bad = Bad(c.text, from);
      EXPECT_EQ(bad.code, c.code) << c.text;
      EXPECT_EQ(bad.id, c.id) << c.text;
      EXPECT_THAT(bad.message, testing::Not(HasSubstr("sesame")));
      EXPECT_THAT(bad.message, HasSubstr("Nothing was done."));
    }
  }
}

TEST(MessageTest, SizeAndDepthAreBoundedBeforeAnythingElse) {
  const auto parsed = ParseMessage(std::string(1001, '['), From::kClient, 1000);
  EXPECT_THAT(std::get<Malformed>(parsed).message, HasSubstr("1001 bytes"));
  const auto with_arguments = [](int levels) {
    std::string nested;
    for (int i = 0; i < levels; ++i) nested += "{\"a\":";
    return R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":)" + nested + "1" +
           std::string(static_cast<size_t>(levels), '}') + "}}";
  };
  Good(with_arguments(64));
  EXPECT_THAT(Bad(with_arguments(65)).message, HasSubstr("nested"));
}

TEST(MessageTest, WrittenMessagesAreReadAgainAsTheyWere) {
  const Message request = Good(RequestText("\"x\"", "a\"b", "{\"n\": 1e400}"));
  EXPECT_EQ(request.method, "a\"b");
  EXPECT_EQ(request.params, "{\"n\": 1e400}");
  EXPECT_EQ(Good(RequestText("1", "ping", "")).params, "");
  EXPECT_EQ(Good(NotificationText("n", "{}")).kind, Kind::kNotification);
  EXPECT_EQ(Good(ResultText("-5", "{\"a\":1}")).result, "{\"a\":1}");
  const Message error = Good(ErrorText("1", {-32001, "why\n\"", "[1]"}));
  EXPECT_EQ(error.error.message, "why\n\"");
  EXPECT_EQ(error.error.data, "[1]");
  EXPECT_EQ(ErrorText("null", {1, "m", ""}), R"({"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}})");
  EXPECT_EQ(ErrorText("", {1, "m", ""}), R"({"jsonrpc":"2.0","error":{"code":1,"message":"m"}})");
}

TEST(MessageTest, AnIdIsTheSameHoweverItIsWritten) {
  EXPECT_EQ(IdKey("\"a\""), IdKey("\"\\u0061\""));
  EXPECT_EQ(IdKey("-0"), IdKey("0"));
  EXPECT_NE(IdKey("7"), IdKey("\"7\""));
  EXPECT_NE(IdKey("\"n7\""), IdKey("7"));
}

}  // namespace
}  // namespace tally::mcp
