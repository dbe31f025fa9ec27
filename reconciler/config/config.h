// What an operator can set. These comments and those of reconciler/verdict/rules.h are the manual;
// deploy/tally-reconciler.toml says the same in fewer words, and a test holds them together. Paths are relative to the
// folder of the config file.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconciler/template/body.h"
#include "reconciler/template/url.h"
#include "reconciler/verdict/rules.h"

namespace tally::reconciler {

using std::chrono::milliseconds;

// [[provider]]: somebody who can be asked, and how hard. At most 64.
struct ProviderConfig {
  // `name`: by which tools name it, and the source of the evidence it gives. [a-z0-9-]{1,64}. Required.
  std::string name;

  // `concurrency`: questions to it at one time, of this process. 1 to 256.
  int concurrency = 4;

  // `per_second`: questions a second of this process, a token bucket that holds one second's worth and at least one.
  // 0.01 to 10,000.
  double per_second = 10;

  // `allow_private`: it may be at a private, loopback or link-local address.
  bool allow_private = false;

  // `allow_http`: it may be asked without TLS.
  bool allow_http = false;

  // `ca_file`: PEM of the authorities for it. Default: the system's.
  std::string ca_file;
};

// [tool.http]: one HTTP request. Placeholders, in all that is filled in for a call: see docs/reconciler.md.
struct HttpConfig {
  // `method`: "GET" or "POST". A look-up must change nothing.
  std::string method = "GET";

  // `url`: "https://HOST/PATH?NAME=VALUE"; placeholders in path segments and values. Required.
  UrlTemplate url;

  // `headers`: by name. No credentials: those stand in `secret_headers`.
  std::vector<std::pair<std::string, HeaderTemplate>> headers;

  // `secret_headers`: by name: "file:PATH" (mode 0600 or stricter) or "env:NAME", which hold the whole value.
  std::map<std::string, std::string> secret_headers;

  // `json`: a JSON document as a text, the body of a POST. Or `form`: a table of fields. One of them, or none.
  bool has_json = false;
  JsonTemplate json;
  FormTemplate form;

  // `answer_bytes_max`: a larger answer is none. 1 KiB to 1 MiB.
  int64_t answer_bytes_max = 1 << 20;
};

// [tool.exec]: a program. It gets one JSON object on its standard input (see docs/reconciler.md) and answers with one.
struct ExecConfig {
  // `program`: its absolute path. No shell. Required.
  std::string program;

  // `args`: as they stand; nothing is filled in. At most 64.
  std::vector<std::string> args;

  // `env`: variables, besides PATH, HOME, LANG, TZ and TMPDIR; nothing else is inherited. No secrets.
  std::map<std::string, std::string> env;

  // `env_files`: variables whose value is the content of a file, without its last line end. Mode 0600 or stricter.
  std::map<std::string, std::string> env_files;
};

// [tool.mcp]: a read tool of an MCP server. It must change nothing, which nobody can check but the operator.
struct McpConfig {
  // `gateway_config`: a gateway's config file, or any of its form: its [upstreams.NAME] says how the server is reached
  // and by which credentials. Required.
  std::string gateway_config;

  // `upstream`: that NAME. Default: the one in the tool's own name, NAME__TOOL.
  std::string upstream;

  // `tool`: the read tool, by the server's own name for it. Required.
  std::string tool;

  // `arguments`: its arguments: a JSON object as a text, with placeholders. Required.
  JsonTemplate arguments;
};

// [tool.replay]: the call itself once more, under the provider's key, as the gateway sends it: see docs/reconciler.md.
struct ReplayConfig {
  // `gateway_config`: the gateway's own config file. What it declares of the tool holds here: `replay = "keyed"`, where
  // the key is put, `replay_window`, `error_rules`, and `tallyd.lease_margin`. Required.
  std::string gateway_config;
};

enum class Kind { kHuman, kHttp, kExec, kMcp, kReplay };
std::string_view NameOf(Kind kind);

// [[tool]]: how calls of a tool are looked up. Tools without an entry are `human`. At most 1024.
struct ToolConfig {
  // `tool`: as permits name it, or a prefix that ends in '*'. The exact name comes first, then the longest prefix.
  std::string tool;

  // `look_up`: "http", "exec", "mcp", "replay", or "human": nobody can be asked but a person, who is called at once.
  // "replay" is for one tool by its exact name, and sends its calls again.
  Kind kind = Kind::kHuman;

  // `provider`: a [[provider]]'s name. Required but for "human".
  std::string provider;

  // `timeout`: of one question. 100 ms to 5 min, and at most half of `reconciler.claim`.
  milliseconds timeout{10'000};

  // `absent_is_final_after`: how long after it can last have been sent a call may still turn up at the provider: the
  // time that requests wait in its queues, plus that by which its search lags behind its writes. Only then does "there
  // is no such record" begin to count. 1 s to 30 days. Required for look-ups that can say so ("http", "exec", "mcp"):
  // too short a time is a second payment, too long a time a customer who waits.
  milliseconds absent_is_final_after{0};

  // `give_up_after`: counted from parking; then a person is called. Default: `reconciler.give_up_after`.
  milliseconds give_up_after{0};

  // [tool.http], [tool.exec], [tool.mcp], [tool.replay]: that of its kind. [tool.answer]: how the answer is read, for
  // "http" and "mcp"; "exec" takes of it `result_form` alone.
  HttpConfig http;
  ExecConfig exec;
  McpConfig mcp;
  ReplayConfig replay;
  AnswerRules answer;
};

struct Config {
  // `log_level`: "debug", "info", "warning" or "error". JSON lines on standard error.
  std::string log_level = "info";

  struct Tallyd {
    // `tallyd.server`: "unix:PATH", or "HOST:PORT", which is always TLS.
    std::string server = "unix:tallyd.sock";

    // `tallyd.credential_file`: the credential of a principal of role reconciler. Mode 0600 or stricter. Empty where a
    // client certificate stands for it.
    std::string credential_file = "reconciler.credential";

    // `tallyd.ca_file`: PEM of the issuer of tallyd's certificate. Default: the system's.
    std::string ca_file;

    // `tallyd.certificate_file`, `tallyd.key_file`: PEM of a client certificate, given together.
    std::string certificate_file;
    std::string key_file;

    // `tallyd.timeout`: one question, with its retries. 100 ms to 2 min.
    milliseconds timeout{10'000};
  } tallyd;

  struct Reconciler {
    // `reconciler.workers`: calls worked on at one time. 1 to 256.
    int workers = 8;

    // `reconciler.poll`: how often tallyd is asked what is parked. 100 ms to 10 min.
    milliseconds poll{2'000};

    // `reconciler.claim`: how long a call is this process's. If it dies, others wait that long. 2 s to 1 h.
    milliseconds claim{120'000};

    // `reconciler.backoff_min`, `reconciler.backoff_max`: the pause before the next look at a call, drawn between
    // backoff_min and a ceiling that doubles with every look, up to backoff_max. 100 ms to 24 h.
    milliseconds backoff_min{2'000};
    milliseconds backoff_max{600'000};

    // `reconciler.absent_spacing`: the least time between the two looks that make an absence final. 500 ms to 24 h.
    milliseconds absent_spacing{10'000};

    // `reconciler.give_up_after`: counted from parking; then a person is called. 1 s to 30 days.
    milliseconds give_up_after{24 * 3'600'000};

    // `reconciler.look_after_escalation`: how long, counted from parking, a provider is still asked about a call for
    // which a person was called; only that it happened can then still be brought. 0 s to 90 days.
    milliseconds look_after_escalation{168 * 3'600'000};

    // `reconciler.metrics`: "ADDRESS:PORT" for /metrics and /healthz. Default: none.
    std::string metrics;
  } reconciler;

  // For "mcp" and "replay", as the gateway has it.
  struct Audit {
    // `audit.path`: one JSON line for every request sent to an MCP server. One reconciler a file. Nothing is sent again
    // while it cannot be written.
    std::string path = "reconciler-audit.jsonl";

    // `audit.file_bytes_max`: a file that would grow over this becomes PATH.1, and that PATH.2, … 64 KiB to 1 TiB.
    int64_t file_bytes_max = 64 << 20;

    // `audit.files_max`: how many of those are kept. 1 to 1000.
    int files_max = 10;
  } audit;

  std::vector<ProviderConfig> providers;  // [[provider]]
  std::vector<ToolConfig> tools;          // [[tool]]

  // What is configured for a tool; where nothing is, a `human` with its defaults.
  const ToolConfig& ForTool(std::string_view tool) const;
  // Null for the empty name.
  const ProviderConfig* Provider(std::string_view name) const;

  ToolConfig unlisted;
  std::string folder;  // the file's
};

// Reads the text alone: no files, no environment, paths as they are written. All mistakes are named at once, each with
// `source` and its line. No value of `env` is ever in an error.
absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view source);

// The file, with paths made absolute.
absl::StatusOr<Config> LoadConfig(const std::string& path);

// Every setting by its full name ("tallyd.server"), as ParseConfig knows them, by the table in which it stands: "" for
// the top, "provider", "tool", "tool.http", ….
std::map<std::string, std::vector<std::string>> ConfigNames();

}  // namespace tally::reconciler
