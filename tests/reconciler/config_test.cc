#include "reconciler/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "reconciler/config/secrets.h"

namespace tally::reconciler {
namespace {

using ::testing::HasSubstr;

constexpr char kProvider[] = "[[provider]]\nname = \"bank\"\n";

// A tool that is looked up by http, with what a test wants to add to or change in each of its tables.
std::string Tool(const std::string& tool = "", const std::string& http = "", const std::string& answer = "",
                 const std::string& url = "https://bank.example.com/find?ref={reference}") {
  return std::string(kProvider) +
         "[[tool]]\ntool = \"pay\"\nlook_up = \"http\"\nprovider = \"bank\"\nabsent_is_final_after = \"1m\"\n" + tool +
         "\n[tool.http]\nurl = \"" + url + "\"\n" + http +
         "\n[tool.answer]\nrecords = \"/data\"\nmatch = { pointer = \"/ref\", equals = \"{reference}\" }\nstatus = "
         "\"/status\"\nhappened = [\"done\"]\n" +
         answer + "\n";
}

std::string WhyNot(const std::string& text) {
  const auto config = ParseConfig(text, "f");
  return config.ok() ? "" : std::string(config.status().message());
}

TEST(Config, DefaultsAreTheContracts) {
  const auto config = ParseConfig("", "f");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->reconciler.backoff_min, milliseconds(2'000));
  EXPECT_EQ(config->reconciler.backoff_max, milliseconds(600'000));
  EXPECT_EQ(config->reconciler.give_up_after, milliseconds(86'400'000));
  EXPECT_EQ(config->ForTool("anything").kind, Kind::kHuman);
}

TEST(Config, TheExactNameThenTheLongestPrefixSaysHowAToolIsLookedUp) {
  std::string text = kProvider;
  for (const char* name : {"a__*", "a__b*", "a__bc", "*"}) {
    text += std::string("[[tool]]\ntool = \"") + name + "\"\nlook_up = \"human\"\n";
  }
  // A prefix must name something.
  EXPECT_THAT(WhyNot(text), HasSubstr("a prefix of one"));
  text = text.substr(0, text.rfind("[[tool]]"));
  const auto config = ParseConfig(text, "f");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->ForTool("a__bc").tool, "a__bc");
  EXPECT_EQ(config->ForTool("a__bcd").tool, "a__b*");
  EXPECT_EQ(config->ForTool("a__x").tool, "a__*");
  EXPECT_EQ(config->ForTool("b").tool, "");
}

TEST(Config, ALookUpThatCanSayAbsentMustSayWhenThatIsFinal) {
  std::string text = Tool();
  ASSERT_EQ(WhyNot(text), "");
  text.erase(text.find("absent_is_final_after"), sizeof("absent_is_final_after = \"1m\""));
  EXPECT_THAT(WhyNot(text), HasSubstr("absent_is_final_after must be written"));
}

TEST(Config, TimesThatCannotWorkTogetherAreRefused) {
  EXPECT_THAT(WhyNot(Tool("timeout = \"61s\"")), HasSubstr("half of reconciler.claim"));
  EXPECT_EQ(WhyNot(Tool("timeout = \"60s\"")), "");
  EXPECT_THAT(WhyNot(Tool("give_up_after = \"60s\"")), HasSubstr("given up before an absence is final"));
  EXPECT_EQ(WhyNot(Tool("give_up_after = \"61s\"")), "");
  EXPECT_THAT(WhyNot("[reconciler]\nbackoff_min = \"20m\"\n"), HasSubstr("backoff_max must not be below"));
}

TEST(Config, WhatIsMissingOrMisplacedIsNamed) {
  EXPECT_THAT(WhyNot("[[tool]]\ntool = \"pay\"\n"), HasSubstr("f:1: tool[0].look_up must be written"));
  EXPECT_THAT(WhyNot("[[tool]]\ntool = \"pay\"\nlook_up = \"human\"\ntimeout = \"1s\"\n"), HasSubstr("has no meaning"));
  EXPECT_THAT(WhyNot(Tool() + Tool()), HasSubstr("two entries"));
  EXPECT_THAT(WhyNot(Tool() + Tool()), HasSubstr("two named bank"));
  std::string text = Tool();
  text.replace(text.find("provider = \"bank\""), 17, "provider = \"tank\"");
  EXPECT_THAT(WhyNot(text), HasSubstr("no [[provider]]"));
  EXPECT_THAT(WhyNot(Tool() + "[tool.exec]\nprogram = \"/bin/true\"\n"), HasSubstr("belongs to look_up = \"exec\""));
  EXPECT_THAT(WhyNot(Tool("", "urll = 1")), HasSubstr("there is no setting \"tool[0].http.urll\""));
  EXPECT_THAT(WhyNot(Tool("", "", "", "http://bank.example.com/{reference}")), HasSubstr("without TLS"));
  EXPECT_THAT(WhyNot(std::string(kProvider) + "per_second = 0.001\n"),
              HasSubstr("must be a number from 0.01 to 10000"));
  EXPECT_EQ(WhyNot(std::string(kProvider) + "per_second = 0.5\n"), "");
}

TEST(Config, TemplatesThatCouldBeBentAreRefusedWithTheirLine) {
  EXPECT_THAT(WhyNot(Tool("", "", "", "https://{reference}/")),
              HasSubstr("f:10: tool[0].http.url has a placeholder in its host"));
  EXPECT_THAT(WhyNot(Tool("", "", "", "https://h/?q=c:{argument:/c}")), HasSubstr("inside a larger text"));
  EXPECT_THAT(WhyNot(Tool("", "method = \"POST\"\njson = '{\"a\": \"x{argument:/c}\"}'")),
              HasSubstr("inside a larger text"));
  EXPECT_THAT(WhyNot(Tool("", "json = '{}'")), HasSubstr("only POST has one"));
  EXPECT_THAT(WhyNot(Tool("", "method = \"POST\"\njson = '{}'\nform = { a = \"b\" }")), HasSubstr("one body"));
}

TEST(Config, SecretsDoNotStandInIt) {
  const std::string header = WhyNot(Tool("", "headers = { Authorization = \"Bearer sesame\" }"));
  EXPECT_THAT(header, HasSubstr("secret_headers"));
  EXPECT_THAT(header, ::testing::Not(HasSubstr("sesame")));
  const std::string source = WhyNot(Tool("", "secret_headers = { Authorization = \"Bearer sesame\" }"));
  EXPECT_THAT(source, HasSubstr("never the secret itself"));
  EXPECT_THAT(source, ::testing::Not(HasSubstr("sesame")));
  EXPECT_THAT(WhyNot(Tool("", "headers = { Host = \"x\" }")), HasSubstr("HTTP itself sets"));
  EXPECT_EQ(WhyNot(Tool("", "secret_headers = { Authorization = \"env:BANK\", X-Key = \"file:k\" }")), "");
}

TEST(Config, AnAnswerMustBeSaidHowToRead) {
  const auto without = [](const std::string& line) {
    std::string text = Tool();
    text.erase(text.find(line), line.size());
    return WhyNot(text);
  };
  EXPECT_THAT(without("records = \"/data\""), HasSubstr("records must be written"));
  EXPECT_THAT(without("match = { pointer = \"/ref\", equals = \"{reference}\" }"), HasSubstr("match must be written"));
  EXPECT_THAT(without("status = \"/status\""), HasSubstr("one of two"));
  EXPECT_THAT(without("happened = [\"done\"]"), HasSubstr("happened must list"));
  EXPECT_THAT(WhyNot(Tool("", "", "not_happened = [\"done\"]")), HasSubstr("stands twice"));
  EXPECT_THAT(WhyNot(Tool("", "", "record_is = \"happened\"")), HasSubstr("one of two"));
  EXPECT_THAT(WhyNot(Tool("", "", "absent_status = [404, 401]")),
              HasSubstr("401, which says nothing about the record"));
  EXPECT_THAT(WhyNot(Tool("", "", "absent_status = [500]")), HasSubstr("whole numbers from 400 to 499"));
  EXPECT_EQ(WhyNot(Tool("", "", "absent_status = [404, 410]\nread_status = [200, 203]")), "");
  for (const char* text : {"fixed", "{argument:/ref}", "{argument:/ref}{reference}"}) {
    std::string bent = Tool();
    bent.replace(bent.find("equals = \"{reference}\""), 22, std::string("equals = \"") + text + "\"");
    EXPECT_THAT(WhyNot(bent), HasSubstr("no argument")) << text;
  }
}

TEST(Config, AProgramIsNamedByItsPathAndGetsNothingFilledIn) {
  const auto exec = [](const std::string& lines) {
    return WhyNot(std::string(kProvider) +
                  "[[tool]]\ntool = \"pay\"\nlook_up = \"exec\"\nprovider = \"bank\"\nabsent_is_final_after = "
                  "\"1m\"\n[tool.exec]\n" +
                  lines);
  };
  EXPECT_EQ(exec("program = \"/bin/true\"\nargs = [\"-x\"]\n"), "");
  EXPECT_THAT(exec("program = \"true\"\n"), HasSubstr("absolute path"));
  EXPECT_THAT(exec("program = \"/bin/true\"\nargs = [\"{reference}\"]\n"), HasSubstr("nothing is filled in"));
  EXPECT_THAT(exec("program = \"/bin/true\"\nenv = { A = \"1\" }\nenv_files = { A = \"f\" }\n"),
              HasSubstr("and so does env"));
}

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("tally-reconciler-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  std::filesystem::path folder_;
};

TEST_F(Files, ASecretHeaderIsOneLineInAFileOfItsOwnersAlone) {
  HttpConfig http;
  http.secret_headers = {{"Authorization", "file:" + Write("good", "Bearer sesame\n")}};
  const auto headers = ReadSecretHeaders(http);
  ASSERT_TRUE(headers.ok()) << headers.status();
  EXPECT_EQ(headers->at(0).second.Expose(), "Bearer sesame");
  for (const auto& [text, mode] :
       {std::pair{"Bearer sesame", 0644}, {"a\nB: sesame", 0600}, {"", 0600}, {"sesam\xc3\xa9", 0600}}) {
    http.secret_headers = {{"Authorization", "file:" + Write("bad", text, static_cast<mode_t>(mode))}};
    const auto bad = ReadSecretHeaders(http);
    EXPECT_FALSE(bad.ok()) << text;
    EXPECT_THAT(std::string(bad.status().message()), ::testing::Not(HasSubstr("sesam"))) << text;
  }
  http.secret_headers = {{"Authorization", "env:TALLY_NO_SUCH_VARIABLE"}};
  EXPECT_EQ(ReadSecretHeaders(http).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(Files, PathsAreMeantFromTheConfigsFolder) {
  const std::string path = Write("r.toml", Tool("", "secret_headers = { X-Key = \"file:k\", Y-Key = \"env:K\" }"));
  const auto config = LoadConfig(path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tallyd.credential_file, (folder_ / "reconciler.credential").string());
  EXPECT_EQ(config->tallyd.server, "unix:" + (folder_ / "tallyd.sock").string());
  EXPECT_EQ(config->tools[0].http.secret_headers.at("X-Key"), "file:" + (folder_ / "k").string());
  EXPECT_EQ(config->tools[0].http.secret_headers.at("Y-Key"), "env:K");
}

// deploy/tally-reconciler.toml, the structs and what ParseConfig takes say the same.
std::string Deployed() {
  std::stringstream text;
  text << std::ifstream("deploy/tally-reconciler.toml").rdbuf();
  return text.str();
}

bool IsOff(const std::string& line) {
  if (line.size() < 2 || line[0] != '#') return false;
  if (line[1] == '[') return true;
  const auto name = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", 1);
  return name != std::string::npos && name > 1 && line.compare(name, 3, " = ") == 0;
}

std::map<std::string, std::multiset<std::string>> DeployedNames() {
  std::map<std::string, std::multiset<std::string>> names;
  std::istringstream text(Deployed());
  std::string line, table;
  while (std::getline(text, line)) {
    if (IsOff(line)) line = line.substr(1);
    if (line.starts_with("[[")) {
      table = line.substr(2, line.size() - 4);
    } else if (line.starts_with('[')) {
      table = line.substr(1, line.size() - 2);
    } else if (!line.empty() && line[0] != '#') {
      const bool top = table == "tallyd" || table == "reconciler" || table == "audit";
      names[top ? "" : table].insert((top ? table + "." : "") + line.substr(0, line.find(' ')));
    }
  }
  return names;
}

TEST(DeployedConfig, AsItIsIsAllDefaults) {
  const auto config = ParseConfig(Deployed(), "deployed");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->tools.empty());
}

TEST(DeployedConfig, NamesEverySettingOnce) {
  auto names = DeployedNames();
  for (const char* table : {"provider", "tool"}) names[""].insert(table);
  for (const auto& [table, known] : ConfigNames()) {
    std::multiset<std::string> own = names[table];
    if (table == "tool") own.insert({"http", "exec", "mcp", "replay", "answer"});
    EXPECT_THAT(own, ::testing::UnorderedElementsAreArray(std::set<std::string>(known.begin(), known.end()))) << table;
  }
}

}  // namespace
}  // namespace tally::reconciler
