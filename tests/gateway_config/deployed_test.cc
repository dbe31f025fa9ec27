// deploy/tally-gateway.toml, the struct and what ParseConfig takes say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "gateway/config/config.h"

namespace tally::gateway {
namespace {

std::string Deployed() {
  std::ifstream file("deploy/tally-gateway.toml");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A line that is a setting, or a table's head, behind its '#'.
bool IsOff(const std::string& line) {
  if (line.size() < 2 || line[0] != '#') return false;
  if (line[1] == '[') return true;
  const auto name = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", 1);
  return name != std::string::npos && name > 1 && line.compare(name, 3, " = ") == 0;
}

// The settings of each table, as they stand there.
std::map<std::string, std::vector<std::string>> Lines() {
  std::map<std::string, std::vector<std::string>> tables;
  std::istringstream text(Deployed());
  std::string line, table;
  while (std::getline(text, line)) {
    if (IsOff(line)) line = line.substr(1);
    if (line.starts_with('[')) table = line;
    if (!line.empty() && line[0] != '#' && line[0] != '[') tables[table].push_back(line);
  }
  return tables;
}

std::string NameIn(const std::string& line) { return line.substr(0, line.find(' ')); }

TEST(DeployedConfig, AsItIsIsAllDefaults) {
  EXPECT_EQ(Deployed().find("\n[upstreams"), std::string::npos);
  for (const auto& [table, lines] : Lines()) {
    for (const std::string& line : lines) EXPECT_NE(Deployed().find("\n#" + line), std::string::npos) << line;
  }
  ASSERT_TRUE(ParseConfig(Deployed(), "deployed").ok());
}

TEST(DeployedConfig, NamesEverySettingOnce) {
  const SettingNames known = ConfigNames();
  std::multiset<std::string> top, upstream, tool;
  for (const auto& [table, lines] : Lines()) {
    for (const std::string& line : lines) {
      const std::string name = NameIn(line);
      if (table.starts_with("[upstreams.")) {
        (table.find(".tools.") == std::string::npos ? upstream : tool).insert(name);
      } else {
        top.insert(table.empty() ? name : table.substr(1, table.size() - 2) + "." + name);
      }
    }
  }
  top.insert("upstreams");
  upstream.insert("tools");
  EXPECT_THAT(top, testing::UnorderedElementsAreArray(known.top));
  EXPECT_THAT(upstream, testing::UnorderedElementsAreArray(known.upstream));
  EXPECT_THAT(tool, testing::UnorderedElementsAreArray(known.tool));
}

// Every setting that is written out as the file has it must leave the struct as it is without it. To see a setting
// that was read at all, each value is also compared by what the struct prints.
std::string Shown(const Config& c) {
  std::ostringstream out;
  const auto list = [&out](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) out << text << ',';
    out << '\n';
  };
  out << c.log_level << '\n' << c.pin_file << '\n' << c.shutdown_grace.count() << '\n';
  out << c.listen.address << '\n' << c.listen.path << '\n';
  list(c.listen.allowed_hosts);
  list(c.listen.allowed_origins);
  out << c.permit.http << '\n' << c.permit.stdio << '\n' << c.permit.view_ttl.count() << '\n';
  out << c.tallyd.server << '\n' << c.tallyd.credential_file << '\n' << c.tallyd.ca_file << '\n';
  out << c.tallyd.certificate_file << '\n' << c.tallyd.key_file << '\n';
  out << c.tallyd.timeout.count() << '\n'
      << c.tallyd.try_timeout.count() << '\n'
      << c.tallyd.lease_margin.count() << '\n';
  out << static_cast<int>(c.mcp.error_style) << '\n';
  list(c.mcp.uncertain_words);
  out << c.journal.path << '\n' << c.journal.bytes_max << '\n';
  out << c.audit.path << '\n'
      << c.audit.file_bytes_max << '\n'
      << c.audit.files_max << '\n'
      << c.audit.queue_max << '\n';
  out << static_cast<int>(c.audit.on_failure) << '\n';
  const Config::Limits& l = c.limits;
  for (const int64_t number : {l.message_bytes_max, l.answer_bytes_max, int64_t{l.connections_max},
                               int64_t{l.sessions_max}, int64_t{l.session_idle.count()}, int64_t{l.calls_max},
                               l.stream_bytes_max, l.header_bytes_max, int64_t{l.request_timeout.count()}}) {
    out << number << '\n';
  }
  return out.str();
}

std::string Shown(const ToolConfig& t) {
  std::ostringstream out;
  out << t.timeout.count() << '\n'
      << t.late_answer_window.count() << '\n'
      << t.input_window.count() << '\n'
      << t.keyed << '\n';
  out << static_cast<int>(t.key.where) << t.key.name << '\n' << t.replay_window.count() << '\n';
  out << static_cast<int>(t.reference.where) << t.reference.name << '\n' << t.error_rules.size() << '\n';
  return out.str();
}

std::string Shown(const UpstreamConfig& u) {
  std::ostringstream out;
  out << u.args.size() << '\n' << u.env.size() << '\n' << u.env_files.size() << '\n' << u.cwd << '\n';
  out << u.headers_file << '\n' << u.ca_file << '\n' << u.shared << '\n';
  out << u.timeout.count() << '\n'
      << u.late_answer_window.count() << '\n'
      << u.input_window.count() << '\n'
      << u.read_tries << '\n';
  out << static_cast<int>(u.pin) << '\n';
  return out.str();
}

TEST(DeployedConfig, EveryTopSettingIsWrittenWithTheStructsDefault) {
  std::string text;
  for (const auto& [table, lines] : Lines()) {
    if (table.starts_with("[upstreams.")) continue;
    text += table + "\n";
    for (const std::string& line : lines) text += line + "\n";
  }
  const auto config = ParseConfig(text, "deployed");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(Shown(*config), Shown(Config()));
}

// `command`, `url`, `key`, `replay_window` and `reference` have a default that cannot be written: their absence.
TEST(DeployedConfig, EverySettingOfAnUpstreamIsWrittenWithTheStructsDefault) {
  const std::set<std::string> absent = {"command", "url",           "headers_file", "ca_file",
                                        "key",     "replay_window", "reference"};
  for (const auto& [table, lines] : Lines()) {
    if (!table.starts_with("[upstreams.")) continue;
    const bool tool = table.find(".tools.") != std::string::npos;
    std::string text = "[upstreams.files]\ncommand = \"x\"\n" + (tool ? table + "\n" : "");
    for (const std::string& line : lines) {
      if (absent.contains(NameIn(line))) {
        const std::string value = line.substr(line.find('=') + 2);
        EXPECT_TRUE(value == "\"\"" || value == "{}" || value == "\"0s\"") << line;
      } else {
        text += line + "\n";
      }
    }
    const auto config = ParseConfig(text, "deployed");
    ASSERT_TRUE(config.ok()) << config.status();
    const UpstreamConfig& upstream = config->upstreams.at("files");
    EXPECT_EQ(Shown(upstream), Shown(UpstreamConfig()));
    EXPECT_EQ(Shown(tool ? upstream.tools.at("write_file") : upstream.ForTool("write_file")), Shown(ToolConfig()));
  }
}

}  // namespace
}  // namespace tally::gateway
