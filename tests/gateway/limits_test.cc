// Every limit of the configuration, at its edge: the last that fits, and the first that does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tests/gateway/support.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TestGateway::Options Limited(const std::string& lines, bool http = false) {
  return {.http = http, .top = "[limits]\n" + lines + "\n"};
}

McpClient Connected(const TestGateway& gateway, const v1::MintResponse& permit) {
  McpClient client(gateway.port(), permit.permit_token());
  EXPECT_EQ(client.Initialize().status, 200);
  return client;
}

std::string PingOf(size_t bytes) {
  std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":""}}})";
  ping.insert(ping.find("\"}}}"), std::string(bytes - ping.size(), 'x'));
  return ping;
}

TEST(Limits, OneMessageOfAClient) {
  TestGateway gateway(Limited("message_bytes_max = 65536"));
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  EXPECT_EQ(client.Post(PingOf(65'536)).status, 200);
  const HttpAnswer over = client.Post(PingOf(65'537));
  EXPECT_EQ(over.status, 413);
  EXPECT_THAT(over.body, HasSubstr("Nothing was done"));
}

TEST(Limits, OneMessageOfAnUpstream) {
  for (const bool http : {false, true}) {
    TestGateway gateway(Limited("answer_bytes_max = 65536", http));
    McpClient client = Connected(gateway, MintFor({"led__*"}));
    const Json fits = client.Call("led__append", {{"text", "a"}, {"then", "big"}, {"bytes", 65'000}});
    EXPECT_EQ(TextOf(fits).size(), 65'000u);
    // It came after the act: nobody knows what it said.
    const Json over = client.Call("led__append", {{"text", "b"}, {"then", "big"}, {"bytes", 65'536}});
    EXPECT_EQ(KindOf(over), "delivery_uncertain") << over;
    EXPECT_EQ(TextOf(client.Call("led__append", {{"text", "c"}})), "done: c");
    EXPECT_THAT(gateway.Effects(), ElementsAre("a", "b", "c"));
  }
}

TEST(Limits, CallsUnderWayThoseIncludedWhoseLateAnswerIsWaitedFor) {
  TestGateway gateway({.upstream = "timeout = \"1s\"\n", .top = "[limits]\ncalls_max = 1\n"});
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  const Json slow = {{"text", "one"}, {"then", "sleep"}, {"seconds", 4}};
  EXPECT_EQ(KindOf(client.Call("led__append", slow)), "delivery_uncertain");
  const Json second = client.Call("led__append", {{"text", "two"}});
  EXPECT_EQ(KindOf(second), "unavailable") << second;
  EXPECT_THAT(TextOf(second), HasSubstr("as many calls under way as it may have"));
  EXPECT_TRUE(Eventually([&] { return TextOf(client.Call("led__append", {{"text", "three"}})) == "done: three"; }));
  EXPECT_THAT(gateway.Effects(), ElementsAre("one", "three"));
}

TEST(Limits, SessionsAtOneTime) {
  TestGateway gateway(Limited("sessions_max = 1"));
  const auto permit = MintFor({"led__*"});
  McpClient first = Connected(gateway, permit);
  McpClient second(gateway.port(), permit.permit_token());
  const HttpAnswer refused = second.Initialize();
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("as many sessions as it may have"));
  EXPECT_EQ(Http(gateway.port(), "DELETE", first.Headers()).status, 204);
  EXPECT_EQ(second.Initialize().status, 200);
}

TEST(Limits, ConnectionsAtOneTime) {
  TestGateway gateway(Limited("connections_max = 1"));
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  auto headers = client.Headers();
  headers["Accept"] = "text/event-stream";
  // The connection before may not have ended yet.
  auto stream = std::async(std::launch::async, [&] {
    int status = 0;
    Eventually([&] { return (status = Http(gateway.port(), "GET", headers, "", 3000).status) == 200; });
    return status;
  });
  EXPECT_TRUE(Eventually([&] { return client.Post(PingOf(100)).status != 200; }));
  EXPECT_EQ(stream.get(), 200);
  EXPECT_TRUE(Eventually([&] { return client.Post(PingOf(100)).status == 200; }));
}

TEST(Limits, AllHeadersOfARequest) {
  TestGateway gateway(Limited("header_bytes_max = 4096"));
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  EXPECT_EQ(client.Post(PingOf(100), {{"X-Filler", std::string(3'000, 'x')}}).status, 200);
  EXPECT_EQ(client.Post(PingOf(100), {{"X-Filler", std::string(4'096, 'x')}}).status, 431);
}

TEST(Limits, TheTimeInWhichARequestMustHaveCome) {
  TestGateway gateway(Limited("request_timeout = \"1s\""));
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  auto headers = client.Headers();
  headers["Content-Type"] = "application/json";
  headers["Content-Length"] = "1000";
  // The body never comes; what ends this is the gateway.
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Http(gateway.port(), "POST", headers).status, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(50));
  EXPECT_EQ(client.Post(PingOf(100)).status, 200);
}

TEST(Limits, WhatIsKeptForASlowReaderIsTheNewest) {
  TestGateway gateway(Limited("stream_bytes_max = 65536"));
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  // Nobody reads the general stream meanwhile.
  for (int i = 0; i < 3; ++i) {
    const std::string uri = "ledger://" + std::to_string(i) + std::string(30'000, 'x');
    EXPECT_EQ(client.Request("resources/subscribe", {{"uri", uri}}), Json::object());
  }
  auto headers = client.Headers();
  headers["Accept"] = "text/event-stream";
  std::vector<std::string> kept;
  for (const Json& message : Http(gateway.port(), "GET", headers, "", 1000).messages) {
    kept.push_back(message["params"]["uri"].get<std::string>().substr(0, 10));
  }
  EXPECT_THAT(kept, ElementsAre("ledger://1", "ledger://2"));
}

TEST(Limits, ReadsAreTriedAsOftenAsConfiguredAndCallsOnce) {
  TestGateway gateway({.http = true, .upstream = "read_tries = 2\n"});
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  WriteFile(gateway.folder() / "ledger.down", "");
  client.Request("tools/list");
  const auto asked = [&] {
    const auto notes = gateway.Notes();
    return std::count(notes.begin(), notes.end(), "# tools/list");
  };
  EXPECT_EQ(asked(), 2);
  EXPECT_EQ(KindOf(client.Call("led__append", {{"text", "one"}, {"status", 503}})), "delivery_uncertain");
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST(Limits, ArgumentsAndDepth) {
  TestGateway gateway;
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  const auto call = [&](const std::string& arguments) {
    return client
        .Post(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"led__look","arguments":)" + arguments +
              "}}")
        .answer();
  };
  const std::string around = R"({"a":""})";
  const std::string most = R"({"a":")" + std::string(256 * 1024 - around.size(), 'x') + "\"}";
  EXPECT_TRUE(call(most).contains("result"));
  EXPECT_TRUE(call(R"({"b":")" + std::string(256 * 1024 - around.size() + 1, 'x') + "\"}").contains("error"));
  EXPECT_TRUE(call(R"({"a":)" + std::string(63, '[') + std::string(63, ']') + "}").contains("result"));
  EXPECT_TRUE(call(R"({"a":)" + std::string(64, '[') + std::string(64, ']') + "}").contains("error"));
}

}  // namespace
}  // namespace tally::test
