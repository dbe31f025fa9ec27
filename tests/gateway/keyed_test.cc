// Tools with replay = "keyed": sent again under the same key while nobody knows what became of them, and never
// otherwise.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "tests/gateway/support.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr char kTool[] =
    "[upstreams.led.tools.pay]\nreplay = \"keyed\"\nkey = { argument = \"key\" }\nreplay_window = \"1h\"\n";
constexpr char kQuickTool[] =
    "[upstreams.led.tools.pay]\ntimeout = \"1s\"\nreplay = \"keyed\"\nkey = { argument = \"key\" }\nreplay_window = "
    "\"1h\"\n";

class KeyedTest : public ::testing::Test {
 protected:
  void Begin(const std::string& tool = kTool, bool http = false, const std::string& margin = "5s") {
    gateway_.emplace(
        TestGateway::Options{.http = http, .upstream = tool, .top = "lease_margin = \"" + margin + "\"\n"});
    permit_ = MintFor({"led__*"});
    client_.emplace(gateway_->port(), permit_.permit_token());
    ASSERT_EQ(client_->Initialize().status, 200);
  }
  Json Pay(Json arguments) {
    arguments["text"] = "paid";
    return client_->Call("led__pay", arguments);
  }
  // The provider's keys, one for each request that came.
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const std::string& note : gateway_->Notes()) {
      if (note.starts_with("# key ")) keys.push_back(note.substr(6));
    }
    return keys;
  }
  // "SEND OUTCOME" of each send of the one tools/call, as they are audited.
  std::vector<std::string> Audited(size_t count) const {
    std::vector<std::string> sends;
    Eventually([&] {
      sends.clear();
      std::set<std::string> attempts;
      std::istringstream lines(ReadText(gateway_->folder() / "audit.jsonl"));
      for (std::string line; std::getline(lines, line);) {
        const Json entry = Json::parse(line);
        if (entry["method"] != "tools/call") continue;
        attempts.insert(entry["attempt_id"]);
        sends.push_back(std::to_string(entry["send"].get<int>()) + " " + entry["outcome"].get<std::string>());
      }
      EXPECT_LE(attempts.size(), 1u);
      return sends.size() >= count;
    });
    return sends;
  }
  v1::CallState State() const {
    grpc::ClientContext context;
    Prepare(context, TheFleet().credential(v1::OPERATOR));
    v1::ListCallsRequest request;
    request.set_permit_id(permit_.permit_id());
    v1::ListCallsResponse response;
    const auto stub = v1::Calls::NewStub(TheFleet().replica(0).Channel());
    EXPECT_TRUE(stub->ListCalls(&context, request, &response).ok());
    return response.calls_size() == 1 ? response.calls(0).state() : v1::CALL_STATE_UNSPECIFIED;
  }
  bool Becomes(v1::CallState state) const {
    return Eventually([&] { return State() == state; });
  }

  std::optional<TestGateway> gateway_;
  v1::MintResponse permit_;
  std::optional<McpClient> client_;
};

TEST_F(KeyedTest, ACallWhoseProcessDiedIsSentAgainUnderTheSameKeyAndTheAgentGetsTheAnswer) {
  Begin();
  EXPECT_EQ(TextOf(Pay({{"then", "die"}})), "done: paid");
  EXPECT_THAT(gateway_->Effects(), ElementsAre("paid"));
  ASSERT_EQ(Keys().size(), 2u);
  EXPECT_EQ(Keys()[0], Keys()[1]);
  EXPECT_THAT(Keys()[0], MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(Audited(2), ElementsAre("1 uncertain", "2 succeeded"));
  EXPECT_EQ(State(), v1::SUCCEEDED);
  EXPECT_EQ(TheFleet().VerifyChain(permit_.permit_id()), "");
}

TEST_F(KeyedTest, AStatusOf502IsNoAnswerEither) {
  Begin(kTool, true);
  EXPECT_EQ(TextOf(Pay({{"status", 502}})), "done: paid");
  EXPECT_THAT(gateway_->Effects(), ElementsAre("paid"));
  EXPECT_THAT(Audited(2), ElementsAre("1 uncertain", "2 succeeded"));
}

TEST_F(KeyedTest, NorIsAnErrorThatSaysThatTheToolLostTheAnswer) {
  Begin();
  EXPECT_EQ(TextOf(Pay({{"then", "lost"}})), "done: paid");
  EXPECT_THAT(gateway_->Effects(), ElementsAre("paid"));
}

TEST_F(KeyedTest, AfterATimeoutTheAgentIsAnsweredAndTheCallIsSentAgainAllTheSame) {
  Begin(kQuickTool);
  const Json arguments = {{"then", "sleep"}, {"seconds", 30}};
  EXPECT_EQ(KindOf(Pay(arguments)), "delivery_uncertain");
  EXPECT_TRUE(Becomes(v1::SUCCEEDED));
  EXPECT_THAT(gateway_->Effects(), ElementsAre("paid"));
  EXPECT_THAT(Audited(2), ElementsAre("1 no_answer", "2 succeeded"));
  EXPECT_EQ(TextOf(Pay(arguments)), "done: paid");  // from the record
  EXPECT_EQ(Keys().size(), 2u);
}

TEST_F(KeyedTest, TheLateAnswerToAnEarlierSendEndsItToo) {
  Begin(kQuickTool);
  // All later sends lose their answer; the first has its own after them.
  EXPECT_EQ(KindOf(Pay({{"then", "sleep"}, {"seconds", 8}, {"again", "lost"}})), "delivery_uncertain");
  EXPECT_TRUE(Becomes(v1::UNCERTAIN));
  EXPECT_TRUE(Becomes(v1::SUCCEEDED));
  EXPECT_THAT(gateway_->Effects(), ElementsAre("paid"));
  EXPECT_THAT(Audited(5), ElementsAre("1 no_answer", "2 uncertain", "3 uncertain", "4 uncertain", "1 late_succeeded"));
}

TEST_F(KeyedTest, WhileAnEarlierSendIsUnansweredAnErrorThatExplainsItselfParksTheCall) {
  Begin();
  EXPECT_EQ(KindOf(Pay({{"then", "die"}, {"again", "error"}})), "delivery_uncertain");
  EXPECT_EQ(State(), v1::UNCERTAIN);
  EXPECT_THAT(Audited(2), ElementsAre("1 uncertain", "2 uncertain"));
  EXPECT_EQ(Keys().size(), 2u);
}

TEST_F(KeyedTest, SendsAreCountedAndEndAfterTheFourth) {
  Begin();
  EXPECT_EQ(KindOf(Pay({{"then", "die"}, {"again", "rpc"}})), "delivery_uncertain");
  EXPECT_THAT(Audited(4), ElementsAre("1 uncertain", "2 uncertain", "3 uncertain", "4 uncertain"));
  EXPECT_EQ(Keys().size(), 4u);
  EXPECT_EQ(State(), v1::UNCERTAIN);
  EXPECT_THAT(gateway_->Effects(), ElementsAre("paid"));
}

TEST_F(KeyedTest, OutsideTheProvidersWindowItIsNotSentAgain) {
  Begin(
      "[upstreams.led.tools.pay]\ntimeout = \"2s\"\nreplay = \"keyed\"\nkey = { argument = \"key\" }\n"
      "replay_window = \"3100ms\"\n",
      false, "1s");
  EXPECT_EQ(KindOf(Pay({{"then", "die late"}, {"seconds", 1}})), "delivery_uncertain");
  EXPECT_EQ(Keys().size(), 1u);
  EXPECT_EQ(State(), v1::UNCERTAIN);
}

TEST_F(KeyedTest, AnErrorThatAnswersTheFirstSendIsAnAnswer) {
  Begin();
  EXPECT_EQ(TextOf(Pay({{"then", "error"}})), "the account is closed");
  EXPECT_EQ(Keys().size(), 1u);
  EXPECT_EQ(State(), v1::TOOL_ERROR);
}

TEST_F(KeyedTest, UnderAPermitThatWasRevokedMeanwhileNothingIsSentAgain) {
  Begin();
  auto waiting = std::async(std::launch::async, [&] { return Pay({{"then", "die late"}, {"seconds", 2}}); });
  ASSERT_TRUE(Eventually([&] { return !Keys().empty(); }));
  grpc::ClientContext context;
  Prepare(context, TheFleet().credential(v1::OPERATOR));
  v1::RevokePermitRequest request;
  request.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse response;
  ASSERT_TRUE(v1::Permits::NewStub(TheFleet().replica(0).Channel())->Revoke(&context, request, &response).ok());
  EXPECT_EQ(KindOf(waiting.get()), "delivery_uncertain");
  EXPECT_EQ(Keys().size(), 1u);
}

TEST_F(KeyedTest, WithoutTallydNothingIsSentAgain) {
  Begin();
  auto waiting = std::async(std::launch::async, [&] { return Pay({{"then", "die late"}, {"seconds", 2}}); });
  ASSERT_TRUE(Eventually([&] { return !Keys().empty(); }));
  TheFleet().replica(0).Stop();
  const Json result = waiting.get();
  TheFleet().replica(0).Start();
  EXPECT_EQ(KindOf(result), "delivery_uncertain");
  EXPECT_EQ(Keys().size(), 1u);
  EXPECT_TRUE(Becomes(v1::UNCERTAIN));
}

TEST_F(KeyedTest, AKeyThatTheAgentWritesIsTakenOutBeforeAuthorizeAndNeverReachesTheProvider) {
  Begin();
  EXPECT_EQ(TextOf(Pay({{"key", "mine"}})), "done: paid");
  // The same act, whatever stands in the place of the key.
  EXPECT_EQ(TextOf(Pay({{"key", "another"}})), "done: paid");
  EXPECT_EQ(Keys().size(), 1u);
  EXPECT_THAT(Keys()[0], MatchesRegex("[0-9a-f]{32}"));
  EXPECT_THAT(gateway_->Effects(), ElementsAre("paid"));
}

TEST_F(KeyedTest, AKeyInMetaIsPutAndStrippedThere) {
  Begin(
      "[upstreams.led.tools.look]\nreplay = \"keyed\"\nkey = { meta = \"pay.example/key\" }\nreplay_window = \"1h\"\n");
  const Json seen =
      Json::parse(TextOf(client_->Call("led__look", {{"a", 1}}, {{"pay.example/key", "mine"}, {"com.example/x", 1}})));
  EXPECT_THAT(seen["_meta"]["pay.example/key"].get<std::string>(), MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(seen["_meta"]["com.example/x"], 1);
  EXPECT_EQ(seen["arguments"], (Json{{"a", 1}}));
}

TEST_F(KeyedTest, AHintThatAToolIsIdempotentLoosensNothing) {
  Begin("");
  const Json tool = {
      {"name", "pay"}, {"inputSchema", {{"type", "object"}}}, {"annotations", {{"idempotentHint", true}}}};
  WriteFile(gateway_->folder() / "ledger.tools", Json::array({tool}).dump());
  client_->Request("tools/list");
  EXPECT_EQ(KindOf(Pay({{"then", "die"}, {"key", "k"}})), "delivery_uncertain");
  EXPECT_EQ(Keys().size(), 1u);
  EXPECT_THAT(Audited(1), ElementsAre("1 uncertain"));
}

}  // namespace
}  // namespace tally::test
