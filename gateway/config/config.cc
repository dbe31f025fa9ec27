#include "gateway/config/config.h"

#include <absl/strings/str_join.h>

#include <charconv>
#include <filesystem>

#include "gateway/config/read.h"
#include "lib/keys/text.h"
#include "lib/settings/toml_file.h"

namespace tally::gateway {
namespace {

using keys::Cat;
using settings::MakeAbsolute;
using settings::TomlReader;

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kFile = "file:";

// "PREFIX:PATH" with its path made absolute; what has no such prefix stays.
void MakeAbsoluteAfter(std::string_view prefix, const std::string& folder, std::string& text) {
  if (!std::string_view(text).starts_with(prefix)) return;
  std::string path = text.substr(prefix.size());
  MakeAbsolute(folder, path);
  text = Cat(prefix, path);
}

// A program named by a path is meant like every other path; one without a slash is looked for on PATH.
void MakeCommandAbsolute(const std::string& folder, std::string& command) {
  if (command.find('/') != command.npos) MakeAbsolute(folder, command);
}

// Once, so that no answer waits for it. Fails only for what ReadTop let pass: patterns that are too much together.
absl::Status CompileRules(Config& config) {
  const auto common = mcp::ErrorRules::Compile({}, config.mcp.uncertain_words);
  if (!common.ok()) return absl::InvalidArgumentError(Cat("mcp.", common.status().message()));
  for (auto& [name, upstream] : config.upstreams) {
    upstream.judged_by = *common;
    for (auto& [own, tool] : upstream.tools) {
      auto rules = mcp::ErrorRules::Compile(tool.error_rules, config.mcp.uncertain_words);
      if (!rules.ok()) {
        return absl::InvalidArgumentError(Cat("upstreams.", name, ".tools.", own, ".", rules.status().message()));
      }
      tool.judged_by = *std::move(rules);
    }
  }
  return absl::OkStatus();
}

}  // namespace

ToolConfig UpstreamConfig::ForTool(std::string_view tool) const {
  if (const auto found = tools.find(std::string(tool)); found != tools.end()) return found->second;
  ToolConfig defaults;
  defaults.timeout = timeout;
  defaults.late_answer_window = late_answer_window;
  defaults.input_window = input_window;
  defaults.judged_by = judged_by;
  return defaults;
}

absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view source) {
  const auto document = settings::ParseToml(text, source, {"env"});
  if (!document.ok()) return document.status();
  Config config;
  settings::Complaints complaints(source);
  TomlReader reader(*document, complaints);
  ReadTop(reader, config);
  reader.RefuseUnknown();
  if (!complaints.empty()) return absl::InvalidArgumentError(absl::StrJoin(complaints.Lines(), "\n"));
  if (absl::Status compiled = CompileRules(config); !compiled.ok()) {
    return absl::InvalidArgumentError(Cat(source, ": ", compiled.message()));
  }
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& path) {
  std::error_code error;
  const auto file = std::filesystem::absolute(path, error);
  if (error) return absl::InvalidArgumentError(Cat(path, ": ", error.message()));
  auto text = settings::ReadSettingsFile(file.string());
  if (!text.ok()) return text.status();
  auto config = ParseConfig(*text, path);
  if (!config.ok()) return config;

  const std::string folder = file.parent_path().string();
  for (std::string* one :
       {&config->pin_file, &config->journal.path, &config->audit.path, &config->tallyd.credential_file,
        &config->tallyd.ca_file, &config->tallyd.certificate_file, &config->tallyd.key_file}) {
    MakeAbsolute(folder, *one);
  }
  MakeAbsoluteAfter(kUnix, folder, config->tallyd.server);
  MakeAbsoluteAfter(kFile, folder, config->permit.stdio);
  for (auto& [name, upstream] : config->upstreams) {
    MakeCommandAbsolute(folder, upstream.command);
    if (upstream.cwd.empty() && !upstream.command.empty()) upstream.cwd = folder;
    for (std::string* one : {&upstream.cwd, &upstream.headers_file, &upstream.ca_file}) MakeAbsolute(folder, *one);
    for (auto& [variable, one] : upstream.env_files) MakeAbsolute(folder, one);
  }
  return config;
}

SettingNames ConfigNames() {
  const toml::table nothing;
  settings::Complaints complaints("");
  TomlReader top(nothing, complaints), upstream(nothing, complaints), tool(nothing, complaints);
  Config config;
  UpstreamConfig upstream_config;
  ToolConfig tool_config;
  ReadTop(top, config);
  ReadUpstream(upstream, upstream_config);
  ReadTool(tool, tool_config);
  return {top.names(), upstream.names(), tool.names()};
}

absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text) {
  const auto wrong = [] {
    return absl::InvalidArgumentError(R"("ADDRESS:PORT" or "[ADDRESS]:PORT", with a port from 0 to 65535)");
  };
  const auto colon = text.rfind(':');
  if (colon == text.npos) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.size() > 2 && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.%") != host.npos) return wrong();
  } else if (host.empty() || host.find_first_of("[]:/ \t") != host.npos) {
    return wrong();
  }
  uint16_t number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size()) return wrong();
  return ListenAddress{std::string(host), number};
}

}  // namespace tally::gateway
