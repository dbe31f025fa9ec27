#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "lib/keys/text.h"
#include "reconciler/config/read.h"

namespace tally::reconciler {
namespace {

using keys::Cat;
using settings::TomlReader;

constexpr size_t kHeadersMax = 64;
constexpr size_t kListMax = 64;

// RFC 9110 section 5.6.2: a token.
bool IsHeaderName(std::string_view name) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOthers.find(c) != kOthers.npos;
  });
}

// Those that say how the message itself is to be read.
bool IsReserved(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kReserved = {"connection", "content-length",    "content-type",
                                                                "host",       "keep-alive",        "te",
                                                                "trailer",    "transfer-encoding", "upgrade"};
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

bool HoldsSecret(std::string_view lower) {
  for (const std::string_view word : {"authorization", "cookie", "token", "secret", "api-key", "apikey", "password"}) {
    if (lower.find(word) != lower.npos) return true;
  }
  return false;
}

void CheckHeaderName(TomlReader& reader, const std::string& table, const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  if (!IsHeaderName(name)) return reader.Complain(table, "has a name that is no HTTP header's");
  if (IsReserved(lower)) {
    return reader.Complain(table,
                           Cat("has ", name, ", which HTTP itself sets; a body's type follows from json or form"));
  }
  if (table == "headers" && HoldsSecret(lower)) {
    reader.Complain(table, Cat("has ", name, ", which looks like a credential: it belongs into secret_headers"));
  }
}

void ReadHeaders(TomlReader& reader, HttpConfig& http) {
  std::map<std::string, std::string> headers;
  reader.TextByName("headers", headers, kHeadersMax);
  for (const auto& [name, text] : headers) {
    CheckHeaderName(reader, "headers", name);
    auto header = HeaderTemplate::Parse(text);
    if (!header.ok()) {
      reader.Complain("headers", Cat(name, " ", header.status().message()));
    } else {
      http.headers.emplace_back(name, *std::move(header));
    }
  }
  reader.TextByName("secret_headers", http.secret_headers, kHeadersMax);
  for (const auto& [name, source] : http.secret_headers) {
    CheckHeaderName(reader, "secret_headers", name);
    if (!IsSecretSource(source)) {
      reader.Complain("secret_headers", Cat(name, " must be \"file:PATH\" or \"env:NAME\", never the secret itself"));
    }
  }
}

void ReadBody(TomlReader& reader, HttpConfig& http) {
  std::string document;
  reader.Text("json", document);
  std::map<std::string, std::string> fields;
  reader.TextByName("form", fields, kListMax);
  if (reader.Has("json") && reader.Has("form"))
    return reader.Complain("form", "stands beside json; a request has one body");
  if ((reader.Has("json") || reader.Has("form")) && http.method != "POST") {
    return reader.Complain(reader.Has("json") ? "json" : "form", "is a body, and only POST has one");
  }
  http.has_json = reader.Has("json");
  if (http.has_json) {
    auto json = JsonTemplate::Parse(document);
    if (!json.ok()) return reader.Complain("json", Cat(json.status().message()));
    http.json = *std::move(json);
  }
  for (const auto& [name, text] : fields) {
    if (absl::Status added = http.form.Add(name, text); !added.ok()) {
      reader.Complain("form", Cat(name, " ", added.message()));
    }
  }
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && name.size() <= 256 && name.find_first_of(std::string_view("=\0", 2)) == name.npos;
}

}  // namespace

void ReadHttp(TomlReader& reader, HttpConfig& http) {
  bool post = false;
  reader.Choice<bool>("method", post, {{"GET", false}, {"POST", true}});
  http.method = post ? "POST" : "GET";
  std::string text;
  reader.Text("url", text);
  auto url = UrlTemplate::Parse(text);
  if (!reader.Has("url")) {
    reader.Complain("url", "must be written");
  } else if (!url.ok()) {
    reader.Complain("url", Cat(url.status().message()));
  } else {
    http.url = *std::move(url);
  }
  ReadHeaders(reader, http);
  ReadBody(reader, http);
  reader.Whole("answer_bytes_max", http.answer_bytes_max, 1 << 10, 1 << 20);
}

void ReadExec(TomlReader& reader, ExecConfig& exec) {
  reader.Text("program", exec.program);
  if (!exec.program.starts_with('/'))
    reader.Complain("program", "must be an absolute path: no shell and no PATH finds it");
  reader.Texts("args", exec.args, kListMax);
  for (const std::string& arg : exec.args) {
    for (const char* placeholder : {"{reference}", "{provider_key}", "{call_id}", "{argument:"}) {
      if (arg.find(placeholder) != arg.npos) {
        reader.Complain("args", Cat("holds ", placeholder,
                                    "…, and nothing is filled in here: all of a call comes on the "
                                    "program's standard input"));
      }
    }
  }
  reader.TextByName("env", exec.env, kListMax);
  reader.TextByName("env_files", exec.env_files, kListMax);
  for (const auto* variables : {&exec.env, &exec.env_files}) {
    const char* name = variables == &exec.env ? "env" : "env_files";
    for (const auto& [variable, value] : *variables) {
      if (!IsVariableName(variable)) reader.Complain(name, "holds what is no name of a variable");
      if (variables != &exec.env_files) continue;
      if (value.empty()) reader.Complain(name, Cat("names no file for ", variable));
      if (exec.env.contains(variable)) reader.Complain(name, Cat("holds ", variable, ", and so does env"));
    }
  }
}

void ReadMcp(TomlReader& reader, McpConfig& mcp) {
  reader.Text("gateway_config", mcp.gateway_config);
  if (mcp.gateway_config.empty()) {
    reader.Complain("gateway_config",
                    "must be written: the file whose [upstreams.NAME] says how the server is reached");
  }
  reader.Text("upstream", mcp.upstream);
  reader.Text("tool", mcp.tool);
  if (mcp.tool.empty()) reader.Complain("tool", "must be written: the server's own name for a tool that reads");
  std::string arguments;
  reader.Text("arguments", arguments);
  auto document = JsonTemplate::Parse(arguments);
  if (!reader.Has("arguments")) {
    reader.Complain("arguments",
                    "must be written: a JSON object as a text, such as '{\"reference\": \"{reference}\"}'");
  } else if (!document.ok()) {
    reader.Complain("arguments", Cat(document.status().message()));
  } else if (arguments.find_first_not_of(" \t\r\n") != arguments.find('{')) {
    reader.Complain("arguments", "must be a JSON object");
  } else {
    mcp.arguments = *std::move(document);
  }
}

void ReadReplay(TomlReader& reader, ReplayConfig& replay) {
  reader.Text("gateway_config", replay.gateway_config);
  if (replay.gateway_config.empty()) {
    reader.Complain("gateway_config", "must be written: the gateway's own config, which says where the key is put");
  }
}

bool IsSecretSource(std::string_view source) {
  return (source.starts_with("file:") && source.size() > 5) ||
         (source.starts_with("env:") && IsVariableName(source.substr(4)));
}

bool ReadPointer(TomlReader& reader, const std::string& name, json::Pointer& into) {
  std::string text;
  reader.Text(name, text);
  if (!reader.Has(name)) return false;
  auto pointer = json::Pointer::Parse(text);
  if (!pointer.ok()) {
    reader.Complain(name, "must be a JSON pointer (RFC 6901), like \"/data/0\"; \"\" is the whole");
    return false;
  }
  into = *std::move(pointer);
  return true;
}

}  // namespace tally::reconciler
