// The endpoint's manners: who may speak, in which session, and what an aggregate of upstreams looks like to a client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/gateway/support.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr char kPing[] = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";

std::vector<std::string> NamesOf(const Json& items) {
  std::vector<std::string> names;
  for (const Json& item : items) names.push_back(item["name"]);
  return names;
}

class FrontTest : public ::testing::Test {
 protected:
  FrontTest() : permit_(MintFor({"led__append", "led__lo*"})), client_(gateway_.port(), permit_.permit_token()) {}

  TestGateway gateway_;
  const v1::MintResponse permit_;
  McpClient client_;
};

TEST_F(FrontTest, ToolsAreListedAsThePermitGrantsThemAndAllElseOfThemAsItCame) {
  client_.Initialize();
  const Json tools = client_.Request("tools/list")["tools"];
  EXPECT_THAT(NamesOf(tools),
              UnorderedElementsAre("led__append", "led__look", "tally__call_status", "tally__permit_status"));
  EXPECT_EQ(tools[0]["x-number"].dump(), "12345678901234567890");
}

TEST_F(FrontTest, AnUpstreamWithoutAGrantIsNotThereAtAll) {
  const auto other = MintFor({"elsewhere__x"});
  McpClient client(gateway_.port(), other.permit_token());
  client.Initialize();
  EXPECT_THAT(NamesOf(client.Request("tools/list")["tools"]),
              UnorderedElementsAre("tally__call_status", "tally__permit_status"));
  EXPECT_TRUE(client.Request("resources/read", {{"uri", "ledger://all"}}).contains("error"));
  EXPECT_TRUE(client.Request("prompts/get", {{"name", "led__greet"}}).contains("error"));
  EXPECT_EQ(KindOf(client.Call("led__append", {{"text", "x"}})), "denied");
  EXPECT_THAT(gateway_.Notes(), ElementsAre());
}

TEST_F(FrontTest, PromptsResourcesAndCompletionsFindTheirUpstream) {
  client_.Initialize();
  EXPECT_THAT(NamesOf(client_.Request("prompts/list")["prompts"]), ElementsAre("led__greet"));
  EXPECT_EQ(client_.Request("prompts/get", {{"name", "led__greet"}})["messages"][0]["content"]["text"], "greet");
  EXPECT_EQ(client_.Request("resources/list")["resources"][0]["uri"], "ledger://all");
  EXPECT_EQ(client_.Request("resources/read", {{"uri", "ledger://all"}})["contents"][0]["text"], "the ledger");
  const Json ref = {{"type", "ref/prompt"}, {"name", "led__greet"}};
  const Json asked = {{"ref", ref}, {"argument", {{"name", "a"}, {"value", "b"}}}};
  EXPECT_THAT(client_.Request("completion/complete", asked)["completion"]["values"], ElementsAre("greet"));
  EXPECT_EQ(client_.Request("logging/setLevel", {{"level", "info"}}), Json::object());
}

TEST_F(FrontTest, OurOwnToolsTellOfCallsAndOfThePermit) {
  client_.Initialize();
  client_.Call("led__append", {{"text", "one"}}, {{"dev.tallystick/idempotency-key", "k"}});
  EXPECT_THAT(TextOf(client_.Call("tally__call_status", {{"key", "k"}})), HasSubstr("SUCCEEDED"));
  EXPECT_THAT(TextOf(client_.Call("tally__permit_status", Json::object())), HasSubstr("led__append"));
  // Another permit's calls are not to be seen.
  const std::string call_id = Json::parse(TextOf(client_.Call("tally__call_status", {{"key", "k"}})))["call_id"];
  McpClient other(gateway_.port(), MintFor({"led__append"}).permit_token());
  other.Initialize();
  EXPECT_EQ(other.Call("tally__call_status", {{"call_id", call_id}})["isError"], true);
}

TEST_F(FrontTest, WithoutATokenThatIsKnownThereIsNoSession) {
  McpClient nobody(gateway_.port(), "A3Zk5Yk0h0Jr7t3o8gqj6yqkq8Jq0a8Z9yqk5o8gqj6");
  EXPECT_EQ(nobody.Initialize().status, 401);
  EXPECT_EQ(Http(gateway_.port(), "POST", {{"Content-Type", "application/json"}}, kPing).status, 401);
}

TEST_F(FrontTest, ASessionIsItsTokensAlone) {
  client_.Initialize();
  McpClient other(gateway_.port(), MintFor({"led__append"}).permit_token());
  EXPECT_EQ(other.Post(kPing, {{"Mcp-Session-Id", client_.session()}}).status, 404);
  EXPECT_EQ(client_.Post(kPing).status, 200);
}

TEST_F(FrontTest, ASessionThatWasDeletedIsGone) {
  client_.Initialize();
  EXPECT_EQ(Http(gateway_.port(), "DELETE", client_.Headers()).status, 204);
  EXPECT_EQ(client_.Post(kPing).status, 404);
}

TEST_F(FrontTest, WhatIsNotInOrderGetsTheStatusThatTheProtocolHasForIt) {
  EXPECT_EQ(client_.Post(kPing).status, 400);  // no session
  client_.Initialize();
  EXPECT_EQ(client_.Post(kPing, {{"Mcp-Session-Id", "elsewhere"}}).status, 404);
  EXPECT_EQ(client_.Post(kPing, {{"MCP-Protocol-Version", "1999-01-01"}}).status, 400);
  EXPECT_EQ(client_.Post(kPing, {{"Origin", "http://evil.example"}}).status, 403);
  EXPECT_EQ(client_.Post(kPing, {{"Host", "evil.example"}}).status, 403);
  EXPECT_EQ(client_.Post(kPing, {{"Origin", "http://localhost:1234"}}).status, 200);
  EXPECT_EQ(client_.Post(kPing, {{"Content-Type", "text/plain"}}).status, 415);
  EXPECT_EQ(client_.Post(kPing, {{"Accept", "text/html"}}).status, 406);
  EXPECT_EQ(client_.Post("[" + std::string(kPing) + "]").status, 400);
  EXPECT_EQ(client_.Post("{").answer()["error"]["code"], -32700);
  EXPECT_EQ(client_.Post(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").status, 202);
  EXPECT_EQ(client_.Post(R"({"jsonrpc":"2.0","id":8,"method":"no/such"})").answer()["error"]["code"], -32601);
  EXPECT_EQ(Http(gateway_.port(), "PUT", client_.Headers()).status, 405);
  EXPECT_EQ(Http(gateway_.port(), "GET", client_.Headers(), "", 0, "/other").status, 404);
}

TEST_F(FrontTest, AMessageOverTheLimitIsRefusedUnread) {
  client_.Initialize();
  EXPECT_EQ(client_.Post(std::string(5 << 20, ' ')).status, 413);
  EXPECT_EQ(client_.Post(kPing).status, 200);
}

TEST_F(FrontTest, ProgressComesUnderTheClientsOwnTokenBeforeTheAnswer) {
  client_.Initialize();
  const std::string body =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x","then":"sleep"},)"
      R"("_meta":{"progressToken":"mine"}}})";
  const HttpAnswer answer = client_.Post(body);
  ASSERT_EQ(answer.messages.size(), 2u) << answer.body;
  EXPECT_EQ(answer.messages[0]["params"]["progressToken"], "mine");
  EXPECT_EQ(TextOf(answer.messages[1]["result"]), "done: x");
}

TEST_F(FrontTest, AnAnswerIsTakenUpAgainByItsEventIdAfterTheConnectionBroke) {
  client_.Initialize();
  const std::string body =
      R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x","then":"sleep","seconds":2}}})";
  const HttpAnswer cut = client_.Post(body, {}, 1000);
  ASSERT_FALSE(cut.event_ids.empty()) << cut.body;
  auto headers = client_.Headers();
  headers["Last-Event-ID"] = cut.event_ids.back();
  headers["Accept"] = "text/event-stream";
  EXPECT_EQ(TextOf(Http(gateway_.port(), "GET", headers).answer()["result"]), "done: x");
  // The same id is worth nothing to another token.
  McpClient other(gateway_.port(), MintFor({"led__append"}).permit_token());
  other.Initialize();
  auto theirs = other.Headers();
  theirs["Last-Event-ID"] = cut.event_ids.back();
  EXPECT_TRUE(Http(gateway_.port(), "GET", theirs).messages.empty());
}

TEST_F(FrontTest, AnUpstreamIsToldOfWhatTheClientDeclaredAndNothingElse) {
  client_.Initialize("2025-11-25", {{"sampling", Json::object()}, {"made-up", Json::object()}});
  EXPECT_THAT(gateway_.Notes(), ElementsAre(R"(# capabilities {"sampling": {}})"));
}

TEST_F(FrontTest, ARequestOfTheUpstreamsIsAnsweredByTheClient) {
  client_.Initialize("2025-11-25", {{"sampling", Json::object()}});
  auto called = std::async(std::launch::async, [&] {
    return client_.Post(
        R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x","then":"ask"}}})");
  });
  // The question stands on the call's own stream; its id is the gateway's: 1, the session's first.
  ASSERT_TRUE(Eventually([&] { return !gateway_.Effects().empty(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(client_.Post(R"({"jsonrpc":"2.0","id":1,"result":{"model":"m","answer":42}})").status, 202);
  const HttpAnswer answer = called.get();
  ASSERT_EQ(answer.messages.size(), 2u) << answer.body;
  EXPECT_EQ(answer.messages[0]["method"], "sampling/createMessage");
  EXPECT_THAT(TextOf(answer.messages[1]["result"]), HasSubstr("42"));
}

TEST_F(FrontTest, AQuestionThatTheClientNeverDeclaredIsRefusedForIt) {
  client_.Initialize();
  const Json result = client_.Call("led__append", {{"text", "x"}, {"then", "ask"}});
  EXPECT_THAT(TextOf(result), HasSubstr("-32601"));
}

TEST_F(FrontTest, ResourceUpdatesComeOnTheGeneralStreamOfTheSessionThatSubscribed) {
  client_.Initialize();
  McpClient other(gateway_.port(), MintFor({"led__append"}).permit_token());
  other.Initialize();
  EXPECT_EQ(client_.Request("resources/subscribe", {{"uri", "ledger://all"}}), Json::object());
  const auto heard = [&](const McpClient& client) {
    auto headers = client.Headers();
    headers["Accept"] = "text/event-stream";
    return Http(gateway_.port(), "GET", headers, "", 1000).messages;
  };
  const auto mine = heard(client_);
  ASSERT_EQ(mine.size(), 1u);
  EXPECT_EQ(mine[0]["method"], "notifications/resources/updated");
  EXPECT_TRUE(heard(other).empty());
}

TEST_F(FrontTest, ACursorThatIsNotOursIsRefused) {
  client_.Initialize();
  EXPECT_EQ(client_.Request("tools/list", {{"cursor", "abc"}})["error"]["code"], -32602);
}

}  // namespace
}  // namespace tally::test
