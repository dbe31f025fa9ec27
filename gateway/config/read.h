#pragma once

#include "gateway/config/config.h"
#include "lib/settings/toml_reader.h"

// The parts of ParseConfig.
namespace tally::gateway {

void ReadTop(settings::TomlReader& reader, Config& config);
void ReadUpstream(settings::TomlReader& reader, UpstreamConfig& upstream);
void ReadTool(settings::TomlReader& reader, ToolConfig& tool);

// "http://HOST[:PORT][/PATH]" or https; what is wrong with it otherwise, empty if nothing.
std::string CheckUrl(std::string_view url);
// A header's name by RFC 9110 (token), at most 128 bytes.
bool IsHeaderName(std::string_view name);
// A header that an upstream's request must not carry by an operator's wish: those of HTTP and MCP themselves, and
// Idempotency-Key, by which HTTP libraries resend on their own.
bool IsReservedHeader(std::string_view name);
bool IsLoopback(std::string_view host);

}  // namespace tally::gateway
