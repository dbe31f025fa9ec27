#include "gateway/config/read.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using keys::Cat;
using settings::TomlReader;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using Means = mcp::ErrorRule::Means;

constexpr size_t kUpstreamsMax = 64;
constexpr size_t kToolsMax = 1024;
constexpr size_t kErrorRulesMax = 64;
constexpr size_t kListMax = 256;
constexpr size_t kPatternBytesMax = 1024;
constexpr size_t kMetaNameBytesMax = 128;

bool IsVariableName(std::string_view name) {
  return !name.empty() && name.size() <= 256 && name.find_first_of(std::string_view("=\0", 2)) == name.npos;
}

bool IsUpstreamName(std::string_view name) {
  return !name.empty() && name.size() <= 32 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == name.npos;
}

// A name in `arguments` or `_meta`: any text without control characters.
bool IsMemberName(std::string_view name) {
  return !name.empty() && name.size() <= kMetaNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

void ReadPlacement(TomlReader& reader, const std::string& name, Placement& placement) {
  reader.Table(name, [&](TomlReader& table) {
    std::string argument, meta, header;
    table.Text("argument", argument);
    table.Text("meta", meta);
    table.Text("header", header);
    const int given = table.Has("argument") + table.Has("meta") + table.Has("header");
    if (given != 1) {
      return reader.Complain(name, R"(must be one of { argument = "…" }, { meta = "…" } and { header = "…" })");
    }
    placement = table.Has("argument") ? Placement{Placement::Where::kArgument, argument}
                : table.Has("meta")   ? Placement{Placement::Where::kMeta, meta}
                                      : Placement{Placement::Where::kHeader, header};
    if (placement.where == Placement::Where::kHeader) {
      if (!IsHeaderName(header)) return reader.Complain(name, "must name an HTTP header of at most 128 bytes");
      if (IsReservedHeader(header)) {
        return reader.Complain(name,
                               "names a header that HTTP and MCP, or libraries on the way, give a meaning of "
                               "their own; take another header, an argument or a _meta key");
      }
    } else if (!IsMemberName(placement.name)) {
      reader.Complain(name, "must name a member of 1 to 128 bytes without control characters");
    }
  });
}

void ReadErrorRules(TomlReader& reader, std::vector<mcp::ErrorRule>& rules) {
  reader.TableArray("error_rules", kErrorRulesMax, [&](TomlReader& table) {
    mcp::ErrorRule rule;
    table.Text("pattern", rule.pattern);
    table.Choice<Means>("means", rule.means,
                        {{"uncertain", Means::kUncertain}, {"error", Means::kError}, {"no_effect", Means::kNoEffect}});
    if (!table.Has("means")) table.Complain("means", "must be written");
    if (rule.pattern.empty() || rule.pattern.size() > kPatternBytesMax) {
      table.Complain("pattern", Cat("must be written, in 1 to ", kPatternBytesMax, " bytes"));
    } else if (const re2::RE2 pattern(rule.pattern, re2::RE2::Quiet); !pattern.ok()) {
      table.Complain("pattern", Cat("is no pattern in RE2 syntax: ", pattern.error()));
    }
    rules.push_back(std::move(rule));
  });
}

bool IsHostPattern(std::string_view text) {
  const auto name = text.substr(0, text.rfind(']') == text.npos ? text.rfind(':') : text.rfind(']') + 1);
  const auto rest = text.substr(name.size());
  const bool port = rest.empty() || (rest.size() > 1 && rest.size() <= 6 && rest[0] == ':' &&
                                     rest.find_first_not_of("0123456789", 1) == rest.npos);
  return port && !name.empty() && name.size() <= 255 && name.find_first_of("/ \t@*,?#") == name.npos;
}

bool IsOrigin(std::string_view text) {
  const auto scheme = text.find("://");
  if (scheme == text.npos || (text.substr(0, scheme) != "http" && text.substr(0, scheme) != "https")) return false;
  return IsHostPattern(text.substr(scheme + 3));
}

void CheckListen(TomlReader& reader, const Config& config) {
  const auto address = ParseListenAddress(config.listen.address);
  if (!address.ok()) {
    reader.Complain("listen.address", Cat("must be ", address.status().message()));
  } else if (!IsLoopback(address->host) && config.listen.allowed_hosts.empty()) {
    reader.Complain("listen.address",
                    "is no loopback address: listen.allowed_hosts must say by which names it is reached");
  }
  const std::string& path = config.listen.path;
  if (path.empty() || path[0] != '/' || path.size() > 256 || path.find_first_of("?# \t%") != path.npos) {
    reader.Complain("listen.path", "must begin with / and be 1 to 256 bytes without ?, #, % and spaces");
  }
  for (const std::string& host : config.listen.allowed_hosts) {
    if (!IsHostPattern(host)) reader.Complain("listen.allowed_hosts", R"(must hold "NAME" or "NAME:PORT" only)");
  }
  for (const std::string& origin : config.listen.allowed_origins) {
    if (!IsOrigin(origin)) {
      reader.Complain("listen.allowed_origins",
                      R"(must hold "https://NAME" or "http://NAME", with ":PORT" or without, only)");
    }
  }
}

void CheckPermit(TomlReader& reader, const Config::Permit& permit) {
  const std::string_view http = permit.http;
  if (http != "bearer" &&
      !(http.starts_with("header:") && IsHeaderName(http.substr(7)) &&
        !absl::EqualsIgnoreCase(permit.http.substr(7), "authorization") && !IsReservedHeader(http.substr(7)))) {
    reader.Complain("permit.http", R"(must be "bearer" or "header:NAME", and not a header of HTTP or MCP itself)");
  }
  const std::string_view stdio = permit.stdio;
  const bool variable = stdio.starts_with("env:") && IsVariableName(stdio.substr(4));
  const bool file = stdio.starts_with("file:") && stdio.size() > 5;
  if (!variable && !file) reader.Complain("permit.stdio", R"(must be "env:NAME" or "file:PATH")");
}

void CheckTallyd(TomlReader& reader, const Config::Tallyd& tallyd) {
  const std::string_view server = tallyd.server;
  const auto colon = server.rfind(':');
  if (server == "unix:" || colon == server.npos || colon == 0 || colon + 1 == server.size() ||
      server.find("//") != server.npos) {
    reader.Complain("tallyd.server", R"(must be "unix:PATH" or "HOST:PORT")");
  }
  if (tallyd.certificate_file.empty() != tallyd.key_file.empty()) {
    reader.Complain(tallyd.key_file.empty() ? "tallyd.certificate_file" : "tallyd.key_file",
                    "stands alone: tallyd.certificate_file and tallyd.key_file are given together");
  }
  if (tallyd.credential_file.empty() && tallyd.certificate_file.empty()) {
    reader.Complain("tallyd.credential_file", "is empty and there is no client certificate: tallyd would serve nobody");
  }
  if (tallyd.try_timeout > tallyd.timeout) reader.Complain("tallyd.try_timeout", "must not be above tallyd.timeout");
}

void CheckTool(TomlReader& reader, const ToolConfig& tool) {
  const bool placed = tool.key.where != Placement::Where::kNowhere;
  if (tool.keyed && !placed) {
    reader.Complain("key", "must be written where replay is \"keyed\": it says where the provider's key is put");
  }
  if (tool.keyed && tool.replay_window.count() == 0) {
    reader.Complain("replay_window",
                    "must be written where replay is \"keyed\": it says how long the provider remembers a key");
  }
  if (!tool.keyed && (reader.Has("key") || reader.Has("replay_window"))) {
    reader.Complain(reader.Has("key") ? "key" : "replay_window", "has a meaning only with replay = \"keyed\"");
  }
  if (placed && tool.key == tool.reference) reader.Complain("reference", "is put where the key is");
  // The call may be sent again until the window is over, minus timeout and margin: there must be something left.
  if (tool.keyed && tool.replay_window.count() > 0 && tool.replay_window <= tool.timeout) {
    reader.Complain("replay_window", "must be above the tool's timeout");
  }
}

void CheckUpstream(TomlReader& reader, const UpstreamConfig& upstream) {
  const bool command = !upstream.command.empty();
  if (upstream.shared && !upstream.url.empty()) {
    reader.Complain("shared", "is for a command: over HTTP each client has a session of its own");
  }
  const bool url = !upstream.url.empty();
  if (command == url)
    return reader.Complain(command ? "url" : "command", "one of command and url must be given, and not both");
  if (url) {
    for (const char* name : {"args", "env", "env_files", "cwd"}) {
      if (reader.Has(name)) reader.Complain(name, "belongs to a command, and this upstream has a url");
    }
    if (const std::string wrong = CheckUrl(upstream.url); !wrong.empty()) reader.Complain("url", wrong);
    if (!upstream.ca_file.empty() && !upstream.url.starts_with("https:"))
      reader.Complain("ca_file", "needs an https url");
  } else {
    for (const char* name : {"headers_file", "ca_file"}) {
      if (reader.Has(name)) reader.Complain(name, "belongs to a url, and this upstream has a command");
    }
  }
  for (const auto* variables : {&upstream.env, &upstream.env_files}) {
    const char* name = variables == &upstream.env ? "env" : "env_files";
    for (const auto& [variable, value] : *variables) {
      if (!IsVariableName(variable)) reader.Complain(name, "holds what is no name of a variable");
      if (variables == &upstream.env_files && value.empty()) reader.Complain(name, Cat("names no file for ", variable));
      if (variables == &upstream.env_files && upstream.env.contains(variable)) {
        reader.Complain(name, Cat("holds ", variable, ", and so does env"));
      }
      if (variable == "TALLY_PERMIT_TOKEN") reader.Complain(name, "would hand a permit token to an upstream");
    }
  }
  for (const auto& [own, tool] : upstream.tools) {
    for (const auto& [what, placement] : {std::pair("key", tool.key), std::pair("reference", tool.reference)}) {
      if (command && placement.where == Placement::Where::kHeader) {
        reader.Complain("tools", Cat("puts the ", what, " of ", own, " into a header, and a command has none"));
      }
    }
  }
}

}  // namespace

bool IsHeaderName(std::string_view name) {
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool IsReservedHeader(std::string_view name) {
  constexpr std::array<std::string_view, 24> kReserved = {"accept",
                                                          "accept-encoding",
                                                          "connection",
                                                          "content-encoding",
                                                          "content-length",
                                                          "content-type",
                                                          "cookie",
                                                          "expect",
                                                          "host",
                                                          "idempotency-key",
                                                          "keep-alive",
                                                          "last-event-id",
                                                          "mcp-method",
                                                          "mcp-name",
                                                          "mcp-protocol-version",
                                                          "mcp-session-id",
                                                          "origin",
                                                          "proxy-authorization",
                                                          "proxy-connection",
                                                          "te",
                                                          "trailer",
                                                          "transfer-encoding",
                                                          "upgrade",
                                                          "x-idempotency-key"};
  std::string lower(name);
  for (char& c : lower) c = absl::ascii_tolower(static_cast<unsigned char>(c));
  return std::find(kReserved.begin(), kReserved.end(), lower) != kReserved.end() || lower.starts_with("mcp-param-");
}

bool IsLoopback(std::string_view host) {
  return host == "localhost" || host == "::1" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

std::string CheckUrl(std::string_view url) {
  constexpr const char* kForm =
      R"(must be "http://HOST:PORT/PATH" or "https://…", without user, password and fragment)";
  const auto scheme = url.find("://");
  if (scheme == url.npos || url.size() > 2048) return kForm;
  const bool secure = url.substr(0, scheme) == "https";
  if (!secure && url.substr(0, scheme) != "http") return kForm;
  const std::string_view rest = url.substr(scheme + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
  if (!IsHostPattern(authority) || url.find_first_of("#\\\"<> \t") != url.npos ||
      std::any_of(url.begin(), url.end(), [](unsigned char c) { return c < 0x21 || c > 0x7e; })) {
    return kForm;
  }
  std::string_view host =
      authority.substr(0, authority.rfind(']') == authority.npos ? authority.rfind(':') : authority.rfind(']') + 1);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  if (!secure && !IsLoopback(host)) return "must be https: plain http goes to loopback addresses only";
  return "";
}

void ReadTool(TomlReader& reader, ToolConfig& tool) {
  reader.Duration("timeout", tool.timeout, milliseconds(100), minutes(10));
  reader.Duration("late_answer_window", tool.late_answer_window, milliseconds(0), hours(24));
  reader.Duration("input_window", tool.input_window, seconds(1), hours(23));
  reader.Choice<bool>("replay", tool.keyed, {{"none", false}, {"keyed", true}});
  ReadPlacement(reader, "key", tool.key);
  reader.Duration("replay_window", tool.replay_window, seconds(1), hours(24 * 30));
  ReadPlacement(reader, "reference", tool.reference);
  ReadErrorRules(reader, tool.error_rules);
  CheckTool(reader, tool);
}

void ReadUpstream(TomlReader& reader, UpstreamConfig& upstream) {
  reader.Text("command", upstream.command);
  reader.Texts("args", upstream.args, kListMax);
  reader.TextByName("env", upstream.env, kListMax);
  reader.TextByName("env_files", upstream.env_files, kListMax);
  reader.Text("cwd", upstream.cwd);
  reader.Text("url", upstream.url);
  reader.Text("headers_file", upstream.headers_file);
  reader.Text("ca_file", upstream.ca_file);
  reader.Flag("shared", upstream.shared);
  reader.Duration("timeout", upstream.timeout, milliseconds(100), minutes(10));
  reader.Duration("late_answer_window", upstream.late_answer_window, milliseconds(0), hours(24));
  reader.Duration("input_window", upstream.input_window, seconds(1), hours(23));
  reader.Whole("read_tries", upstream.read_tries, 1, 10);
  reader.Choice<Pin>("pin", upstream.pin, {{"off", Pin::kOff}, {"report", Pin::kReport}, {"strict", Pin::kStrict}});
  reader.Tables("tools", kToolsMax, [&](const std::string& name, TomlReader& table) {
    UpstreamConfig defaults;
    defaults.timeout = upstream.timeout;
    defaults.late_answer_window = upstream.late_answer_window;
    defaults.input_window = upstream.input_window;
    ToolConfig tool = defaults.ForTool(name);
    ReadTool(table, tool);
    upstream.tools.emplace(name, std::move(tool));
    if (!IsMemberName(name)) reader.Complain("tools", "names a tool by what is no tool's name");
  });
  CheckUpstream(reader, upstream);
}

void ReadTop(TomlReader& reader, Config& config) {
  reader.Text("log_level", config.log_level);
  reader.Text("pin_file", config.pin_file);
  reader.Duration("shutdown_grace", config.shutdown_grace, milliseconds(0), minutes(10));
  reader.Text("listen.address", config.listen.address);
  reader.Text("listen.path", config.listen.path);
  reader.Texts("listen.allowed_hosts", config.listen.allowed_hosts, kListMax);
  reader.Texts("listen.allowed_origins", config.listen.allowed_origins, kListMax);
  reader.Text("permit.http", config.permit.http);
  reader.Text("permit.stdio", config.permit.stdio);
  reader.Duration("permit.view_ttl", config.permit.view_ttl, milliseconds(0), minutes(5));
  reader.Text("tallyd.server", config.tallyd.server);
  reader.Text("tallyd.credential_file", config.tallyd.credential_file);
  reader.Text("tallyd.ca_file", config.tallyd.ca_file);
  reader.Text("tallyd.certificate_file", config.tallyd.certificate_file);
  reader.Text("tallyd.key_file", config.tallyd.key_file);
  reader.Duration("tallyd.timeout", config.tallyd.timeout, milliseconds(100), minutes(2));
  reader.Duration("tallyd.try_timeout", config.tallyd.try_timeout, milliseconds(100), minutes(2));
  reader.Duration("tallyd.lease_margin", config.tallyd.lease_margin, seconds(1), hours(1));
  reader.Choice<Config::ErrorStyle>(
      "mcp.error_style", config.mcp.error_style,
      {{"result", Config::ErrorStyle::kResult}, {"jsonrpc", Config::ErrorStyle::kJsonRpc}});
  reader.Texts("mcp.uncertain_words", config.mcp.uncertain_words, kListMax);
  reader.Text("journal.path", config.journal.path);
  reader.Whole("journal.bytes_max", config.journal.bytes_max, 1 << 20, int64_t{1} << 40);
  reader.Text("audit.path", config.audit.path);
  reader.Whole("audit.file_bytes_max", config.audit.file_bytes_max, 64 << 10, int64_t{1} << 40);
  reader.Whole("audit.files_max", config.audit.files_max, 1, 1000);
  reader.Whole("audit.queue_max", config.audit.queue_max, 100, 10'000'000);
  reader.Choice<Config::AuditFailure>(
      "audit.on_failure", config.audit.on_failure,
      {{"closed", Config::AuditFailure::kClosed}, {"open", Config::AuditFailure::kOpen}});
  reader.Whole("limits.message_bytes_max", config.limits.message_bytes_max, 64 << 10, 64 << 20);
  reader.Whole("limits.answer_bytes_max", config.limits.answer_bytes_max, 64 << 10, 256 << 20);
  reader.Whole("limits.connections_max", config.limits.connections_max, 1, 1'000'000);
  reader.Whole("limits.sessions_max", config.limits.sessions_max, 1, 1'000'000);
  reader.Duration("limits.session_idle", config.limits.session_idle, minutes(1), hours(24 * 7));
  reader.Whole("limits.calls_max", config.limits.calls_max, 1, 1'000'000);
  reader.Whole("limits.stream_bytes_max", config.limits.stream_bytes_max, 64 << 10, 256 << 20);
  reader.Whole("limits.header_bytes_max", config.limits.header_bytes_max, 4 << 10, 1 << 20);
  reader.Duration("limits.request_timeout", config.limits.request_timeout, seconds(1), minutes(10));
  reader.Tables("upstreams", kUpstreamsMax, [&](const std::string& name, TomlReader& table) {
    if (!IsUpstreamName(name))
      reader.Complain("upstreams", Cat("names one '", name, "', and a name is [a-z0-9-]{1,32}"));
    if (name == "tally") reader.Complain("upstreams", "names one 'tally', which is the gateway's own name");
    ReadUpstream(table, config.upstreams[name]);
  });

  for (const auto& [name, upstream] : config.upstreams) {
    for (const auto& [own, tool] : upstream.tools) {
      // What is no more than the timeout was complained about where it stands.
      const bool some = tool.keyed && tool.replay_window > tool.timeout;
      if (!some || tool.replay_window > tool.timeout + config.tallyd.lease_margin) continue;
      reader.Complain("upstreams",
                      Cat("gives ", name, "'s tool ", own,
                          " a replay_window that is not above its timeout and tallyd.lease_margin together: "
                          "it would never be sent again"));
    }
  }

  const auto& levels = {"debug", "info", "warning", "error"};
  if (std::find(levels.begin(), levels.end(), config.log_level) == levels.end()) {
    reader.Complain("log_level", R"(must be "debug", "info", "warning" or "error")");
  }
  for (const auto& [name, path] :
       {std::pair("pin_file", &config.pin_file), std::pair("journal.path", &config.journal.path),
        std::pair("audit.path", &config.audit.path)}) {
    if (path->empty()) reader.Complain(name, "must name a file");
  }
  if (config.journal.path == config.audit.path) reader.Complain("audit.path", "is the journal's");
  for (const std::string& word : config.mcp.uncertain_words) {
    if (word.size() < 3 || word.size() > 256 || !re2::RE2(word, re2::RE2::Quiet).ok()) {
      reader.Complain("mcp.uncertain_words", "must hold patterns in RE2 syntax, of 3 to 256 bytes");
    }
  }
  CheckListen(reader, config);
  CheckPermit(reader, config.permit);
  CheckTallyd(reader, config.tallyd);
}

}  // namespace tally::gateway
