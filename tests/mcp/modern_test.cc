#include "gateway/mcp/modern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/mcp/protocol.h"

namespace tally::mcp {
namespace {

using testing::HasSubstr;

constexpr std::string_view kMeta =
    R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}})";

Message Call(std::string_view name = "pay__refund", std::string_view meta = kMeta) {
  Message message;
  message.kind = Message::Kind::kRequest;
  message.id = "1";
  message.method = "tools/call";
  message.params = std::string(R"({"name":")") + std::string(name) + R"(","_meta":)" + std::string(meta) + "}";
  return message;
}

RequestHeaders Headers() { return {"2026-07-28", "tools/call", "pay__refund"}; }

int64_t CodeOf(const std::optional<RpcError>& error) { return error ? error->code : 0; }

TEST(ModernTest, HeadersThatAgreeWithTheBodyPass) {
  EXPECT_EQ(CheckModernRequest(Call(), Headers()), std::nullopt);
  RequestHeaders encoded = Headers();
  encoded.name = "=?base64?cGF5X19yZWZ1bmQ=?=";
  EXPECT_EQ(CheckModernRequest(Call(), encoded), std::nullopt);
}

TEST(ModernTest, HeadersThatAreMissingOrDisagreeAreRefused) {
  const auto code_with = [](auto change) {
    RequestHeaders headers = Headers();
    change(headers);
    return CodeOf(CheckModernRequest(Call(), headers));
  };
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.protocol_version.reset(); }), code::kHeaderMismatch);
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.method.reset(); }), code::kHeaderMismatch);
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.name.reset(); }), code::kHeaderMismatch);
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.protocol_version = "2025-11-25"; }), code::kHeaderMismatch);
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.method = "Tools/Call"; }), code::kHeaderMismatch);
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.name = "pay__list"; }), code::kHeaderMismatch);
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.name = "=?base64?cGF5X19yZWZ1bmQ?="; }), code::kHeaderMismatch);
  EXPECT_EQ(code_with([](RequestHeaders& h) { h.name = "pay__refund\x80"; }), code::kHeaderMismatch);
}

TEST(ModernTest, ResourcesAndPromptsHaveNamesTooAndOthersNeedNone) {
  Message read = Call();
  read.method = "resources/read";
  read.params = R"({"uri":"file:///\u00e9","_meta":)" + std::string(kMeta) + "}";
  EXPECT_EQ(CheckModernRequest(read, {"2026-07-28", "resources/read", "=?base64?ZmlsZTovLy/DqQ==?="}), std::nullopt);
  EXPECT_EQ(CodeOf(CheckModernRequest(read, {"2026-07-28", "resources/read", std::nullopt})), code::kHeaderMismatch);
  Message list = Call();
  list.method = "tools/list";
  EXPECT_EQ(CheckModernRequest(list, {"2026-07-28", "tools/list", std::nullopt}), std::nullopt);
}

TEST(ModernTest, AVersionThatIsNotSpokenIsAnsweredWithThoseThatAre) {
  const Message message = Call("t", R"({"io.modelcontextprotocol/protocolVersion":"1900-01-01"})");
  const auto error = CheckModernRequest(message, {"1900-01-01", "tools/call", "t"});
  ASSERT_EQ(CodeOf(error), code::kUnsupportedVersion);
  EXPECT_EQ(error->data,
            R"({"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26"],"requested":"1900-01-01"})");
  EXPECT_EQ(CodeOf(CheckModernBody(message)), code::kUnsupportedVersion);
}

TEST(ModernTest, WhatEveryRequestMustCarryIsAskedFor) {
  const char* no_capabilities = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"})";
  EXPECT_EQ(CodeOf(CheckModernRequest(Call("pay__refund", no_capabilities), Headers())), code::kInvalidParams);
  EXPECT_EQ(CodeOf(CheckModernBody(Call("t", no_capabilities))), code::kInvalidParams);
  EXPECT_EQ(CodeOf(CheckModernRequest(Call("pay__refund", "{}"), Headers())), code::kInvalidParams);
  EXPECT_EQ(CodeOf(CheckModernBody(Call("t", R"({"io.modelcontextprotocol/protocolVersion":7})"))),
            code::kInvalidParams);
  EXPECT_EQ(CheckModernBody(Call()), std::nullopt);
}

TEST(ModernTest, TheBodyTellsTheEraAndOfInitializeTheBodyAlone) {
  EXPECT_TRUE(IsModern(Call(), {}));
  EXPECT_TRUE(IsModern(Call("t", R"({"io.modelcontextprotocol/protocolVersion":7})"), {}));
  EXPECT_TRUE(IsModern(Call("t", "{}"), {"2026-07-28", std::nullopt, std::nullopt}));
  EXPECT_FALSE(IsModern(Call("t", "{}"), {"2025-11-25", std::nullopt, std::nullopt}));
  EXPECT_FALSE(IsModern(Call("t", "{}"), {}));
  Message initialize = Call();
  initialize.method = "initialize";
  EXPECT_TRUE(IsModern(initialize, Headers()));
  initialize.params = "{}";
  EXPECT_FALSE(IsModern(initialize, Headers()));
}

TEST(ModernTest, WhatGoesUpstreamSaysWhatEveryRequestMustAndKeepsTheRestAsItIs) {
  const std::string alone = WithEraMeta("");
  EXPECT_NE(alone.find(R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")"), std::string::npos) << alone;
  EXPECT_NE(alone.find(R"("io.modelcontextprotocol/clientCapabilities":{})"), std::string::npos) << alone;
  EXPECT_NE(alone.find(R"("io.modelcontextprotocol/clientInfo":{"name":"tally-gateway")"), std::string::npos) << alone;
  const std::string own =
      R"({"uri": "a:b","big":12345678901234567890,"_meta":{"x/y":1.50,"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}})";
  const std::string kept = WithEraMeta(own);
  EXPECT_TRUE(kept.starts_with(R"({"uri": "a:b","big":12345678901234567890,)")) << kept;
  EXPECT_NE(kept.find(R"("x/y":1.50)"), std::string::npos) << kept;
  EXPECT_NE(kept.find(R"("io.modelcontextprotocol/clientCapabilities":{"roots":{}})"), std::string::npos) << kept;
  EXPECT_NE(WithEraMeta(own, R"({"sampling":{}})").find(R"(clientCapabilities":{"sampling":{}})"), std::string::npos);
}

TEST(ModernTest, NotificationsNeedNoHeadersButThoseTheyHaveMustAgree) {
  Message message;
  message.method = "notifications/cancelled";
  EXPECT_EQ(CheckModernRequest(message, {"2026-07-28", std::nullopt, std::nullopt}), std::nullopt);
  EXPECT_EQ(CodeOf(CheckModernRequest(message, {"2026-07-28", "tools/call", std::nullopt})), code::kHeaderMismatch);
}

TEST(ModernTest, HeaderValuesAreCodedAsTheSpecificationShows) {
  // The specification's own examples.
  for (const auto& [value, coded] : std::vector<std::pair<std::string, std::string>>{
           {"us-west1", "us-west1"},
           {"Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
           {" padded ", "=?base64?IHBhZGRlZCA=?="},
           {"line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
           {"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}}) {
    EXPECT_EQ(EncodeHeaderValue(value), coded);
    EXPECT_EQ(DecodeHeaderValue(coded), value);
  }
  EXPECT_EQ(DecodeHeaderValue("=?BASE64?eA==?="), "=?BASE64?eA==?=") << "the markers are case-sensitive";
  EXPECT_EQ(DecodeHeaderValue("=?base64?"), "=?base64?");
  EXPECT_EQ(DecodeHeaderValue("=?base64?=?="), std::nullopt);
  EXPECT_EQ(DecodeHeaderValue("a\nb"), std::nullopt);
}

}  // namespace
}  // namespace tally::mcp
