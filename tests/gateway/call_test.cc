// tools/call from an agent over HTTP to a real server, with a real tallyd in between: never two effects, and every call
// ends answered, refused or parked.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>

#include "tests/gateway/support.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kKey[] = "dev.tallystick/idempotency-key";

McpClient Connected(const TestGateway& gateway, const v1::MintResponse& permit) {
  McpClient client(gateway.port(), permit.permit_token());
  const HttpAnswer answer = client.Initialize();
  EXPECT_EQ(answer.status, 200) << answer.body;
  return client;
}

std::vector<v1::CallInfo> CallsOf(const std::string& permit_id) {
  grpc::ClientContext context;
  Prepare(context, TheFleet().credential(v1::OPERATOR));
  v1::ListCallsRequest request;
  request.set_permit_id(permit_id);
  v1::ListCallsResponse response;
  const auto stub = v1::Calls::NewStub(TheFleet().replica(0).Channel());
  EXPECT_TRUE(stub->ListCalls(&context, request, &response).ok());
  return {response.calls().begin(), response.calls().end()};
}

v1::CallState OnlyState(const std::string& permit_id) {
  const auto calls = CallsOf(permit_id);
  return calls.size() == 1 ? calls[0].state() : v1::CALL_STATE_UNSPECIFIED;
}

class CallTest : public ::testing::TestWithParam<bool> {
 protected:
  TestGateway::Options Options() const { return {.http = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Transports, CallTest, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Http" : "Stdio"; });

TEST_P(CallTest, ACallIsCarriedOutOnceAndItsReceiptsAreInTheAnswer) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json result = client.Call("led__append", {{"text", "one"}});
  EXPECT_EQ(TextOf(result), "done: one") << result;
  EXPECT_EQ(result["_meta"]["dev.tallystick/call"]["receipt_ids"].size(), 2u) << result;
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::SUCCEEDED);
  EXPECT_EQ(TheFleet().VerifyChain(permit.permit_id()), "");
}

TEST_P(CallTest, TheSameKeyAgainGetsTheStoredAnswerAndDoesNothing) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json first = client.Call("led__append", {{"text", "one"}}, {{kKey, "k"}});
  const Json again = client.Call("led__append", {{"text", "one"}}, {{kKey, "k"}});
  EXPECT_EQ(again["content"], first["content"]);
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST_P(CallTest, AFreshKeyForTheSameActGetsTheStoredAnswerToo) {
  TestGateway gateway(Options());
  McpClient client = Connected(gateway, MintFor({"led__append"}));
  client.Call("led__append", {{"text", "one"}});
  EXPECT_EQ(TextOf(client.Call("led__append", {{"text", "one"}})), "done: one");
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST_P(CallTest, WhatIsNotGrantedIsDeniedInWordsAModelReadsAndNothingIsSent) {
  TestGateway gateway(Options());
  McpClient client = Connected(gateway, MintFor({"led__append"}));
  const Json result = client.Call("led__other", {{"text", "one"}});
  EXPECT_EQ(result["isError"], true);
  EXPECT_THAT(TextOf(result), StartsWith("denied:"));
  EXPECT_EQ(KindOf(result), "denied") << result;
  EXPECT_THAT(gateway.Effects(), IsEmpty());
}

TEST_P(CallTest, ACapThatIsUsedUpRefusesTheNextCall) {
  TestGateway gateway(Options());
  McpClient client = Connected(gateway, MintFor({"led__append"}, 1));
  client.Call("led__append", {{"text", "one"}});
  EXPECT_EQ(KindOf(client.Call("led__append", {{"text", "two"}})), "cap_exceeded");
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST_P(CallTest, AnUpstreamThatDiesInTheMiddleParksTheCallAndTheAgentIsToldAtOnce) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json result = client.Call("led__append", {{"text", "one"}, {"then", "die"}});
  EXPECT_EQ(KindOf(result), "delivery_uncertain") << result;
  EXPECT_THAT(TextOf(result), StartsWith("delivery_uncertain:"));
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::UNCERTAIN);
  // Neither key does it again.
  EXPECT_EQ(KindOf(client.Call("led__append", {{"text", "one"}, {"then", "die"}})), "delivery_uncertain");
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST_P(CallTest, ATimeoutAnswersTheAgentAndTheLateAnswerIsCommitted) {
  TestGateway::Options options = Options();
  options.upstream = "timeout = \"1s\"\n";
  TestGateway gateway(options);
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json arguments = {{"text", "one"}, {"then", "sleep"}, {"seconds", 3}};
  EXPECT_EQ(KindOf(client.Call("led__append", arguments)), "delivery_uncertain");
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::UNCERTAIN);
  EXPECT_TRUE(Eventually([&] { return OnlyState(permit.permit_id()) == v1::SUCCEEDED; }));
  // The agent never saw it; it asks again with another key, and gets it.
  EXPECT_EQ(TextOf(client.Call("led__append", arguments)), "done: one");
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

// Calls outlive what they were asked by; the end of the process must not find them with what they refer to gone.
// Sanitizers say so by the exit status.
TEST_P(CallTest, TheGatewayEndsInOrderWhileAnswersAreStillWaitedFor) {
  TestGateway::Options options = Options();
  options.upstream = "timeout = \"1s\"\n[upstreams.led.tools.other]\ntimeout = \"30s\"\n";
  TestGateway gateway(options);
  const auto permit = MintFor({"led__append", "led__other"});
  McpClient client = Connected(gateway, permit);
  EXPECT_EQ(KindOf(client.Call("led__append", {{"text", "late"}, {"then", "sleep"}, {"seconds", 30}})),
            "delivery_uncertain");
  const auto unanswered = std::async(std::launch::async, [&] {
    return client.Call("led__other", {{"text", "unanswered"}, {"then", "sleep"}, {"seconds", 30}});
  });
  EXPECT_TRUE(Eventually([&] { return CallsOf(permit.permit_id()).size() == 2; }));
  gateway.process().Kill(SIGTERM);
  EXPECT_EQ(gateway.process().Wait(), 0);
}

TEST_P(CallTest, TheAgentHangingUpChangesNothing) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json request = {
      {"jsonrpc", "2.0"},
      {"id", 99},
      {"method", "tools/call"},
      {"params", {{"name", "led__append"}, {"arguments", {{"text", "one"}, {"then", "sleep"}, {"seconds", 2}}}}}};
  client.Post(request.dump(), {}, 500);
  EXPECT_TRUE(Eventually([&] { return OnlyState(permit.permit_id()) == v1::SUCCEEDED; }));
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST_P(CallTest, AnErrorThatExplainsItselfReachesTheModelAsItCame) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json result = client.Call("led__append", {{"text", "one"}, {"then", "error"}});
  EXPECT_EQ(TextOf(result), "the account is closed");
  EXPECT_EQ(KindOf(result), "");
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::TOOL_ERROR);
}

TEST_P(CallTest, AnErrorThatSaysThatTheToolLostAnAnswerParksTheCall) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json result = client.Call("led__append", {{"text", "one"}, {"then", "error"}, {"words", "fetch failed"}});
  EXPECT_EQ(KindOf(result), "delivery_uncertain");
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::UNCERTAIN);
}

TEST_P(CallTest, JsonRpcErrorsThatProveThatNothingHappenedReachTheAgentAsTheyCame) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json result = client.Call("led__append", {{"text", "one"}, {"then", "rpc"}, {"code", -32602}});
  EXPECT_EQ(result["error"]["code"], -32602) << result;
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::TOOL_ERROR);
}

TEST_P(CallTest, OtherJsonRpcErrorsParkTheCall) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const Json result = client.Call("led__append", {{"text", "one"}, {"then", "rpc"}, {"code", -32603}});
  EXPECT_EQ(KindOf(result), "delivery_uncertain") << result;
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::UNCERTAIN);
}

TEST_P(CallTest, ArgumentsPassAsTheyAreWrittenAndOurOwnMembersDoNot) {
  TestGateway gateway(Options());
  McpClient client = Connected(gateway, MintFor({"led__look"}));
  const std::string body =
      R"({"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"led__look","arguments":{"big":12345678901234567890},)"
      R"("_meta":{"com.example/x":1,"dev.tallystick/idempotency-key":"k"},"task":{"ttl":1}}})";
  const std::string seen = TextOf(client.Post(body).answer()["result"]);
  EXPECT_EQ(Json::parse(seen),
            Json::parse(R"({"_meta":{"com.example/x":1},"arguments":{"big":12345678901234567890},"name":"look"})"));
}

TEST_P(CallTest, MembersThatDifferByCaseAreRefusedAndNothingIsSent) {
  TestGateway gateway(Options());
  McpClient client = Connected(gateway, MintFor({"led__append"}));
  for (const char* params : {R"({"name":"led__append","Name":"led__other","arguments":{"text":"x"}})",
                             R"({"name":"led__append","arguments":{"text":"x","Text":"y"}})",
                             "{\"name\":\"led__append\",\"arguments\":{\"task\":\"x\",\"ta\xC5\xBFk\":\"y\"}}"}) {
    const HttpAnswer answer =
        client.Post(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)" + std::string(params) + "}");
    EXPECT_TRUE(answer.answer().contains("error")) << params << answer.body;
  }
  EXPECT_THAT(gateway.Effects(), IsEmpty());
}

TEST_P(CallTest, TwoKeysThatDifferAreRefused) {
  TestGateway gateway(Options());
  McpClient client = Connected(gateway, MintFor({"led__append"}));
  const std::string body =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"led__append","idempotencyKey":"a","arguments":{"text":"x"}}})";
  EXPECT_TRUE(client.Post(body, {{"Idempotency-Key", "b"}}).answer().contains("error"));
  EXPECT_THAT(gateway.Effects(), IsEmpty());
}

TEST_P(CallTest, TheSameCallTwiceAtTheSameTimeIsCarriedOutOnce) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  std::vector<std::future<Json>> answers;
  for (int i = 0; i < 4; ++i) {
    answers.push_back(std::async(std::launch::async, [&, i] {
      McpClient client = Connected(gateway, permit);
      const Json meta = i < 2 ? Json{{kKey, "same"}} : Json::object();
      return client.Call("led__append", {{"text", "one"}, {"then", "sleep"}, {"seconds", 1}}, meta);
    }));
  }
  int done = 0;
  for (auto& answer : answers) done += TextOf(answer.get()) == "done: one" ? 1 : 0;
  EXPECT_EQ(done, 1);
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST_P(CallTest, ACallThatHasEndedIsUnderWayNoMore) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  EXPECT_EQ(TextOf(client.Call("led__append", {{"text", "one"}})), "done: one");
  EXPECT_EQ(TextOf(client.Call("led__append", {{"text", "two"}})), "done: two");
  gateway.process().Kill(SIGTERM);
  EXPECT_THAT(gateway.process().AwaitLine(R"("event":"stopping")"), ::testing::HasSubstr(R"("calls":0)"));
  EXPECT_EQ(gateway.process().Wait(), 0);
}

TEST_P(CallTest, AGatewayThatIsKilledBeforeTheAnswerParksTheCallWhenItStartsAgain) {
  TestGateway gateway(Options());
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  auto waiting = std::async(std::launch::async, [&] {
    return client.Call("led__append", {{"text", "one"}, {"then", "sleep"}, {"seconds", 60}});
  });
  ASSERT_TRUE(Eventually([&] { return !gateway.Effects().empty(); }));
  gateway.process().Kill(SIGKILL);
  gateway.process().Wait();
  waiting.get();
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::AUTHORIZED);
  gateway.Start();
  EXPECT_TRUE(Eventually([&] { return OnlyState(permit.permit_id()) == v1::UNCERTAIN; }));
  EXPECT_THAT(gateway.Effects(), ElementsAre("one"));
}

TEST(Gateway, WithoutTallydNothingIsSent) {
  const auto permit = MintFor({"led__append"});
  TestGateway gateway;
  McpClient client = Connected(gateway, permit);
  TheFleet().replica(0).Stop();
  const Json result = client.Call("led__append", {{"text", "one"}});
  TheFleet().replica(0).Start();
  EXPECT_EQ(KindOf(result), "unavailable") << result;
  EXPECT_THAT(gateway.Effects(), IsEmpty());
}

TEST(Gateway, NoHttpLibraryOnTheWayFindsAReasonToRepeatACall) {
  TestGateway gateway({.http = true});
  const auto permit = MintFor({"led__append"});
  McpClient client = Connected(gateway, permit);
  const std::string body =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x"}}})";
  client.Post(body, {{"Idempotency-Key", "b"}});
  // Neither the key's header nor the agent's token is passed on.
  for (const std::string& note : gateway.Notes()) EXPECT_THAT(note, Not(HasSubstr("header")));
}

TEST(Gateway, AStatusThatAProxyInBetweenMakesUpParksTheCallAndOneThatRefusesDoesNot) {
  TestGateway gateway({.http = true});
  const auto parked = MintFor({"led__append"});
  McpClient one = Connected(gateway, parked);
  EXPECT_EQ(KindOf(one.Call("led__append", {{"text", "x"}, {"status", 502}})), "delivery_uncertain");
  EXPECT_EQ(OnlyState(parked.permit_id()), v1::UNCERTAIN);
  const auto refused = MintFor({"led__append"});
  McpClient two = Connected(gateway, refused);
  EXPECT_EQ(two.Call("led__append", {{"text", "y"}, {"status", 429}})["isError"], true);
  EXPECT_EQ(OnlyState(refused.permit_id()), v1::TOOL_ERROR);
  EXPECT_THAT(gateway.Effects(), ElementsAre("x"));
}

TEST(Gateway, ACallThatWasAnsweredIsLetGo) {
  for (const bool http : {false, true}) {
    TestGateway gateway({.http = http});
    McpClient client = Connected(gateway, MintFor({"led__append", "led__fail"}));
    client.Call("led__append", {{"text", "one"}});
    client.Call("led__append", {{"text", "two"}});
    client.Call("led__append", {{"text", "two"}});
    client.Call("led__nothing", Json::object());
    gateway.process().Kill(SIGTERM);
    EXPECT_THAT(gateway.process().AwaitLine("\"stopping\""), HasSubstr("\"calls\":0"));
    EXPECT_EQ(gateway.process().Wait(), 0);
  }
}

}  // namespace
}  // namespace tally::test
