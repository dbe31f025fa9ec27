// input_required rounds of 2026-07-28: a call stays one call with one charge, its token is worth something to nobody
// else, and a call that nobody continues is parked.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <future>
#include <thread>

#include "tests/gateway/modern_client.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const Json kArguments = {{"text", "one"}, {"ask", 1}};

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

// How the agent goes on: its answer, and the token it was given.
Json Answering(const Json& question, const std::string& who = "Ada") {
  return {{"requestState", question["requestState"]},
          {"inputResponses", {{"name", {{"action", "accept"}, {"content", {{"who", who}}}}}}}};
}

class RoundsTest : public ::testing::TestWithParam<bool> {
 protected:
  RoundsTest()
      : gateway_({.http = GetParam(),
                  .upstream = "timeout = \"5s\"\ninput_window = \"20s\"",
                  .server = "modern_upstream.py"}),
        permit_(MintFor({"led__append", "led__look"})),
        client_(Client(permit_)) {}

  ModernClient Client(const v1::MintResponse& permit) const {
    ModernClient client(gateway_.port(), permit.permit_token());
    client.Declare({{"elicitation", Json::object()}});
    return client;
  }
  std::vector<std::string> Rounds() const {
    std::vector<std::string> rounds;
    for (const std::string& note : gateway_.Notes()) {
      if (note.starts_with("# round")) rounds.push_back(note);
    }
    return rounds;
  }

  TestGateway gateway_;
  const v1::MintResponse permit_;
  ModernClient client_;
};
INSTANTIATE_TEST_SUITE_P(Transports, RoundsTest, ::testing::Bool(),
                         [](const auto& instance) { return instance.param ? "Http" : "Stdio"; });

TEST_P(RoundsTest, ACallWithRoundsIsOneCallWithOneChargeAndEachRoundHasItsAuditLine) {
  const Json arguments = {{"text", "one"}, {"ask", 2}};
  const Json first = client_.Call("led__append", arguments);
  ASSERT_EQ(first["resultType"], "input_required") << first;
  EXPECT_EQ(first["inputRequests"]["name"]["method"], "elicitation/create");
  EXPECT_THAT(first["requestState"].dump(), Not(HasSubstr("secret")));
  EXPECT_EQ(OnlyState(permit_.permit_id()), v1::AUTHORIZED);
  const Json second = client_.Call("led__append", arguments, Answering(first));
  ASSERT_EQ(second["resultType"], "input_required") << second;
  EXPECT_NE(second["requestState"], first["requestState"]);
  const Json last = client_.Call("led__append", arguments, Answering(second, "Bob"));
  EXPECT_EQ(TextOf(last), "done: one") << last;
  EXPECT_EQ(last["resultType"], "complete");

  EXPECT_THAT(gateway_.Effects(), ElementsAre("one"));
  EXPECT_THAT(Rounds(), ElementsAre(HasSubstr("round 1 - null"), HasSubstr("round 2 1:secret {\"name\""),
                                    AllOf(HasSubstr("round 3 2:secret"), HasSubstr("Bob"))));
  const auto calls = CallsOf(permit_.permit_id());
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].state(), v1::SUCCEEDED);
  EXPECT_EQ(calls[0].attempts_size(), 1);
  EXPECT_EQ(TheFleet().VerifyChain(permit_.permit_id()), "");
  std::vector<std::string> sends;
  EXPECT_TRUE(Eventually([&] {
    sends.clear();
    std::istringstream lines(ReadText(gateway_.folder() / "audit.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line);
      if (entry["method"] != "tools/call") continue;
      sends.push_back(entry["send"].dump() + " " + entry["outcome"].get<std::string>());
    }
    return sends.size() == 3;
  }));
  EXPECT_THAT(sends, ElementsAre("1 input_required", "2 input_required", "3 succeeded"));
}

TEST_P(RoundsTest, ATokenThatIsNotTheCallsOwnIsRefusedAndNothingIsSentOrCharged) {
  const Json question = client_.Call("led__append", kArguments);
  ASSERT_EQ(question["resultType"], "input_required") << question;
  Json changed = Answering(question);
  changed["requestState"] = question["requestState"].get<std::string>() + "x";
  EXPECT_EQ(client_.Call("led__append", kArguments, changed)["error"]["code"], -32602);
  changed["requestState"] = "1:secret";
  EXPECT_EQ(client_.Call("led__append", kArguments, changed)["error"]["code"], -32602);
  changed["requestState"] = 7;
  EXPECT_EQ(client_.Call("led__append", kArguments, changed)["error"]["code"], -32602);
  // Another tool, other arguments, another key.
  EXPECT_EQ(client_.Call("led__look", kArguments, Answering(question))["error"]["code"], -32602);
  EXPECT_EQ(client_.Call("led__append", {{"text", "two"}, {"ask", 1}}, Answering(question))["error"]["code"], -32602);
  Json keyed = Answering(question);
  keyed["_meta"] = {{"dev.tallystick/idempotency-key", "other"}};
  EXPECT_EQ(client_.Call("led__append", kArguments, keyed)["error"]["code"], -32602);
  EXPECT_EQ(Rounds().size(), 1u);
  EXPECT_EQ(CallsOf(permit_.permit_id()).size(), 1u);
  // None of that spent the real one, which is good once.
  EXPECT_EQ(TextOf(client_.Call("led__append", kArguments, Answering(question))), "done: one");
  EXPECT_EQ(client_.Call("led__append", kArguments, Answering(question))["error"]["code"], -32602);
  EXPECT_THAT(gateway_.Effects(), ElementsAre("one"));
}

TEST_P(RoundsTest, ATokenOfAnotherPermitIsRefused) {
  const Json question = client_.Call("led__append", kArguments);
  const auto other = MintFor({"led__append"});
  const Json refused = Client(other).Call("led__append", kArguments, Answering(question));
  EXPECT_EQ(refused["error"]["code"], -32602) << refused;
  EXPECT_THAT(CallsOf(other.permit_id()), IsEmpty());
  EXPECT_EQ(Rounds().size(), 1u);
}

TEST_P(RoundsTest, TheSameActUnderAnotherKeyWaitsForTheOneThatAsks) {
  client_.Call("led__append", kArguments);
  const Json refused = client_.Call("led__append", kArguments);
  EXPECT_EQ(KindOf(refused), "delivery_uncertain") << refused;
  EXPECT_EQ(Rounds().size(), 1u);
}

TEST_P(RoundsTest, TwoAnswersToOneQuestionAtTheSameTimeAreOne) {
  const Json question = client_.Call("led__append", kArguments);
  std::vector<std::future<Json>> answers;
  for (int i = 0; i < 4; ++i) {
    answers.push_back(
        std::async(std::launch::async, [&] { return client_.Call("led__append", kArguments, Answering(question)); }));
  }
  int done = 0;
  for (auto& answer : answers) done += TextOf(answer.get()) == "done: one" ? 1 : 0;
  EXPECT_EQ(done, 1);
  EXPECT_THAT(gateway_.Effects(), ElementsAre("one"));
}

TEST_P(RoundsTest, AGatewayKilledBetweenRoundsParksTheCallWhenItStartsAgain) {
  const Json question = client_.Call("led__append", kArguments);
  ASSERT_EQ(question["resultType"], "input_required") << question;
  gateway_.process().Kill(SIGKILL);
  gateway_.process().Wait();
  gateway_.Start();
  EXPECT_TRUE(Eventually([&] { return OnlyState(permit_.permit_id()) == v1::UNCERTAIN; }));
  const Json late = Client(permit_).Call("led__append", kArguments, Answering(question));
  EXPECT_EQ(late["error"]["code"], -32602) << late;
  EXPECT_THAT(gateway_.Effects(), IsEmpty());
}

TEST_P(RoundsTest, AGatewayThatIsStoppedBetweenRoundsParksTheCallAtOnce) {
  client_.Call("led__append", kArguments);
  gateway_.process().Kill(SIGTERM);
  EXPECT_EQ(gateway_.process().Wait(), 0);
  EXPECT_EQ(OnlyState(permit_.permit_id()), v1::UNCERTAIN);
}

TEST_P(RoundsTest, AnErrorInALaterRoundDoesNotSayWhatTheFirstOneDid) {
  const Json arguments = {{"text", "one"}, {"ask", 1}, {"then", "refuse"}};
  const Json question = client_.Call("led__append", arguments);
  EXPECT_EQ(KindOf(client_.Call("led__append", arguments, Answering(question))), "delivery_uncertain");
  EXPECT_EQ(OnlyState(permit_.permit_id()), v1::UNCERTAIN);
}

TEST_P(RoundsTest, ARevokedPermitsCallIsNotContinued) {
  const Json question = client_.Call("led__append", kArguments);
  grpc::ClientContext context;
  Prepare(context, TheFleet().credential(v1::OPERATOR));
  v1::RevokePermitRequest request;
  request.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse response;
  ASSERT_TRUE(v1::Permits::NewStub(TheFleet().replica(0).Channel())->Revoke(&context, request, &response).ok());
  const Json refused = client_.Call("led__append", kArguments, Answering(question));
  EXPECT_EQ(KindOf(refused), "delivery_uncertain") << refused;
  EXPECT_EQ(OnlyState(permit_.permit_id()), v1::UNCERTAIN);
  EXPECT_THAT(gateway_.Effects(), IsEmpty());
}

TEST(Rounds, ARoundThatNobodyContinuesParksTheCall) {
  TestGateway gateway({.upstream = "input_window = \"1s\"", .server = "modern_upstream.py"});
  const auto permit = MintFor({"led__append"});
  ModernClient client(gateway.port(), permit.permit_token());
  const Json question = client.Call("led__append", kArguments);
  ASSERT_EQ(question["resultType"], "input_required") << question;
  EXPECT_TRUE(Eventually([&] { return OnlyState(permit.permit_id()) == v1::UNCERTAIN; }));
  EXPECT_EQ(client.Call("led__append", kArguments, Answering(question))["error"]["code"], -32602);
  EXPECT_THAT(gateway.Effects(), IsEmpty());
}

TEST(Rounds, WithoutTallydNoRoundIsSentAndTheCallIsParked) {
  TestGateway gateway({.server = "modern_upstream.py"});
  const auto permit = MintFor({"led__append"});
  ModernClient client(gateway.port(), permit.permit_token());
  const Json question = client.Call("led__append", kArguments);
  ASSERT_EQ(question["resultType"], "input_required") << question;
  TheFleet().replica(0).Stop();
  const Json refused = client.Call("led__append", kArguments, Answering(question));
  TheFleet().replica(0).Start();
  EXPECT_THAT(KindOf(refused), ::testing::AnyOf("delivery_uncertain", "unavailable")) << refused;
  EXPECT_THAT(gateway.Effects(), IsEmpty());
}

// A client of the era before is asked while it waits, as that era has it.
TEST(Rounds, ALegacyClientIsAskedByRequestsOfItsOwnEra) {
  TestGateway gateway({.http = true, .server = "modern_upstream.py"});
  const auto permit = MintFor({"led__append"});
  McpClient client(gateway.port(), permit.permit_token());
  client.Initialize("2025-11-25", {{"elicitation", Json::object()}});
  auto called = std::async(std::launch::async, [&] {
    return client.Post(
        R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"led__append","arguments":{"text":"x","ask":1}}})");
  });
  ASSERT_TRUE(Eventually([&] { return gateway.Notes().size() >= 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(1000));
  EXPECT_EQ(client.Post(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"who":"Ada"}}})").status,
            202);
  const HttpAnswer answer = called.get();
  ASSERT_EQ(answer.messages.size(), 2u) << answer.body;
  EXPECT_EQ(answer.messages[0]["method"], "elicitation/create");
  EXPECT_EQ(answer.messages[0]["params"]["message"], "Who?");
  EXPECT_EQ(TextOf(answer.messages[1]["result"]), "done: x");
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::SUCCEEDED);
}

TEST(Rounds, ALegacyClientThatCannotBeAskedIsToldAndTheCallIsParked) {
  TestGateway gateway({.http = true, .server = "modern_upstream.py"});
  const auto permit = MintFor({"led__append"});
  McpClient client(gateway.port(), permit.permit_token());
  client.Initialize();
  const Json refused = client.Call("led__append", {{"text", "x"}, {"ask", 1}});
  EXPECT_EQ(KindOf(refused), "delivery_uncertain") << refused;
  EXPECT_THAT(TextOf(refused), HasSubstr("asked for input"));
  EXPECT_EQ(OnlyState(permit.permit_id()), v1::UNCERTAIN);
}

}  // namespace
}  // namespace tally::test
