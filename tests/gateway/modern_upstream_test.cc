// Upstreams of 2026-07-28: which era is spoken to whom, what they are told of a client, and how they tell of changes.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <thread>

#include "tests/gateway/modern_client.h"

namespace tally::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

v1::CallInfo OnlyCall(const std::string& permit_id) {
  grpc::ClientContext context;
  Prepare(context, TheFleet().credential(v1::OPERATOR));
  v1::ListCallsRequest request;
  request.set_permit_id(permit_id);
  v1::ListCallsResponse response;
  const auto stub = v1::Calls::NewStub(TheFleet().replica(0).Channel());
  EXPECT_TRUE(stub->ListCalls(&context, request, &response).ok());
  EXPECT_EQ(response.calls_size(), 1);
  return response.calls_size() == 1 ? response.calls(0) : v1::CallInfo();
}

class ModernUpstreamTest : public ::testing::TestWithParam<bool> {
 protected:
  ModernUpstreamTest()
      : gateway_({.http = GetParam(), .server = "modern_upstream.py"}),
        permit_(MintFor({"led__*"})),
        client_(gateway_.port(), permit_.permit_token()) {}

  // What comes on a subscription in this time, while `meanwhile` is done.
  std::vector<Json> Heard(const ModernClient& client, const Json& filter, const std::function<void()>& meanwhile) {
    auto heard = std::async(std::launch::async, [&] {
      return client.Ask("subscriptions/listen", {{"notifications", filter}}, {}, 4000).messages;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(2000));
    meanwhile();
    return heard.get();
  }

  TestGateway gateway_;
  const v1::MintResponse permit_;
  ModernClient client_;
};
INSTANTIATE_TEST_SUITE_P(Transports, ModernUpstreamTest, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Http" : "Stdio"; });

TEST_P(ModernUpstreamTest, ItIsToldWhatTheClientCanBeAskedForAndNothingElse) {
  client_.Declare({{"sampling", Json::object()}, {"extensions", {{"io.modelcontextprotocol/tasks", Json::object()}}}});
  const Json seen = Json::parse(TextOf(client_.Call("led__look", {{"text", "x"}})))["params"];
  EXPECT_EQ(seen["_meta"]["io.modelcontextprotocol/clientCapabilities"], Json({{"sampling", Json::object()}})) << seen;
  EXPECT_EQ(seen["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

TEST_P(ModernUpstreamTest, ArgumentsThatItMarksAreRepeatedAsHeadersWhereThereAreHeaders) {
  const Json seen = Json::parse(TextOf(client_.Call("led__look", {{"text", "é"}})));
  if (!GetParam()) {
    EXPECT_TRUE(seen["headers"].is_null());
    return;
  }
  EXPECT_EQ(seen["headers"]["mcp-param-text"], "=?base64?w6k=?=") << seen;
  EXPECT_EQ(seen["headers"]["mcp-name"], "look");
}

// The error itself does not prove that nothing was done; with HTTP status 400, which the contract takes at its word, it
// does.
TEST_P(ModernUpstreamTest, AMissingCapabilityReachesTheClientAsTheErrorItIs) {
  const HttpAnswer answer = client_.Ask("tools/call", {{"name", "led__needs"}, {"arguments", {{"text", "x"}}}});
  EXPECT_EQ(answer.status, 400);
  const Json error = answer.answer()["error"];
  EXPECT_EQ(error["code"], -32021) << answer.body;
  EXPECT_EQ(error["data"]["requiredCapabilities"], Json({{"sampling", Json::object()}}));
  const v1::CallInfo call = OnlyCall(permit_.permit_id());
  if (GetParam()) {
    EXPECT_EQ(call.state(), v1::TOOL_ERROR);
  } else {
    EXPECT_EQ(call.state(), v1::UNCERTAIN);
    EXPECT_EQ(error["data"]["dev.tallystick/error"]["kind"], "delivery_uncertain");
    EXPECT_THAT(error["message"].get<std::string>(), StartsWith("delivery_uncertain: "));
  }
}

TEST_P(ModernUpstreamTest, ChangesAreToldToThoseWhoSubscribedAndOnlyWhatTheyAskedFor) {
  const auto change = [&] { client_.Call("led__change", {{"uri", "ledger://all"}}); };
  const auto heard = Heard(client_, {{"toolsListChanged", true}, {"resourceSubscriptions", {"ledger://all"}}}, change);
  ASSERT_EQ(heard.size(), 3u) << Json(heard);
  EXPECT_EQ(heard[0]["method"], "notifications/subscriptions/acknowledged");
  EXPECT_EQ(heard[0]["params"]["notifications"],
            Json({{"toolsListChanged", true}, {"resourceSubscriptions", {"ledger://all"}}}));
  std::vector<std::string> methods;
  for (const Json& message : heard) {
    EXPECT_EQ(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1) << message;
    methods.push_back(message["method"]);
  }
  EXPECT_THAT(methods, Contains("notifications/tools/list_changed"));
  EXPECT_THAT(methods, Contains("notifications/resources/updated"));
  // The gateway's own requests are in its audit log, too: once connected, and once more with the resource.
  std::vector<std::string> sends;
  std::istringstream lines(ReadText(gateway_.folder() / "audit.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("subscriptions/listen") != line.npos) sends.push_back(Json::parse(line)["outcome"]);
  }
  EXPECT_GE(sends.size(), 2u);
}

TEST_P(ModernUpstreamTest, AnotherPermitHearsNothingOfIt) {
  const auto other = MintFor({"elsewhere__x"});
  ModernClient theirs(gateway_.port(), other.permit_token());
  const auto heard = Heard(theirs, {{"toolsListChanged", true}, {"resourceSubscriptions", {"ledger://all"}}}, [&] {
    client_.Call("led__change", {{"uri", "ledger://all"}});
  });
  // Nothing can come, which the end says.
  ASSERT_EQ(heard.size(), 2u) << Json(heard);
  EXPECT_EQ(heard[0]["params"]["notifications"], Json::object());
  EXPECT_TRUE(heard[1].contains("result"));
}

TEST_P(ModernUpstreamTest, ASubscriptionWithoutAFilterIsRefused) {
  EXPECT_EQ(client_.Ask("subscriptions/listen", Json::object()).answer()["error"]["code"], -32602);
}

TEST(ModernUpstream, WhoSpeaksBothErasIsSpokenToInTheClients) {
  TestGateway gateway({.server = "modern_upstream.py"});
  const auto permit = MintFor({"led__*"});
  McpClient before(gateway.port(), permit.permit_token());
  before.Initialize();
  EXPECT_THAT(gateway.Notes(), ElementsAre("# initialize"));
  ModernClient after(gateway.port(), permit.permit_token());
  after.Ask("server/discover", Json::object());
  EXPECT_THAT(gateway.Notes(), ElementsAre("# initialize", "# discover"));
}

TEST(ModernUpstream, ALegacyServerIsFoundOutAndServesModernClients) {
  TestGateway gateway;
  const auto permit = MintFor({"led__append"});
  ModernClient client(gateway.port(), permit.permit_token());
  EXPECT_EQ(TextOf(client.Call("led__append", {{"text", "one"}})), "done: one");
  const auto heard =
      client.Ask("subscriptions/listen", {{"notifications", {{"resourceSubscriptions", {"ledger://all"}}}}}, {}, 2500);
  // Its own subscribe notifies at once, in its era's way.
  ASSERT_GE(heard.messages.size(), 1u) << heard.status << heard.body;
  EXPECT_EQ(heard.messages[0]["params"]["notifications"]["resourceSubscriptions"], Json({"ledger://all"}));
}

}  // namespace
}  // namespace tally::test
