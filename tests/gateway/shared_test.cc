// `shared = true`: one process for all clients, and nothing of one that reaches another. And subscriptions, which
// outlive the process that they were made at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>

#include "tests/gateway/support.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Json> HeardUnasked(const TestGateway& gateway, const McpClient& client) {
  auto headers = client.Headers();
  headers["Accept"] = "text/event-stream";
  return Http(gateway.port(), "GET", headers, "", 1000).messages;
}

std::string CallText(const Json& arguments, const std::string& progress_token) {
  return Json{
      {"jsonrpc", "2.0"},
      {"id", 1},
      {"method", "tools/call"},
      {"params", {{"name", "led__append"}, {"arguments", arguments}, {"_meta", {{"progressToken", progress_token}}}}}}
      .dump();
}

class SharedTest : public ::testing::Test {
 protected:
  SharedTest()
      : gateway_({.upstream = "shared = true\n"}),
        one_(gateway_.port(), MintFor({"led__*"}).permit_token()),
        two_(gateway_.port(), MintFor({"led__*"}).permit_token()) {
    one_.Initialize("2025-11-25", {{"sampling", Json::object()}, {"roots", Json::object()}});
    two_.Initialize();
  }
  size_t Started() const {
    const auto notes = gateway_.Notes();
    return static_cast<size_t>(std::count_if(
        notes.begin(), notes.end(), [](const std::string& note) { return note.starts_with("# capabilities"); }));
  }
  std::vector<std::string> Subscribing() const {
    std::vector<std::string> notes;
    for (const std::string& note : gateway_.Notes()) {
      if (note.starts_with("# resources/")) notes.push_back(note.substr(2));
    }
    return notes;
  }

  TestGateway gateway_;
  McpClient one_;
  McpClient two_;
};

TEST_F(SharedTest, AllClientsHaveOneProcessAndItIsToldOfNothingThatAClientCanBeAsked) {
  EXPECT_EQ(TextOf(one_.Call("led__append", {{"text", "one"}})), "done: one");
  EXPECT_EQ(TextOf(two_.Call("led__append", {{"text", "two"}})), "done: two");
  EXPECT_THAT(gateway_.Notes(), ElementsAre("# capabilities {}"));
  EXPECT_THAT(TextOf(one_.Call("led__append", {{"text", "x"}, {"then", "ask"}})), HasSubstr("-32601"));
}

TEST_F(SharedTest, ProgressOfACallReachesWhoeverMadeItThoughBothUseTheSameToken) {
  const Json slow = {{"text", "of one"}, {"then", "sleep"}, {"seconds", 2}};
  auto first = std::async(std::launch::async, [&] { return one_.Post(CallText(slow, "same")); });
  ASSERT_TRUE(Eventually([&] { return !gateway_.Effects().empty(); }));
  const HttpAnswer second = two_.Post(CallText({{"text", "of two"}, {"then", "sleep"}}, "same"));
  const HttpAnswer answer = first.get();
  for (const auto& [messages, text] : {std::pair(answer.messages, "of one"), std::pair(second.messages, "of two")}) {
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_EQ(messages[0]["params"]["progressToken"], "same");
    EXPECT_EQ(messages[0]["params"]["message"], text);
    EXPECT_EQ(TextOf(messages[1]["result"]), std::string("done: ") + text);
  }
  EXPECT_THAT(HeardUnasked(gateway_, one_), IsEmpty());
  EXPECT_THAT(HeardUnasked(gateway_, two_), IsEmpty());
}

TEST_F(SharedTest, ALogMessageThatCannotBeToldWhoseItIsReachesNobody) {
  const HttpAnswer answer = one_.Post(CallText({{"text", "x"}, {"then", "log"}}, "t"));
  ASSERT_EQ(answer.messages.size(), 2u) << answer.body;
  EXPECT_EQ(answer.messages[0]["method"], "notifications/progress");
  EXPECT_EQ(TextOf(answer.messages[1]["result"]), "done: x");
  EXPECT_THAT(HeardUnasked(gateway_, one_), IsEmpty());
  EXPECT_THAT(HeardUnasked(gateway_, two_), IsEmpty());
  // One client's level would be everyone's.
  EXPECT_EQ(one_.Request("logging/setLevel", {{"level", "debug"}}), Json::object());
  for (const std::string& note : gateway_.Notes()) EXPECT_EQ(note.find("setLevel"), std::string::npos);
}

TEST_F(SharedTest, AnUpdateReachesThoseWhoSubscribedAndEndsForEachAlone) {
  const Json uri = {{"uri", "ledger://all"}};
  EXPECT_EQ(one_.Request("resources/subscribe", uri), Json::object());
  EXPECT_EQ(HeardUnasked(gateway_, one_).size(), 1u);
  EXPECT_THAT(HeardUnasked(gateway_, two_), IsEmpty());
  // Unsubscribing from what one has no subscription to ends nobody else's.
  EXPECT_EQ(two_.Request("resources/unsubscribe", uri), Json::object());
  EXPECT_EQ(two_.Request("resources/subscribe", uri), Json::object());
  EXPECT_EQ(one_.Request("resources/unsubscribe", uri), Json::object());
  EXPECT_THAT(Subscribing(), ElementsAre("resources/subscribe", "resources/subscribe"));
  EXPECT_EQ(two_.Request("resources/unsubscribe", uri), Json::object());
  EXPECT_THAT(Subscribing(), ElementsAre("resources/subscribe", "resources/subscribe", "resources/unsubscribe"));
}

TEST_F(SharedTest, TheEndOfOneSessionEndsItsSubscriptionsAndNothingElse) {
  one_.Request("resources/subscribe", {{"uri", "ledger://all"}});
  auto waiting = std::async(std::launch::async, [&] {
    return two_.Call("led__append", {{"text", "two"}, {"then", "sleep"}, {"seconds", 2}});
  });
  ASSERT_TRUE(Eventually([&] { return !gateway_.Effects().empty(); }));
  EXPECT_EQ(Http(gateway_.port(), "DELETE", one_.Headers()).status, 204);
  EXPECT_TRUE(Eventually([&] { return !Subscribing().empty() && Subscribing().back() == "resources/unsubscribe"; }));
  EXPECT_EQ(TextOf(waiting.get()), "done: two");
  EXPECT_EQ(Started(), 1u);
}

TEST_F(SharedTest, WhenTheProcessDiesEveryoneIsToldAndTheNextCallStartsAnother) {
  auto waiting = std::async(std::launch::async, [&] {
    return two_.Call("led__append", {{"text", "two"}, {"then", "sleep"}, {"seconds", 60}});
  });
  ASSERT_TRUE(Eventually([&] { return !gateway_.Effects().empty(); }));
  EXPECT_EQ(KindOf(one_.Call("led__append", {{"text", "one"}, {"then", "die"}})), "delivery_uncertain");
  EXPECT_EQ(KindOf(waiting.get()), "delivery_uncertain");
  EXPECT_EQ(TextOf(two_.Call("led__append", {{"text", "three"}})), "done: three");
  EXPECT_EQ(TextOf(one_.Call("led__append", {{"text", "four"}})), "done: four");
  EXPECT_EQ(Started(), 2u);
}

TEST(Subscriptions, AreMadeAnewWhenTheUpstreamWasConnectedAgain) {
  for (const bool shared : {false, true}) {
    TestGateway gateway({.upstream = shared ? "shared = true\n" : ""});
    McpClient client(gateway.port(), MintFor({"led__*"}).permit_token());
    client.Initialize();
    EXPECT_EQ(client.Request("resources/subscribe", {{"uri", "ledger://all"}}), Json::object());
    EXPECT_EQ(HeardUnasked(gateway, client).size(), 1u);
    client.Call("led__append", {{"text", "one"}, {"then", "die"}});
    client.Call("led__append", {{"text", "two"}});
    const auto subscriptions = [&] {
      const auto notes = gateway.Notes();
      return std::count(notes.begin(), notes.end(), "# resources/subscribe");
    };
    EXPECT_TRUE(Eventually([&] { return subscriptions() == 2; }));
    // What went by in between cannot be known: the client is told to look.
    const auto heard = HeardUnasked(gateway, client);
    ASSERT_FALSE(heard.empty());
    EXPECT_EQ(heard.back()["method"], "notifications/resources/updated");
    EXPECT_EQ(heard.back()["params"]["uri"], "ledger://all");
  }
}

TEST(SharedConfig, IsForCommandsAlone) {
  TestGateway gateway({.http = true, .upstream = "shared = true\n", .start = false});
  int status = 0;
  EXPECT_THAT(Shell(GatewayProgram() + " check " + gateway.ConfigPath() + " 2>&1", &status),
              HasSubstr("is for a command"));
  EXPECT_EQ(status, 2);
}

}  // namespace
}  // namespace tally::test
