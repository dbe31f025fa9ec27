#include "reconciler/config/config.h"

#include <absl/strings/str_join.h>

#include <algorithm>
#include <filesystem>

#include "lib/keys/text.h"
#include "lib/settings/toml_file.h"
#include "reconciler/config/read.h"

namespace tally::reconciler {
namespace {

using keys::Cat;
using settings::MakeAbsolute;
using settings::TomlReader;

// "PREFIX:PATH" with its path made absolute; what has no such prefix stays.
void MakeAbsoluteAfter(std::string_view prefix, const std::string& folder, std::string& text) {
  if (!std::string_view(text).starts_with(prefix)) return;
  std::string path = text.substr(prefix.size());
  MakeAbsolute(folder, path);
  text = Cat(prefix, path);
}

}  // namespace

const ToolConfig& Config::ForTool(std::string_view tool) const {
  const ToolConfig* best = nullptr;
  for (const ToolConfig& entry : tools) {
    if (entry.tool == tool) return entry;
    const std::string_view pattern = entry.tool;
    const bool matches = pattern.ends_with('*') && tool.starts_with(pattern.substr(0, pattern.size() - 1));
    if (matches && (best == nullptr || best->tool.size() < entry.tool.size())) best = &entry;
  }
  return best == nullptr ? unlisted : *best;
}

const ProviderConfig* Config::Provider(std::string_view name) const {
  const auto found = std::find_if(providers.begin(), providers.end(),
                                  [&](const ProviderConfig& provider) { return provider.name == name; });
  return found == providers.end() || name.empty() ? nullptr : &*found;
}

absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view source) {
  const auto document = settings::ParseToml(text, source, {"env", "headers"});
  if (!document.ok()) return document.status();
  Config config;
  settings::Complaints complaints(source);
  TomlReader reader(*document, complaints);
  ReadTop(reader, config);
  reader.RefuseUnknown();
  if (!complaints.empty()) return absl::InvalidArgumentError(absl::StrJoin(complaints.Lines(), "\n"));
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
  config->folder = folder;
  for (std::string* one : {&config->tallyd.credential_file, &config->tallyd.ca_file, &config->tallyd.certificate_file,
                           &config->tallyd.key_file}) {
    MakeAbsolute(folder, *one);
  }
  MakeAbsoluteAfter("unix:", folder, config->tallyd.server);
  for (ProviderConfig& provider : config->providers) MakeAbsolute(folder, provider.ca_file);
  MakeAbsolute(folder, config->audit.path);
  for (ToolConfig& tool : config->tools) {
    MakeAbsolute(folder, tool.mcp.gateway_config);
    MakeAbsolute(folder, tool.replay.gateway_config);
    for (auto& [name, source] : tool.http.secret_headers) MakeAbsoluteAfter("file:", folder, source);
    for (auto& [variable, one] : tool.exec.env_files) MakeAbsolute(folder, one);
  }
  return config;
}

std::map<std::string, std::vector<std::string>> ConfigNames() {
  const toml::table nothing;
  settings::Complaints complaints("");
  std::map<std::string, std::vector<std::string>> names;
  const auto collect = [&](const char* table, auto read, auto into) {
    TomlReader reader(nothing, complaints);
    read(reader, into);
    names[table] = reader.names();
  };
  collect("", ReadTop, Config());
  collect("provider", ReadProvider, ProviderConfig());
  collect("tool", ReadTool, ToolConfig());
  collect("tool.http", ReadHttp, HttpConfig());
  collect("tool.exec", ReadExec, ExecConfig());
  collect("tool.mcp", ReadMcp, McpConfig());
  collect("tool.replay", ReadReplay, ReplayConfig());
  collect("tool.answer", ReadAnswer, AnswerRules());
  return names;
}

}  // namespace tally::reconciler
