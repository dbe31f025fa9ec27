// Era 2026-07-28 on the same endpoint: no session, headers that repeat the body, closing the stream cancels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/gateway/modern_client.h"

namespace tally::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

class ModernTest : public ::testing::Test {
 protected:
  ModernTest() : permit_(MintFor({"led__append"})), client_(gateway_.port(), permit_.permit_token()) {}

  HttpAnswer Ask(const std::string& method, const Json& params, const std::map<std::string, std::string>& changed = {},
                 int hang_up_after_ms = 0) {
    return client_.Ask(method, params, changed, hang_up_after_ms);
  }

  TestGateway gateway_;
  const v1::MintResponse permit_;
  const ModernClient client_;
};

TEST_F(ModernTest, DiscoverSaysWhatIsSpokenWithoutASession) {
  const HttpAnswer answer = Ask("server/discover", Json::object());
  const Json result = answer.answer()["result"];
  EXPECT_THAT(result["supportedVersions"], Contains("2026-07-28")) << answer.body;
  EXPECT_EQ(result["resultType"], "complete");
  EXPECT_FALSE(answer.headers.contains("mcp-session-id"));
}

TEST_F(ModernTest, WhatIsConnectedIsNotWaitedFor) {
  Ask("server/discover", Json::object());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Ask("server/discover", Json::object()).status, 200);
  // A wait for what has happened already would last a quarter of a minute.
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST_F(ModernTest, DiscoverSaysWhoAnswersInItsMeta) {
  const Json result = Ask("server/discover", Json::object()).answer()["result"];
  EXPECT_EQ(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tally-gateway") << result;
}

TEST_F(ModernTest, MethodsOfTheEraBeforeAndUnknownOnesAreNotFound) {
  for (const char* method : {"initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"}) {
    const HttpAnswer answer = Ask(method, Json::object());
    EXPECT_EQ(answer.status, 404) << method;
    EXPECT_EQ(answer.answer()["error"]["code"], -32601) << answer.body;
    EXPECT_EQ(answer.answer()["id"], 1) << answer.body;
  }
}

TEST_F(ModernTest, ListsAreForTheOneWhoAskedAndForAWhile) {
  const Json result = Ask("tools/list", Json::object()).answer()["result"];
  EXPECT_EQ(result["cacheScope"], "private");
  EXPECT_GT(result["ttlMs"], 0);
  EXPECT_EQ(result["tools"][0]["name"], "led__append");
}

TEST_F(ModernTest, ACallIsCarriedOutOnceAndRepeatedFromTheRecord) {
  const Json params = {{"name", "led__append"}, {"arguments", {{"text", "one"}}}};
  const Json first = Ask("tools/call", params).answer()["result"];
  EXPECT_EQ(TextOf(first), "done: one") << first;
  EXPECT_EQ(first["resultType"], "complete");
  EXPECT_EQ(TextOf(Ask("tools/call", params).answer()["result"]), "done: one");
  EXPECT_THAT(gateway_.Effects(), ElementsAre("one"));
}

TEST_F(ModernTest, HeadersThatSayAnythingElseThanTheBodyAreRefusedAndNothingIsSent) {
  const Json params = {{"name", "led__append"}, {"arguments", {{"text", "one"}}}};
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"Mcp-Method", "tools/list"}, {"Mcp-Name", "led__other"}, {"MCP-Protocol-Version", "2025-11-25"}}) {
    const HttpAnswer answer = Ask("tools/call", params, {{name, value}});
    EXPECT_EQ(answer.status, 400) << name;
    EXPECT_EQ(answer.answer()["error"]["code"], -32020) << answer.body;
  }
  EXPECT_TRUE(gateway_.Effects().empty());
}

TEST_F(ModernTest, ClosingTheStreamOfAWriteChangesNothingUpstreamAndTheAnswerIsKept) {
  const Json params = {{"name", "led__append"}, {"arguments", {{"text", "one"}, {"then", "sleep"}, {"seconds", 2}}}};
  Ask("tools/call", params, {}, 500);
  ASSERT_TRUE(Eventually([&] { return !gateway_.Effects().empty(); }));
  EXPECT_TRUE(Eventually([&] { return TextOf(Ask("tools/call", params).answer()["result"]) == "done: one"; }));
  EXPECT_THAT(gateway_.Effects(), ElementsAre("one"));
}

TEST_F(ModernTest, WithoutTallydACallIsRefusedInWordsForTheModel) {
  TheFleet().replica(0).Stop();
  const Json result =
      Ask("tools/call", {{"name", "led__append"}, {"arguments", {{"text", "away"}}}}).answer()["result"];
  TheFleet().replica(0).Start();
  EXPECT_EQ(result["isError"], true) << result;
  EXPECT_EQ(result["resultType"], "complete");
  EXPECT_EQ(result["_meta"]["dev.tallystick/error"]["code"], "AUTHORITY_DOWN");
  EXPECT_THAT(TextOf(result), ::testing::StartsWith("unavailable: "));
  EXPECT_THAT(gateway_.Effects(), ElementsAre());
}

}  // namespace
}  // namespace tally::test
