// What an operator can set. These comments are the manual; deploy/tally-gateway.toml says the same in fewer words, and
// a test holds the two together. Paths are relative to the folder of the config file.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/mcp/judge.h"

namespace tally::gateway {

// Where a text of ours is put into a request for an upstream: one of these, or none. A key that the caller would send
// in the same place is stripped before Authorize.
struct Placement {
  enum class Where {
    kNowhere,
    kArgument,  // { argument = "idempotency_key" }: a member of `arguments`
    kMeta,      // { meta = "example.com/key" }: a member of `_meta`
    kHeader,    // { header = "X-Request-Key" }: an HTTP header; upstreams with a url only
  };
  Where where = Where::kNowhere;
  std::string name;

  bool operator==(const Placement&) const = default;
};

// [upstreams.NAME.tools.TOOL]: TOOL is the upstream's own name for the tool.
struct ToolConfig {
  // `timeout`: until the agent is answered that the outcome is not known. 100 ms to 10 min. Default: the upstream's.
  std::chrono::milliseconds timeout{30'000};

  // `late_answer_window`: how long an answer is waited for after that, to be committed. 0 s to 24 h. Default: the
  // upstream's.
  std::chrono::milliseconds late_answer_window{600'000};

  // `input_window`: how long a call whose tool asked for input waits for the agent's answer, each time; it is parked
  // after that. 1 s to 23 h. Default: the upstream's.
  std::chrono::milliseconds input_window{300'000};

  // `replay`: "none" (default): a call is sent once. "keyed": the provider promises that it carries out one call a key,
  // so the same bytes with the same key are sent again while it is not known what became of them: at most three times,
  // after a jittered pause, within `replay_window` less `timeout` and `tallyd.lease_margin`, and while the lease runs.
  bool keyed = false;

  // `key`: where the key is put; required with "keyed", not taken without.
  Placement key;

  // `replay_window`: how long the provider remembers keys; required with "keyed". 1 s to 30 days, and above `timeout`
  // and `tallyd.lease_margin` together.
  std::chrono::milliseconds replay_window{0};

  // `reference`: where the reference is put by which a reconciler can look the call up; default: nowhere.
  Placement reference;

  // `error_rules`: an array of { pattern, means }, at most 64: what an error's words mean. The first whose pattern is
  // found decides, before the rules that are built in. `pattern`: RE2 syntax, found anywhere in the text of an isError
  // result or of a JSON-RPC error's message; 1-1024 bytes. `means`: "uncertain" (it may have happened), "error" (an
  // answer: the slot and, by the grant, the hold are kept) or "no_effect" (an answer that says that nothing was done:
  // the hold is given back; a promise that the tool must keep).
  std::vector<mcp::ErrorRule> error_rules;

  // What `error_rules` and `mcp.uncertain_words` come to. Made when the config is read, which refuses what cannot be.
  mcp::ErrorRules judged_by;
};

// What a tool's changed name, schema or description does; "off" looks at nothing.
enum class Pin { kOff, kReport, kStrict };

// [upstreams.NAME]: NAME is [a-z0-9-]{1,32}. Either a command or a url. At most 64.
struct UpstreamConfig {
  // `command`, `args`: a program found on PATH or by its path, that speaks MCP on stdin and stdout. No shell.
  std::string command;
  std::vector<std::string> args;

  // `env`: variables of the process, besides PATH, HOME, LANG, TZ and TMPDIR, which it gets from the gateway's own
  // environment; it gets nothing else. Secrets do not belong here, but in `env_files`.
  std::map<std::string, std::string> env;

  // `env_files`: variables whose value is the content of a file, without its last line end. The file's mode must be
  // 0600 or stricter.
  std::map<std::string, std::string> env_files;

  // `cwd`: the process's working folder. Default: the config file's.
  std::string cwd;

  // `url`: an MCP endpoint over Streamable HTTP, "http://…" or "https://…", without user, password or fragment. Plain
  // http only to a loopback address.
  std::string url;

  // `headers_file`: request headers for it, one "Name: value" a line; lines that are empty or begin with '#' are left
  // out. Mode 0600 or stricter: this is where a credential for the upstream goes. Headers that belong to HTTP or MCP
  // themselves, and Idempotency-Key (HTTP libraries on the way resend what carries it), are refused.
  std::string headers_file;

  // `ca_file`: PEM of the authorities for an https url. Default: the system's.
  std::string ca_file;

  // `shared`: one process for all clients instead of one for each; with a command only. It then gets no sampling, no
  // elicitation and no roots, and its log messages reach nobody. Only for servers that keep nothing of one client from
  // another.
  bool shared = false;

  // `timeout`, `late_answer_window`, `input_window`: for its tools and, timeout alone, for all other requests. As in
  // ToolConfig. A timeout should be below those of the clients: many give up after 30 to 60 s.
  std::chrono::milliseconds timeout{30'000};
  std::chrono::milliseconds late_answer_window{600'000};
  std::chrono::milliseconds input_window{300'000};

  // `read_tries`: how often a protocol read (initialize, tools/list, resources/read, …) is sent at most, with jittered
  // backoff between. 1 to 10. A tools/call has no such setting.
  int read_tries = 3;

  // `pin`: "off", "report" (default) or "strict": a tool that differs from what was first seen is said so, or is
  // refused as well, until it is accepted.
  Pin pin = Pin::kReport;

  // `tools`: what is special about some of its tools. At most 1024.
  std::map<std::string, ToolConfig> tools;

  // For tools without a table: what `mcp.uncertain_words` come to.
  mcp::ErrorRules judged_by;

  // The tool's own settings, or what the upstream's make of the defaults.
  ToolConfig ForTool(std::string_view tool) const;
};

struct Config {
  // `log_level`: "debug", "info", "warning" or "error". JSON lines on standard error.
  std::string log_level = "info";

  // `pin_file`: what each tool looked like when it was first seen or accepted.
  std::string pin_file = "pins.json";

  // `shutdown_grace`: after SIGTERM or SIGINT, the time in which calls under way may be answered. 0 s to 10 min.
  std::chrono::milliseconds shutdown_grace{20'000};

  struct Listen {
    // `listen.address`: "ADDRESS:PORT" or "[ADDRESS]:PORT" for agents on HTTP. Port 0: any that is free. Whatever is
    // not a loopback address needs a proxy with TLS in front, and `listen.allowed_hosts`.
    std::string address = "127.0.0.1:8700";

    // `listen.path`: the MCP endpoint's.
    std::string path = "/mcp";

    // `listen.allowed_hosts`: Host headers that are taken besides those of a loopback address with the port listened
    // on: "NAME" (any port) or "NAME:PORT". Others are answered 403 [a web page must not reach us by rebinding a name].
    std::vector<std::string> allowed_hosts;

    // `listen.allowed_origins`: Origin headers of web pages that may use us, "https://NAME" or "http://NAME:PORT",
    // besides loopback ones. A request without Origin is not from a web page.
    std::vector<std::string> allowed_origins;
  } listen;

  struct Permit {
    // `permit.http`: where an HTTP client's permit token is: "bearer" (the Authorization header) or "header:NAME".
    std::string http = "bearer";

    // `permit.stdio`: the permit token of the one client on stdin: "env:NAME" or "file:PATH" (mode 0600 or stricter).
    std::string stdio = "env:TALLY_PERMIT_TOKEN";

    // `permit.view_ttl`: how long what a permit grants, and what is left of it, is remembered for lists of tools. It
    // decides about nothing: every call asks tallyd. 0 s to 5 min.
    std::chrono::milliseconds view_ttl{5'000};
  } permit;

  struct Tallyd {
    // `tallyd.server`: "unix:PATH", or "HOST:PORT", which is always TLS.
    std::string server = "unix:tallyd.sock";

    // `tallyd.credential_file`: the credential of a principal of role gateway. Mode 0600 or stricter. Empty where a
    // client certificate stands for it.
    std::string credential_file = "gateway.credential";

    // `tallyd.ca_file`: PEM of the issuer of tallyd's certificate. Default: the system's.
    std::string ca_file;

    // `tallyd.certificate_file`, `tallyd.key_file`: PEM of a client certificate, given together.
    std::string certificate_file;
    std::string key_file;

    // `tallyd.timeout`: one question, with its retries. 100 ms to 2 min.
    std::chrono::milliseconds timeout{10'000};

    // `tallyd.try_timeout`: one try of it. 100 ms to 2 min, not above `tallyd.timeout`.
    std::chrono::milliseconds try_timeout{5'000};

    // `tallyd.lease_margin`: what a lease is asked for beyond send window and tool timeout; and how much of a
    // provider's replay_window is left alone. 1 s to 1 h.
    std::chrono::milliseconds lease_margin{30'000};
  } tallyd;

  enum class ErrorStyle { kResult, kJsonRpc };
  struct Mcp {
    // `mcp.error_style`: how a refused call is said: "result", a tool result with isError that the model reads, or
    // "jsonrpc", a JSON-RPC error.
    ErrorStyle error_style = ErrorStyle::kResult;

    // `mcp.uncertain_words`: more patterns (RE2 syntax) by which a tool's error is taken for a lost answer, found
    // anywhere in it whatever their case, beside those that are built in. At most 256, of 3 to 256 bytes.
    std::vector<std::string> uncertain_words;
  } mcp;

  struct Journal {
    // `journal.path`: where commits are kept until tallyd has them. One gateway a file.
    std::string path = "journal";

    // `journal.bytes_max`: while it is larger nothing is sent; outcomes are still taken. 1 MiB to 1 TiB.
    int64_t bytes_max = 256 << 20;
  } journal;

  enum class AuditFailure { kClosed, kOpen };
  struct Audit {
    // `audit.path`: one JSON line for every request sent to an upstream. SIGHUP opens it anew.
    std::string path = "audit.jsonl";

    // `audit.file_bytes_max`: a file that would grow over this becomes PATH.1, and that PATH.2, … 64 KiB to 1 TiB.
    int64_t file_bytes_max = 64 << 20;

    // `audit.files_max`: how many of those are kept. 1 to 1000.
    int files_max = 10;

    // `audit.queue_max`: lines that wait for the disk. 100 to 10,000,000.
    int queue_max = 100'000;

    // `audit.on_failure`: "closed": while lines cannot be written no call is sent. "open": calls go on without a trace.
    AuditFailure on_failure = AuditFailure::kClosed;
  } audit;

  struct Limits {
    // `limits.message_bytes_max`: one message of a client. 64 KiB to 64 MiB.
    int64_t message_bytes_max = 4 << 20;

    // `limits.answer_bytes_max`: one message of an upstream. 64 KiB to 256 MiB.
    int64_t answer_bytes_max = 16 << 20;

    // `limits.connections_max`: of clients, at one time. 1 to 1,000,000.
    int connections_max = 20'000;

    // `limits.sessions_max`: of clients, at one time. 1 to 1,000,000.
    int sessions_max = 10'000;

    // `limits.session_idle`: a session without request or stream for this long ends. 1 min to 7 days.
    std::chrono::milliseconds session_idle{1'800'000};

    // `limits.calls_max`: tools/call under way, late answers included. 1 to 1,000,000.
    int calls_max = 10'000;

    // `limits.stream_bytes_max`: what is kept for a slow reader, and for the resumption of one stream. 64 KiB to
    // 256 MiB.
    int64_t stream_bytes_max = 4 << 20;

    // `limits.header_bytes_max`: all headers of a request. 4 KiB to 1 MiB.
    int64_t header_bytes_max = 64 << 10;

    // `limits.request_timeout`: the time a client has for sending one request. 1 s to 10 min.
    std::chrono::milliseconds request_timeout{30'000};
  } limits;

  // `upstreams`, by name.
  std::map<std::string, UpstreamConfig> upstreams;
};

// Reads the text alone: no files, no environment, paths as they are written. All mistakes are named at once, each with
// `source` and its line. No value of `env` is ever in an error.
absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view source);

// The file, with paths made absolute.
absl::StatusOr<Config> LoadConfig(const std::string& path);

// Every setting by its full name ("listen.address"), as ParseConfig knows them; those of an upstream and of a tool
// apart.
struct SettingNames {
  std::vector<std::string> top, upstream, tool;
};
SettingNames ConfigNames();

// "ADDRESS:PORT" or "[ADDRESS]:PORT" in its two parts.
struct ListenAddress {
  std::string host;
  uint16_t port = 0;
};
absl::StatusOr<ListenAddress> ParseListenAddress(std::string_view text);

}  // namespace tally::gateway
