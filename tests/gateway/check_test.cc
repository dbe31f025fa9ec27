// `tally-gateway check`: what it says of upstreams, tools and a permit, and how it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "tests/gateway/support.h"

namespace tally::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckTest : public ::testing::Test {
 protected:
  CheckTest() {
    gateway_.process().Kill(SIGTERM);
    EXPECT_EQ(gateway_.process().Wait(), 0);
  }

  void AddConfig(const std::string& lines) { std::ofstream(gateway_.ConfigPath(), std::ios::app) << "\n" << lines; }

  std::string Check(const std::string& options = "", const std::string& environment = "") {
    return Shell(
        environment + " timeout 60 " + GatewayProgram() + " check " + gateway_.ConfigPath() + " " + options + " 2>&1",
        &status_);
  }
  Json CheckJson(const std::string& options = "", const std::string& environment = "") {
    return Json::parse(Check("-o json " + options, environment));
  }
  std::string TokenFile(const v1::MintResponse& permit) {
    WriteFile(gateway_.folder() / "token", permit.permit_token() + "\n");
    return "--permit file:" + (gateway_.folder() / "token").string();
  }

  TestGateway gateway_;
  int status_ = -1;
};

Json ToolNamed(const Json& report, const std::string& name) {
  for (const Json& upstream : report["upstreams"]) {
    for (const Json& tool : upstream["tools"]) {
      if (tool["name"] == name) return tool;
    }
  }
  return Json();
}

TEST_F(CheckTest, EveryToolIsListedWithTheBucketThatTheConfigurationGivesIt) {
  AddConfig("[upstreams.led.tools.other]\nreplay = \"keyed\"\nkey = { argument = \"k\" }\nreplay_window = \"1h\"\n");
  const std::string table = Check();
  EXPECT_EQ(status_, 0) << table;
  EXPECT_THAT(table, HasSubstr("led: speaks MCP 2025-11-25, tools: 3\n"));
  EXPECT_THAT(table, HasSubstr("  TOOL         BUCKET  PIN\n  led__append  once    new\n  led__other   keyed   new\n  "
                               "led__look    once    new\n"));
  const Json report = CheckJson();
  EXPECT_EQ(report["ok"], true);
  EXPECT_EQ(ToolNamed(report, "other")["bucket"], "keyed");
  EXPECT_FALSE(report.contains("permit"));
}

TEST_F(CheckTest, GivenAPermitItSaysWhatCoversEachToolAndWhatIsLeftOver) {
  const auto permit = MintFor({"led__append", "led__lo*", "led__gone", "elsewhere__*"});
  const std::string table = Check(TokenFile(permit));
  EXPECT_EQ(status_, 0) << table;
  EXPECT_THAT(table, HasSubstr("  led__append  once    new  led__append\n"));
  EXPECT_THAT(table, HasSubstr("  led__look    once    new  led__lo*\n"));
  EXPECT_THAT(table, HasSubstr("  tools that no grant covers:\n    led__other\n"));
  EXPECT_THAT(table, HasSubstr("  grants that match no tool:\n    led__gone\n    elsewhere__*\n"));
  EXPECT_THAT(table, HasSubstr(permit.permit_id()));
  EXPECT_THAT(table, Not(HasSubstr(permit.permit_token())));
}

TEST_F(CheckTest, ATokenInTheEnvironmentIsTakenWithoutBeingAskedFor) {
  const auto permit = MintFor({"led__append"});
  setenv("TALLY_PERMIT_TOKEN", permit.permit_token().c_str(), 1);
  const Json report = CheckJson();
  setenv("OTHER_NAME", permit.permit_token().c_str(), 1);
  unsetenv("TALLY_PERMIT_TOKEN");
  const Json named = CheckJson("--permit env:OTHER_NAME");
  unsetenv("OTHER_NAME");
  for (const Json& one : {report, named}) {
    EXPECT_EQ(one["permit"]["permit_id"], permit.permit_id()) << one;
    EXPECT_EQ(one["permit"]["state"], "ACTIVE");
    EXPECT_THAT(one["permit"]["not_covered"], ElementsAre("led__other", "led__look"));
    EXPECT_EQ(ToolNamed(one, "append")["grant"], "led__append");
    EXPECT_TRUE(ToolNamed(one, "other")["grant"].is_null());
  }
}

TEST_F(CheckTest, AToolThatItsGrantCallsAReadIsInABucketOfItsOwn) {
  v1::MintRequest request;
  request.set_subject("reader");
  request.set_unit("USD/2");
  request.mutable_budget()->set_unlimited(true);
  request.set_expires_in_ms(60'000);
  v1::GrantTerms* grant = request.add_grants();
  grant->set_tool("led__look");
  grant->mutable_cap()->set_unlimited(true);
  grant->mutable_budget()->set_unlimited(true);
  grant->set_effect(v1::READ);
  const Json report = CheckJson(TokenFile(TheFleet().Mint(request)));
  EXPECT_EQ(ToolNamed(report, "look")["bucket"], "read") << report;
  EXPECT_EQ(ToolNamed(report, "append")["bucket"], "once");
}

TEST_F(CheckTest, ATokenIsNeverAnArgumentAndOneThatIsGivenAsSuchIsNotRepeated) {
  const std::string output = Check("--permit A3Zk5Yk0h0Jr7t3o8gqj6yqkq8Jq0a8Z9yqk5o8gqj6");
  EXPECT_EQ(status_, 2);
  EXPECT_THAT(output, HasSubstr("--permit"));
  EXPECT_THAT(output, Not(HasSubstr("A3Zk5")));
}

TEST_F(CheckTest, ATokenThatIsNotKnownOrNotThereIsSaid) {
  WriteFile(gateway_.folder() / "token", "A3Zk5Yk0h0Jr7t3o8gqj6yqkq8Jq0a8Z9yqk5o8gqj6");
  const std::string unknown = Check("--permit file:" + (gateway_.folder() / "token").string());
  EXPECT_EQ(status_, 1) << unknown;
  EXPECT_THAT(unknown, HasSubstr("permit: it cannot be looked up"));
  EXPECT_THAT(unknown, HasSubstr("led__append"));
  Check("--permit env:NOT_THERE");
  EXPECT_EQ(status_, 2);
}

TEST_F(CheckTest, WithoutTallydTheToolsAreListedAllTheSameAndTheExitStatusTells) {
  const std::string token = TokenFile(MintFor({"led__append"}));
  TheFleet().replica(0).Stop();
  const std::string output = Check(token);
  TheFleet().replica(0).Start();
  EXPECT_EQ(status_, 3) << output;
  EXPECT_THAT(output, HasSubstr("led__append"));
  EXPECT_THAT(output, HasSubstr("permit: tallyd cannot be asked"));
}

TEST_F(CheckTest, NamesThatNoPermitCanSayAreLeftOutAndReported) {
  const Json schema = {{"type", "object"}};
  const Json tools = {{{"name", "fine"}, {"inputSchema", schema}},
                      {{"name", "two words\x1b[2J"}, {"inputSchema", schema}},
                      {{"name", std::string(124, 'x')}, {"inputSchema", schema}},
                      {{"inputSchema", schema}}};
  WriteFile(gateway_.folder() / "ledger.tools", tools.dump());
  const std::string table = Check();
  EXPECT_EQ(status_, 0) << table;
  EXPECT_THAT(table, HasSubstr("led__fine"));
  EXPECT_THAT(table, HasSubstr("left out: \"two words\\u001b[2J\": its name has characters that no permit can name"));
  EXPECT_THAT(table, HasSubstr("xxx\": with its upstream's name it is over 128 bytes long"));
  EXPECT_THAT(table, HasSubstr("left out: \"\": it has no name"));
}

TEST_F(CheckTest, AnUpstreamThatCannotBeHadIsSaidAndItsGrantsAreNotCalledWithoutATool) {
  AddConfig("[upstreams.none]\ncommand = \"/nonexistent\"\n");
  const std::string table = Check(TokenFile(MintFor({"led__append", "none__x"})));
  EXPECT_EQ(status_, 1) << table;
  EXPECT_THAT(table, HasSubstr("none: cannot be had: "));
  EXPECT_THAT(table, HasSubstr("led__append"));
  EXPECT_THAT(table, HasSubstr("  grants on upstreams that cannot be had:\n    none__x\n"));
  EXPECT_THAT(table, Not(HasSubstr("match no tool")));
}

TEST_F(CheckTest, AConfigurationThatIsRefusedStartsNothing) {
  AddConfig("nonsense = 1\n");
  EXPECT_THAT(Check(), HasSubstr("Nothing was started."));
  EXPECT_EQ(status_, 2);
}

}  // namespace
}  // namespace tally::test
