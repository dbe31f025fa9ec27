#include "gateway/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tally::gateway {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

constexpr char kUpstream[] = "[upstreams.u]\ncommand = \"server\"\n";

std::string Wrong(const std::string& text) {
  const auto config = ParseConfig(text, "f");
  return config.ok() ? "" : std::string(config.status().message());
}

TEST(GatewayConfig, AnEmptyFileIsAllDefaults) {
  const auto config = ParseConfig("", "f");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->listen.address, "127.0.0.1:8700");
  EXPECT_EQ(config->audit.on_failure, Config::AuditFailure::kClosed);
  EXPECT_TRUE(config->upstreams.empty());
}

TEST(GatewayConfig, ReadsUpstreamsOfBothKindsAndTheirTools) {
  const auto config = ParseConfig(R"(
[upstreams.files]
command = "npx"
args = ["-y", "server-filesystem", "/data"]
env = { NODE_ENV = "production" }
env_files = { API_KEY = "api.key" }
timeout = "20s"
shared = true
pin = "strict"

[upstreams.pay]
url = "https://pay.example:8443/mcp?v=2"
headers_file = "pay.headers"
read_tries = 1

[upstreams.pay.tools.refund]
timeout = "25s"
replay = "keyed"
key = { header = "X-Request-Key" }
replay_window = "24h"
reference = { argument = "memo" }
error_rules = [{ pattern = "^card declined", means = "no_effect" }, { pattern = "later", means = "uncertain" }]

[upstreams.pay.tools."a.b"]
key = { meta = "pay.example/key" }
replay = "keyed"
replay_window = "1h"
)",
                                  "f");
  ASSERT_TRUE(config.ok()) << config.status();
  const UpstreamConfig& files = config->upstreams.at("files");
  EXPECT_THAT(files.args, ElementsAre("-y", "server-filesystem", "/data"));
  EXPECT_THAT(files.env, ElementsAre(Pair("NODE_ENV", "production")));
  EXPECT_THAT(files.env_files, ElementsAre(Pair("API_KEY", "api.key")));
  EXPECT_TRUE(files.shared);
  EXPECT_EQ(files.pin, Pin::kStrict);
  // A tool without a table of its own has the upstream's times.
  EXPECT_EQ(files.ForTool("any").timeout, seconds(20));
  EXPECT_FALSE(files.ForTool("any").keyed);

  const UpstreamConfig& pay = config->upstreams.at("pay");
  EXPECT_EQ(pay.url, "https://pay.example:8443/mcp?v=2");
  EXPECT_EQ(pay.read_tries, 1);
  const ToolConfig refund = pay.ForTool("refund");
  EXPECT_EQ(refund.timeout, seconds(25));
  EXPECT_TRUE(refund.keyed);
  EXPECT_EQ(refund.key, (Placement{Placement::Where::kHeader, "X-Request-Key"}));
  EXPECT_EQ(refund.replay_window, hours(24));
  EXPECT_EQ(refund.reference, (Placement{Placement::Where::kArgument, "memo"}));
  ASSERT_EQ(refund.error_rules.size(), 2u);
  EXPECT_EQ(refund.error_rules[0].pattern, "^card declined");
  EXPECT_EQ(refund.error_rules[0].means, mcp::ErrorRule::Means::kNoEffect);
  EXPECT_EQ(refund.error_rules[1].means, mcp::ErrorRule::Means::kUncertain);
  EXPECT_EQ(pay.ForTool("a.b").key, (Placement{Placement::Where::kMeta, "pay.example/key"}));
}

TEST(GatewayConfig, AToolTakesItsUpstreamsTimesWhereItSaysNone) {
  const auto config = ParseConfig(
      "[upstreams.u]\ncommand = \"x\"\ntimeout = \"7s\"\nlate_answer_window = \"1m\"\n[upstreams.u.tools.t]\ntimeout = "
      "\"3s\"\n",
      "f");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->upstreams.at("u").ForTool("t").timeout, seconds(3));
  EXPECT_EQ(config->upstreams.at("u").ForTool("t").late_answer_window, seconds(60));
}

TEST(GatewayConfig, AllMistakesAreNamedAtOnceWithTheirLines) {
  const std::string wrong = Wrong(
      "log_level = \"loud\"\nlisten.adress = \"x\"\n[upstreams.Bad]\ncommand = \"x\"\nretries = 3\n"
      "[upstreams.Bad.tools.t]\nretry = true\n");
  EXPECT_THAT(wrong, HasSubstr("f:1: log_level must be"));
  EXPECT_THAT(wrong, HasSubstr("f:2: there is no setting \"listen.adress\""));
  EXPECT_THAT(wrong, HasSubstr("names one 'Bad', and a name is [a-z0-9-]{1,32}"));
  EXPECT_THAT(wrong, HasSubstr("f:5: there is no setting \"upstreams.Bad.retries\""));
  EXPECT_THAT(wrong, HasSubstr("f:7: there is no setting \"upstreams.Bad.tools.t.retry\""));
}

TEST(GatewayConfig, AToolsCallHasNoSettingForRetries) {
  for (const char* name : {"retries", "tries", "read_tries", "retry"}) {
    EXPECT_THAT(Wrong(std::string(kUpstream) + "[upstreams.u.tools.t]\n" + name + " = 2\n"),
                HasSubstr("there is no setting"));
  }
}

TEST(GatewayConfig, ReplayNeedsItsKeyAndWindowAndTheyNeedReplay) {
  const std::string tool = std::string(kUpstream) + "[upstreams.u.tools.t]\n";
  EXPECT_THAT(Wrong(tool + "replay = \"keyed\"\nreplay_window = \"1h\"\n"), HasSubstr("tools.t.key must be written"));
  EXPECT_THAT(Wrong(tool + "replay = \"keyed\"\nkey = { argument = \"k\" }\n"),
              HasSubstr("replay_window must be written"));
  EXPECT_THAT(Wrong(tool + "key = { argument = \"k\" }\n"), HasSubstr("only with replay = \"keyed\""));
  EXPECT_THAT(Wrong(tool + "replay_window = \"1h\"\n"), HasSubstr("only with replay = \"keyed\""));
  EXPECT_THAT(Wrong(tool + "replay = \"keyed\"\nkey = { argument = \"k\" }\nreplay_window = \"30s\"\n"),
              HasSubstr("must be above the tool's timeout"));
  EXPECT_THAT(Wrong(tool + "replay = \"keyed\"\nkey = { argument = \"k\" }\nreplay_window = \"60s\"\n"),
              HasSubstr("it would never be sent again"));
  EXPECT_EQ(Wrong(tool + "replay = \"keyed\"\nkey = { argument = \"k\" }\nreplay_window = \"61s\"\n"), "");
  EXPECT_THAT(Wrong(tool + "replay = \"keyed\"\nkey = { argument = \"k\", meta = \"m\" }\nreplay_window = \"1h\"\n"),
              HasSubstr("must be one of"));
  EXPECT_THAT(Wrong(tool + "replay = \"keyed\"\nkey = {}\nreplay_window = \"1h\"\n"), HasSubstr("must be one of"));
  EXPECT_THAT(
      Wrong(
          tool +
          "replay = \"keyed\"\nkey = { argument = \"k\" }\nreference = { argument = \"k\" }\nreplay_window = \"1h\"\n"),
      HasSubstr("is put where the key is"));
  EXPECT_THAT(Wrong(tool + "replay = \"keyed\"\nkey = { header = \"X-Key\" }\nreplay_window = \"1h\"\n"),
              HasSubstr("a command has none"));
}

TEST(GatewayConfig, WhatErrorsMeanIsSettledWhenItIsRead) {
  const auto config =
      ParseConfig("[mcp]\nuncertain_words = [\"try later\"]\n" + std::string(kUpstream) +
                      "[upstreams.u.tools.t]\nerror_rules = [{ pattern = \"card declined\", means = \"no_effect\" }]\n",
                  "f");
  ASSERT_TRUE(config.ok()) << config.status();
  const UpstreamConfig& upstream = config->upstreams.at("u");
  EXPECT_TRUE(upstream.ForTool("any").judged_by.LooksUncertain("please TRY LATER"));
  EXPECT_EQ(upstream.ForTool("any").judged_by.Find("card declined"), nullptr);
  EXPECT_TRUE(upstream.ForTool("t").judged_by.LooksUncertain("please TRY LATER"));
  ASSERT_NE(upstream.ForTool("t").judged_by.Find("the card declined it"), nullptr);
  EXPECT_EQ(*upstream.ForTool("t").judged_by.Find("the card declined it"), mcp::ErrorRule::Means::kNoEffect);
}

TEST(GatewayConfig, OnlyACommandCanBeShared) {
  EXPECT_THAT(Wrong("[upstreams.u]\nurl = \"https://x/mcp\"\nshared = true\n"), HasSubstr("is for a command"));
}

TEST(GatewayConfig, HeadersThatLibrariesResendOrThatBelongToMcpAreRefused) {
  for (const char* header :
       {"Idempotency-Key", "x-idempotency-key", "MCP-Session-Id", "Host", "content-length", "a b", ""}) {
    const std::string text =
        "[upstreams.u]\nurl = \"https://x/mcp\"\n[upstreams.u.tools.t]\nreplay = \"keyed\"\n"
        "replay_window = \"1h\"\nkey = { header = \"" +
        std::string(header) + "\" }\n";
    EXPECT_NE(Wrong(text), "") << header;
  }
}

TEST(GatewayConfig, ErrorRulesMustBeWholeAndCompile) {
  const std::string tool = std::string(kUpstream) + "[upstreams.u.tools.t]\nerror_rules = [";
  EXPECT_THAT(Wrong(tool + "{ pattern = \"(\", means = \"error\" }]\n"),
              HasSubstr("error_rules[0].pattern is no pattern in RE2"));
  EXPECT_THAT(Wrong(tool + "{ pattern = \"a\" }]\n"), HasSubstr("means must be written"));
  EXPECT_THAT(Wrong(tool + "{ means = \"error\" }]\n"), HasSubstr("pattern must be written"));
  EXPECT_THAT(Wrong(tool + "{ pattern = \"a\", means = \"retry\" }]\n"),
              HasSubstr("\"uncertain\", \"error\" or \"no_effect\""));
  EXPECT_THAT(Wrong(tool + "{ pattern = \"(?=a)\", means = \"error\" }]\n"), HasSubstr("RE2"));
}

TEST(GatewayConfig, AnUpstreamIsACommandOrAUrlAndEachHasItsOwnSettings) {
  EXPECT_THAT(Wrong("[upstreams.u]\n"), HasSubstr("one of command and url must be given"));
  EXPECT_THAT(Wrong("[upstreams.u]\ncommand = \"x\"\nurl = \"https://x\"\n"), HasSubstr("and not both"));
  EXPECT_THAT(Wrong("[upstreams.u]\nurl = \"https://x\"\nargs = [\"a\"]\n"), HasSubstr("args belongs to a command"));
  EXPECT_THAT(Wrong("[upstreams.u]\ncommand = \"x\"\nheaders_file = \"h\"\n"),
              HasSubstr("headers_file belongs to a url"));
  EXPECT_THAT(Wrong("[upstreams.tally]\ncommand = \"x\"\n"), HasSubstr("the gateway's own name"));
  EXPECT_THAT(Wrong(std::string(kUpstream) + "env = { A = \"1\" }\nenv_files = { A = \"f\" }\n"),
              HasSubstr("and so does env"));
  EXPECT_THAT(Wrong(std::string(kUpstream) + "env = { TALLY_PERMIT_TOKEN = \"t\" }\n"), HasSubstr("permit token"));
}

TEST(GatewayConfig, PlainHttpGoesToLoopbackOnlyAndUrlsHoldNoPassword) {
  for (const char* url : {"https://a.example/mcp", "https://a.example", "http://127.0.0.1:3000/mcp",
                          "http://localhost:1/x?y=z", "http://[::1]:3000/mcp", "https://[2001:db8::1]/mcp"}) {
    EXPECT_EQ(Wrong("[upstreams.u]\nurl = \"" + std::string(url) + "\"\n"), "") << url;
  }
  for (const char* url :
       {"http://a.example/mcp", "http://127.0.0.1.example/mcp", "https://user:pw@a.example/", "ftp://a/", "a.example",
        "https://", "https://a/#f", "https://a b/", "https://a:port/", "http://localhost.example/"}) {
    EXPECT_NE(Wrong("[upstreams.u]\nurl = \"" + std::string(url) + "\"\n"), "") << url;
  }
}

TEST(GatewayConfig, AnAddressThatIsReachedFromOutsideNeedsAllowedHosts) {
  EXPECT_THAT(Wrong("[listen]\naddress = \"0.0.0.0:80\"\n"), HasSubstr("listen.allowed_hosts must say"));
  EXPECT_EQ(Wrong("[listen]\naddress = \"0.0.0.0:80\"\nallowed_hosts = [\"gw.example\", \"gw.example:8443\", "
                  "\"[2001:db8::1]:80\"]\n"),
            "");
  EXPECT_EQ(Wrong("[listen]\naddress = \"[::1]:0\"\n"), "");
  for (const char* address :
       {"localhost", "127.0.0.1:65536", "127.0.0.1:", ":80", "127.0.0.1:8o", "::1:80", "127.0.0.1:-1"}) {
    EXPECT_THAT(Wrong("[listen]\naddress = \"" + std::string(address) + "\"\n"), HasSubstr("f:2: listen.address"))
        << address;
  }
  for (const char* host : {"*", "*.example", "a/b", "a:b", "", "a:123456"}) {
    EXPECT_NE(Wrong("[listen]\nallowed_hosts = [\"" + std::string(host) + "\"]\n"), "") << host;
  }
  for (const char* origin : {"gw.example", "null", "*", "https://a/b", "ftp://a"}) {
    EXPECT_NE(Wrong("[listen]\nallowed_origins = [\"" + std::string(origin) + "\"]\n"), "") << origin;
  }
}

TEST(GatewayConfig, PermitSourcesAreTheOnesThatAreKnown) {
  for (const char* source : {"bearer", "header:X-Permit"}) {
    EXPECT_EQ(Wrong("[permit]\nhttp = \"" + std::string(source) + "\"\n"), "") << source;
  }
  for (const char* source :
       {"", "cookie", "header:", "header:Authorization", "header:a b", "header:MCP-Session-Id", "env:X"}) {
    EXPECT_NE(Wrong("[permit]\nhttp = \"" + std::string(source) + "\"\n"), "") << source;
  }
  for (const char* source : {"", "env:", "file:", "token", "env:A=B"}) {
    EXPECT_NE(Wrong("[permit]\nstdio = \"" + std::string(source) + "\"\n"), "") << source;
  }
}

// Each limit at its ends, and one step over them.
TEST(GatewayConfig, EveryLimitIsChecked) {
  struct Limit {
    const char* table;
    const char* name;
    std::vector<const char*> good, bad;
  };
  const Limit limits[] = {
      {"", "shutdown_grace", {"\"0s\"", "\"10m\""}, {"\"601s\"", "20", "\"-1s\"", "\"\""}},
      {"permit", "view_ttl", {"\"0s\"", "\"5m\""}, {"\"301s\""}},
      {"tallyd", "timeout", {"\"5s\"", "\"2m\""}, {"\"99ms\"", "\"121s\"", "\"4s\""}},
      {"tallyd", "try_timeout", {"\"100ms\"", "\"10s\""}, {"\"99ms\"", "\"11s\""}},
      {"tallyd", "lease_margin", {"\"1s\"", "\"1h\""}, {"\"999ms\"", "\"3601s\""}},
      {"journal", "bytes_max", {"1048576", "1099511627776"}, {"1048575", "1099511627777", "\"1\"", "1.5"}},
      {"audit", "file_bytes_max", {"65536", "1099511627776"}, {"65535", "1099511627777"}},
      {"audit", "files_max", {"1", "1000"}, {"0", "1001"}},
      {"audit", "queue_max", {"100", "10000000"}, {"99", "10000001"}},
      {"limits", "message_bytes_max", {"65536", "67108864"}, {"65535", "67108865"}},
      {"limits", "answer_bytes_max", {"65536", "268435456"}, {"65535", "268435457"}},
      {"limits", "connections_max", {"1", "1000000"}, {"0", "1000001"}},
      {"limits", "sessions_max", {"1", "1000000"}, {"0", "1000001"}},
      {"limits", "session_idle", {"\"1m\"", "\"168h\""}, {"\"59s\"", "\"169h\""}},
      {"limits", "calls_max", {"1", "1000000"}, {"0", "1000001"}},
      {"limits", "stream_bytes_max", {"65536", "268435456"}, {"65535", "268435457"}},
      {"limits", "header_bytes_max", {"4096", "1048576"}, {"4095", "1048577"}},
      {"limits", "request_timeout", {"\"1s\"", "\"10m\""}, {"\"999ms\"", "\"601s\""}},
      {"upstreams.u", "timeout", {"\"100ms\"", "\"10m\""}, {"\"99ms\"", "\"601s\""}},
      {"upstreams.u", "late_answer_window", {"\"0s\"", "\"24h\""}, {"\"25h\""}},
      {"upstreams.u", "input_window", {"\"1s\"", "\"23h\""}, {"\"999ms\"", "\"24h\""}},
      {"upstreams.u", "read_tries", {"1", "10"}, {"0", "11"}},
      {"upstreams.u.tools.t", "timeout", {"\"100ms\"", "\"10m\""}, {"\"99ms\"", "\"601s\""}},
      {"upstreams.u.tools.t", "late_answer_window", {"\"0s\"", "\"24h\""}, {"\"25h\""}},
      {"upstreams.u.tools.t", "input_window", {"\"1s\"", "\"23h\""}, {"\"999ms\"", "\"24h\""}},
  };
  for (const Limit& limit : limits) {
    const std::string table = limit.table;
    std::string head = table.empty() ? "" : "[" + table + "]\n";
    if (table == "upstreams.u") head += "command = \"x\"\n";
    if (table == "upstreams.u.tools.t") head = kUpstream + head;
    for (const char* value : limit.good) EXPECT_EQ(Wrong(head + limit.name + " = " + value + "\n"), "") << value;
    for (const char* value : limit.bad) {
      EXPECT_THAT(Wrong(head + limit.name + " = " + value + "\n"), HasSubstr(limit.name)) << value;
    }
  }
}

TEST(GatewayConfig, NoValueOfTheEnvironmentIsEverInAnError) {
  for (const char* text :
       {"env = { KEY = hunter2 }\n", "env = { KEY = \"hunter2\" \n", "env = { KEY = [\"hunter2\"] }\n",
        "env = { KEY = \"hunter2\" }\nread_tries = 99\n", "env = { \"A=B\" = \"hunter2\" }\n"}) {
    const std::string wrong = Wrong(std::string(kUpstream) + text);
    EXPECT_NE(wrong, "") << text;
    EXPECT_THAT(wrong, Not(HasSubstr("hunt"))) << text;
  }
}

TEST(GatewayConfig, PathsAreMeantFromTheFilesFolder) {
  std::string folder = testing::TempDir() + "tally_config_XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/g.toml") << R"(
[tallyd]
server = "unix:run/tallyd.sock"
[permit]
stdio = "file:token"
[upstreams.a]
command = "bin/server"
env_files = { K = "k" }
[upstreams.b]
command = "npx"
cwd = "/srv"
[upstreams.c]
url = "https://c.example/mcp"
headers_file = "/etc/c.headers"
)";
  const auto config = LoadConfig(folder + "/g.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tallyd.server, "unix:" + folder + "/run/tallyd.sock");
  EXPECT_EQ(config->tallyd.credential_file, folder + "/gateway.credential");
  EXPECT_EQ(config->tallyd.ca_file, "");
  EXPECT_EQ(config->journal.path, folder + "/journal");
  EXPECT_EQ(config->permit.stdio, "file:" + folder + "/token");
  EXPECT_EQ(config->upstreams.at("a").command, folder + "/bin/server");
  EXPECT_EQ(config->upstreams.at("a").cwd, folder);
  EXPECT_EQ(config->upstreams.at("a").env_files.at("K"), folder + "/k");
  EXPECT_EQ(config->upstreams.at("b").command, "npx");
  EXPECT_EQ(config->upstreams.at("b").cwd, "/srv");
  EXPECT_EQ(config->upstreams.at("c").headers_file, "/etc/c.headers");
  EXPECT_EQ(config->upstreams.at("c").cwd, "");
  EXPECT_TRUE(absl::IsNotFound(LoadConfig(folder + "/none.toml").status()));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tally::gateway
