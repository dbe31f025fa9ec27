// What an operator does to a gateway that runs: SIGHUP, another configuration, another start.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <future>

#include "tests/gateway/support.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

McpClient Connected(const TestGateway& gateway, const v1::MintResponse& permit) {
  McpClient client(gateway.port(), permit.permit_token());
  EXPECT_EQ(client.Initialize().status, 200);
  return client;
}

v1::CallState OnlyState(const std::string& permit_id) {
  grpc::ClientContext context;
  Prepare(context, TheFleet().credential(v1::OPERATOR));
  v1::ListCallsRequest request;
  request.set_permit_id(permit_id);
  v1::ListCallsResponse response;
  const auto stub = v1::Calls::NewStub(TheFleet().replica(0).Channel());
  EXPECT_TRUE(stub->ListCalls(&context, request, &response).ok());
  return response.calls_size() == 1 ? response.calls(0).state() : v1::CALL_STATE_UNSPECIFIED;
}

// The configuration with one text in place of another.
void Reconfigure(const TestGateway& gateway, const std::string& from, const std::string& to) {
  std::string text = ReadText(gateway.ConfigPath());
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << text;
  WriteFile(gateway.ConfigPath(), text.replace(at, from.size(), to));
}

TEST(Operations, SighupOpensTheAuditLogAnewAndEndsNothing) {
  TestGateway gateway;
  McpClient client = Connected(gateway, MintFor({"led__*"}));
  const auto audit = gateway.folder() / "audit.jsonl";
  const auto moved = gateway.folder() / "audit.moved";
  EXPECT_EQ(TextOf(client.Call("led__append", {{"text", "one"}})), "done: one");
  EXPECT_TRUE(Eventually([&] { return ReadText(audit).find("tools/call") != std::string::npos; }));
  std::filesystem::rename(audit, moved);
  gateway.process().Kill(SIGHUP);
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(audit); }));
  const std::string before = ReadText(moved);
  EXPECT_EQ(TextOf(client.Call("led__append", {{"text", "two"}})), "done: two");
  EXPECT_TRUE(Eventually([&] { return ReadText(audit).find("tools/call") != std::string::npos; }));
  EXPECT_EQ(ReadText(moved), before);
}

TEST(Operations, AfterAStartWithAnotherConfigurationSessionsAreGoneAndWhatWasSentIsCommitted) {
  TestGateway gateway;
  const auto permit = MintFor({"led__*", "other__*"});
  McpClient client = Connected(gateway, permit);
  auto waiting = std::async(std::launch::async, [&] {
    return client.Call("led__append", {{"text", "one"}, {"then", "sleep"}, {"seconds", 60}});
  });
  ASSERT_TRUE(Eventually([&] { return !gateway.Effects().empty(); }));
  gateway.process().Kill(SIGKILL);
  gateway.process().Wait();
  waiting.get();
  // The upstream that the call went to has another name now.
  Reconfigure(gateway, "[upstreams.led]", "[upstreams.other]");
  gateway.Start();
  EXPECT_TRUE(Eventually([&] { return OnlyState(permit.permit_id()) == v1::UNCERTAIN; }));
  McpClient again(gateway.port(), permit.permit_token());
  auto headers = client.Headers();
  headers["Content-Type"] = "application/json";
  EXPECT_EQ(Http(gateway.port(), "POST", headers, R"({"jsonrpc":"2.0","id":1,"method":"ping"})").status, 404);
  again.Initialize();
  EXPECT_EQ(TextOf(again.Call("other__append", {{"text", "two"}})), "done: two");
  EXPECT_TRUE(again.Call("led__append", {{"text", "three"}}).contains("error"));
  EXPECT_THAT(gateway.Effects(), ElementsAre("one", "two"));
}

TEST(Operations, AConfigurationThatIsRefusedStartsNothingAndTouchesNothing) {
  TestGateway gateway;
  gateway.process().Kill(SIGTERM);
  EXPECT_EQ(gateway.process().Wait(), 0);
  const std::string journal = ReadText(gateway.folder() / "journal");
  Reconfigure(gateway, "[upstreams.led]", "[limits]\ncalls_max = 0\n[upstreams.led]");
  int status = 0;
  const std::string said =
      Shell("timeout 60 " + GatewayProgram() + " serve " + gateway.ConfigPath() + " 2>&1", &status);
  EXPECT_EQ(status, 2);
  EXPECT_THAT(said, HasSubstr("limits.calls_max"));
  EXPECT_THAT(said, HasSubstr("Nothing was started."));
  EXPECT_EQ(ReadText(gateway.folder() / "journal"), journal);
}

TEST(Operations, TwoGatewaysDoNotShareAJournal) {
  TestGateway gateway;
  int status = 0;
  EXPECT_THAT(Shell("timeout 60 " + GatewayProgram() + " serve " + gateway.ConfigPath() + " 2>&1", &status),
              HasSubstr("in use by another gateway"));
  EXPECT_EQ(status, 1);
}

}  // namespace
}  // namespace tally::test
