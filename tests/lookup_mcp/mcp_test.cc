// What a read tool says, and servers of both eras and transports that say it.
#include "reconciler/lookup/mcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/gateway/support.h"

namespace tally::reconciler {
namespace {

using std::chrono::milliseconds;
using test::Folder;
using test::Json;
using ::testing::HasSubstr;

constexpr milliseconds kLong{20'000};

// {"found": true|false, "cost": 5}; anything else is unclear.
Answer JudgeFound(std::string_view text) {
  Answer answer;
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("found") || !json["found"].is_boolean()) return answer;
  answer.finding = json["found"] ? v1::FINDING_HAPPENED : v1::FINDING_ABSENT;
  if (json.contains("cost")) answer.amount = json["cost"].get<int64_t>();
  return answer;
}

v1::Finding FindingOf(const std::string& result) { return JudgeToolResult(result, JudgeFound).finding; }

std::string Block(const std::string& text) { return R"({"type":"text","text":)" + Json(text).dump() + "}"; }

TEST(ToolResult, StructureOrTheTextThatIsJsonIsJudged) {
  EXPECT_EQ(FindingOf(R"({"structuredContent":{"found":true},"content":[]})"), v1::FINDING_HAPPENED);
  EXPECT_EQ(FindingOf(R"({"structuredContent":{"found":false}})"), v1::FINDING_ABSENT);
  EXPECT_EQ(FindingOf(R"({"content":[)" + Block(R"({"found":true})") + "]}"), v1::FINDING_HAPPENED);
  EXPECT_EQ(FindingOf(R"({"isError":false,"content":[)" + Block(R"( {"found":false} )") + "]}"), v1::FINDING_ABSENT);
  EXPECT_EQ(FindingOf(R"({"structuredContent":{"found":true},"content":[)" + Block("found it") + "]}"),
            v1::FINDING_HAPPENED);
}

TEST(ToolResult, WhatContradictsItselfIsUnclear) {
  EXPECT_EQ(FindingOf(R"({"structuredContent":{"found":true},"content":[)" + Block(R"({"found":false})") + "]}"),
            v1::FINDING_UNCLEAR);
  EXPECT_EQ(FindingOf(R"({"content":[)" + Block(R"({"found":true})") + "," + Block(R"({"found":false})") + "]}"),
            v1::FINDING_UNCLEAR);
  EXPECT_EQ(FindingOf(R"({"content":[)" + Block(R"({"found":true,"cost":1})") + "," +
                      Block(R"({"found":true,"cost":2})") + "]}"),
            v1::FINDING_UNCLEAR);
  EXPECT_EQ(FindingOf(R"({"content":[)" + Block(R"({"found":true})") + "," + Block(R"({"found":true})") + "]}"),
            v1::FINDING_HAPPENED);
}

TEST(ToolResult, AnErrorOrWhatIsNoWholeAnswerIsUnclearWhateverItSays) {
  const std::string found = R"("structuredContent":{"found":true})";
  for (const std::string& result : {
           R"({"isError":true,)" + found + "}",
           R"({"isError":"no",)" + found + "}",
           R"({"resultType":"input_required",)" + found + "}",
           R"({"_meta":{"dev.tallystick/error":{"kind":"denied","code":"X"}},)" + found + "}",
           R"({"content":7,)" + found + "}",
           R"({"content":[7],)" + found + "}",
           std::string(R"({"structuredContent":{}})"),
           std::string(R"({"structuredContent":7})"),
           std::string(R"({"content":[]})"),
           std::string("{}"),
           std::string("[]"),
           std::string("7"),
           R"({"content":[)" + Block("not found") + "]}",
           R"({"content":[)" + Block("it is:") + "," + Block(R"({"found":true})") + "]}",
           std::string(R"({"content":[{"type":"image","text":"{\"found\":true}"}]})"),
       }) {
    EXPECT_EQ(FindingOf(result), v1::FINDING_UNCLEAR) << result;
    EXPECT_EQ(JudgeToolResult(result, JudgeFound).body, result);
    if (JudgeToolResult(result, JudgeFound).detail.empty()) {
      EXPECT_EQ(result.substr(0, 21), R"({"structuredContent":)") << result;
    }
  }
}

// Servers of the gateway's tests: tool `look` answers with the params that it was called with.
class McpLookUpTest : public ::testing::Test {
 protected:
  void Serve(const std::string& script, bool http, const std::string& more = "") {
    const std::string file = (std::filesystem::current_path() / "tests/gateway" / script).string();
    const std::string ledger = (folder_ / "effects").string();
    std::string upstream = "[upstreams.led]\n" + more;
    if (http) {
      server_ = std::make_unique<test::Process>(std::vector<std::string>{"/usr/bin/python3", file, "--http"},
                                                std::map<std::string, std::string>{{"LEDGER", ledger}},
                                                folder_ / "server.log");
      std::string port;
      ASSERT_TRUE(test::Eventually([&] {
        port = test::ReadText(folder_ / "server.log");
        return port.ends_with('\n');
      }));
      port.pop_back();
      upstream += "url = \"http://127.0.0.1:" + port + "/mcp\"\n";
    } else {
      upstream += "command = \"/usr/bin/python3\"\nargs = [\"" + file + "\"]\nenv = { LEDGER = \"" + ledger + "\" }\n";
    }
    test::WriteFile(folder_ / "upstreams.toml", upstream);
    auto audit = gateway::AuditLog::Open({.path = (folder_ / "audit.jsonl").string()});
    ASSERT_TRUE(audit.ok());
    audit_ = *std::move(audit);
  }

  // Tool `look` is found if it was asked for the reference; `where`: its arguments' place in its answer.
  Answer Ask(const std::string& tool, const std::string& arguments, milliseconds timeout = kLong,
             const std::string& where = "/arguments") {
    ToolConfig config;
    config.tool = "led__append";
    config.kind = Kind::kMcp;
    config.timeout = timeout;
    config.mcp.gateway_config = (folder_ / "upstreams.toml").string();
    config.mcp.tool = tool;
    config.mcp.arguments = *JsonTemplate::Parse(R"({"reference":"{reference}",)" + arguments.substr(1));
    config.answer.records = *json::Pointer::Parse(where);
    config.answer.match.pointer = *json::Pointer::Parse("/reference");
    config.answer.match.text = *Text::Parse("{reference}");
    config.answer.record_is_happened = true;
    const auto look_up = McpLookUp::Make(config, audit_.get());
    EXPECT_TRUE(look_up.ok()) << look_up.status();
    v1::ParkedCall parked;
    parked.mutable_call()->set_call_id("018f0000-0000-7000-8000-000000000001");
    parked.mutable_call()->set_unit("USD/2");
    const Answer answer = (*look_up)->Ask({parked, "abc", "def", "claim"});
    const Json result = Json::parse(answer.body, nullptr, false);
    if (result.is_object()) said_ = Json::parse(test::TextOf(result), nullptr, false);
    return answer;
  }

  // "METHOD OUTCOME" of all that was sent.
  std::vector<std::string> Audited() {
    audit_.reset();
    std::vector<std::string> lines;
    std::istringstream text(test::ReadText(folder_ / "audit.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const Json entry = Json::parse(line);
      EXPECT_EQ(entry["call_id"], "018f0000-0000-7000-8000-000000000001");
      lines.push_back(entry["method"].get<std::string>() + " " + entry["outcome"].get<std::string>());
    }
    return lines;
  }

  Folder folder_;
  std::unique_ptr<test::Process> server_;
  std::unique_ptr<gateway::AuditLog> audit_;
  Json said_;
};

TEST_F(McpLookUpTest, AServerOnStandardStreamsIsAskedAndEveryRequestHasItsLine) {
  Serve("upstream.py", false);
  EXPECT_EQ(Ask("look", R"({"more":1})").finding, v1::FINDING_HAPPENED);
  EXPECT_EQ(said_["name"], "look");
  EXPECT_EQ(said_["arguments"], Json({{"reference", "abc"}, {"more", 1}}));
  EXPECT_THAT(Audited(), testing::ElementsAre("initialize answered", "tools/call answered"));
}

TEST_F(McpLookUpTest, AServerOverHttpIsAskedAndItsSessionIsEnded) {
  Serve("upstream.py", true);
  EXPECT_EQ(Ask("look", R"({"more":1})").finding, v1::FINDING_HAPPENED);
  EXPECT_EQ(said_["arguments"]["reference"], "abc");
  EXPECT_THAT(test::ReadText(folder_ / "effects"), HasSubstr("# deleted"));
}

TEST_F(McpLookUpTest, AServerOfTheNewEraOverHttpIsAskedWithItsHeaders) {
  Serve("modern_upstream.py", true);
  EXPECT_EQ(Ask("look", R"({"text":"é"})", kLong, "/params/arguments").finding, v1::FINDING_HAPPENED);
  EXPECT_EQ(said_["params"]["arguments"]["reference"], "abc");
  EXPECT_EQ(said_["headers"]["mcp-method"], "tools/call");
  EXPECT_EQ(said_["headers"]["mcp-param-text"], "=?base64?w6k=?=");
  EXPECT_THAT(Audited(), testing::ElementsAre("initialize failed", "server/discover answered", "tools/list answered",
                                              "tools/call answered"));
}

TEST_F(McpLookUpTest, AServerOfBothErasOnStandardStreamsIsAsked) {
  Serve("modern_upstream.py", false);
  EXPECT_EQ(Ask("look", R"({"text":"x"})", kLong, "/params/arguments").finding, v1::FINDING_HAPPENED);
  EXPECT_EQ(said_["params"]["arguments"]["reference"], "abc");
}

TEST_F(McpLookUpTest, AServerThatDiesAnswersNothingOrIsSilentIsUnclearAndNothingStaysBehind) {
  Serve("upstream.py", false);
  EXPECT_EQ(Ask("append", R"({"then":"die"})").finding, v1::FINDING_UNCLEAR);
  const Answer silent = Ask("append", R"({"then":"silence"})", milliseconds(2'000));
  EXPECT_EQ(silent.finding, v1::FINDING_UNCLEAR);
  EXPECT_THAT(silent.detail, HasSubstr("in time"));
  EXPECT_EQ(Ask("append", R"({"then":"garbage"})").finding, v1::FINDING_UNCLEAR);
  EXPECT_EQ(Ask("append", R"({"then":"rpc","code":-32602})").finding, v1::FINDING_UNCLEAR);
  EXPECT_EQ(Ask("append", R"({"then":"error"})").finding, v1::FINDING_UNCLEAR);
  int status = 0;
  EXPECT_EQ(test::Shell("ps --ppid " + std::to_string(getpid()) + " -o args= | grep -c '[u]pstream.py'", &status),
            "0\n");
}

TEST_F(McpLookUpTest, AnAnswerOverTheLimitIsUnclear) {
  Serve("upstream.py", false);
  EXPECT_EQ(Ask("append", R"({"then":"big","bytes":2000000})").finding, v1::FINDING_UNCLEAR);
}

TEST_F(McpLookUpTest, AServerThatIsNotThereIsUnclear) {
  Serve("upstream.py", true);
  server_.reset();
  const Answer answer = Ask("look", R"({"more":1})");
  EXPECT_EQ(answer.finding, v1::FINDING_UNCLEAR);
  EXPECT_THAT(answer.detail, HasSubstr("was not asked"));
}

TEST_F(McpLookUpTest, AnUpstreamThatTheFileDoesNotHaveIsRefusedByName) {
  Serve("upstream.py", false);
  const auto found = FindUpstream((folder_ / "upstreams.toml").string(), "other");
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("[upstreams.other]"));
}

}  // namespace
}  // namespace tally::reconciler
