#pragma once

#include "lib/settings/toml_reader.h"
#include "reconciler/config/config.h"

// The parts of ParseConfig.
namespace tally::reconciler {

void ReadTop(settings::TomlReader& reader, Config& config);
void ReadProvider(settings::TomlReader& reader, ProviderConfig& provider);
// Whether its section fits its kind, too. What crosses tables is checked by ReadTop.
void ReadTool(settings::TomlReader& reader, ToolConfig& tool);
void ReadHttp(settings::TomlReader& reader, HttpConfig& http);
void ReadExec(settings::TomlReader& reader, ExecConfig& exec);
void ReadMcp(settings::TomlReader& reader, McpConfig& mcp);
void ReadReplay(settings::TomlReader& reader, ReplayConfig& replay);
void ReadAnswer(settings::TomlReader& reader, AnswerRules& rules);

// For sections: a JSON pointer; false where there is none or it is wrong, which was then complained about.
bool ReadPointer(settings::TomlReader& reader, const std::string& name, json::Pointer& into);
// "file:PATH" or "env:NAME".
bool IsSecretSource(std::string_view source);

}  // namespace tally::reconciler
