// One agent on the gateway's own standard streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "tests/gateway/modern_client.h"

namespace tally::test {
namespace {

using ::testing::HasSubstr;

class StdioFrontTest : public ::testing::Test {
 protected:
  // One gateway a folder: the one on HTTP makes room first.
  StdioFrontTest() : permit_(MintFor({"led__append"})) {
    gateway_.process().Kill(SIGTERM);
    EXPECT_EQ(gateway_.process().Wait(), 0);
    std::ofstream(gateway_.folder() / "token") << permit_.permit_token();
  }

  // What the gateway wrote while these lines were sent, and a second went by after them.
  std::vector<Json> Talk(const std::string& lines, int* status) {
    const std::string script = (gateway_.folder() / "lines").string();
    std::ofstream(script) << lines;
    const std::string output =
        Shell("(cat " + script + "; sleep 3) | TALLY_PERMIT_TOKEN=$(cat " + (gateway_.folder() / "token").string() +
                  ") timeout 60 " + GatewayProgram() + " serve --stdio " + gateway_.ConfigPath() + " 2>/dev/null",
              status);
    std::vector<Json> messages;
    std::istringstream text(output);
    for (std::string line; std::getline(text, line);) messages.push_back(Json::parse(line));
    return messages;
  }

  TestGateway gateway_;
  const v1::MintResponse permit_;
};

constexpr char kInitialize[] =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})"
    "\n";

TEST_F(StdioFrontTest, ACallIsAnsweredOnALineAndTheEndOfInputIsTheEnd) {
  int status = -1;
  const auto messages = Talk(std::string(kInitialize) + R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
                                                        "\n"
                                                        R"({"jsonrpc":"2.0","id":1,"method":"ping"})"
                                                        "\n",
                             &status);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(messages.size(), 2u);
  for (const Json& message : messages) EXPECT_TRUE(message.contains("result")) << message;
}

TEST_F(StdioFrontTest, BothErasAreSpokenOnOnePipe) {
  const ModernClient modern(0, "");
  const auto line = [&](const Json& id, const std::string& method, const Json& params) {
    const Json request = {{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", modern.Whole(params)}};
    return request.dump() + "\n";
  };
  int status = -1;
  const auto messages =
      Talk(line("d", "server/discover", Json::object()) + kInitialize +
               line("c", "tools/call", {{"name", "led__append"}, {"arguments", {{"text", "one"}}}}) +
               line("l", "subscriptions/listen", {{"notifications", {{"resourceSubscriptions", {"ledger://all"}}}}}) +
               line("p", "ping", Json::object()) +
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"none\"}}\n",
           &status);
  EXPECT_EQ(status, 0);
  std::map<std::string, Json> answers;
  bool acknowledged = false;
  for (const Json& message : messages) {
    if (message.contains("id")) answers[message["id"].dump()] = message;
    if (message.value("method", "") == "notifications/subscriptions/acknowledged") {
      acknowledged = message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "l";
    }
  }
  EXPECT_TRUE(acknowledged);
  EXPECT_EQ(answers["\"d\""]["result"]["resultType"], "complete") << answers["\"d\""];
  EXPECT_EQ(answers["0"]["result"]["protocolVersion"], "2025-11-25") << answers["0"];
  EXPECT_EQ(TextOf(answers["\"c\""]["result"]), "done: one") << answers["\"c\""];
  EXPECT_EQ(answers["\"p\""]["error"]["code"], -32601) << answers["\"p\""];
}

TEST_F(StdioFrontTest, LinesThatAreNoMessagesAreAnsweredAndTheNextOnesServed) {
  int status = -1;
  const auto messages = Talk("{\n[]\n\xff\n" + std::string(5 << 20, 'x') + "\n" + kInitialize, &status);
  ASSERT_EQ(messages.size(), 5u);
  int errors = 0;
  int results = 0;
  for (const Json& message : messages) {
    errors += message.contains("error") ? 1 : 0;
    results += message.contains("result") ? 1 : 0;
  }
  EXPECT_EQ(errors, 4);
  EXPECT_EQ(results, 1);
}

}  // namespace
}  // namespace tally::test
