// What an operator can set. These comments are the manual; deploy/tallyd.toml says the same in fewer words, and a test
// holds the two together.
#ifndef TALLY_SERVER_OPS_CONFIG_H_
#define TALLY_SERVER_OPS_CONFIG_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/keys/secret.h"
#include "server/ops/log.h"

namespace tally::ops {

struct Config {
  // `database_url`: connection string of a PostgreSQL 15 or later, as URI or keyword list. It may hold a password and
  // is never printed. Empty (the default): a private PostgreSQL under the data directory. TALLY_DATABASE_URL, where
  // set, comes before the file.
  keys::Secret database_url;

  // `issuer`: the name that signing keys are published under (C2SP), and the issuer in every receipt. 1-255 bytes of
  // UTF-8 without spaces, control characters and '+'.
  std::string issuer = "tallystick";

  // `key_encryption_key`: where the key that seals signing seeds comes from. "file:PATH", "env:VARIABLE" or
  // "credential:NAME" (a systemd credential).
  std::string key_encryption_key = "file:kek";

  // `log_level`: "debug", "info", "warning" or "error".
  Severity log_level = Severity::kInfo;

  // `shutdown_grace`: after the first SIGTERM or SIGINT, the time in which accepted calls may finish. 0 s to 10 min.
  std::chrono::milliseconds shutdown_grace{20'000};

  // `sweep_interval`: the pause between two looks for calls whose lease is over. 100 ms to 1 min. Leases hold without
  // it: whoever touches such a call parks it too.
  std::chrono::milliseconds sweep_interval{1'000};

  // `control_workers`: threads, each with a connection to the database, for what does not go through lanes. 1 to 64.
  int control_workers = 4;

  // `message_bytes_max`: the largest request or answer. 2 MiB (a result of 1 MiB with room for its receipts) to 64 MiB.
  int message_bytes_max = 4 << 20;

  struct Listen {
    // `listen.socket`: path of the unix socket; at most 107 bytes once absolute, a limit of the system. Empty: none.
    std::string socket = "tallyd.sock";

    // `listen.tcp`: "ADDRESS:PORT" or "[ADDRESS]:PORT"; needs `tls.certificate` and `tls.key`. Empty (default): none.
    // One of socket and tcp must be given.
    std::string tcp;

    // `listen.http`: "ADDRESS:PORT" for /metrics and /healthz, plain HTTP without authentication; and, on a loopback
    // address only, for the service as Connect's unary protocol, with the same credentials as gRPC. Port 0: any that is
    // free. Empty (default): none.
    std::string http;
  } listen;

  struct Tls {
    // `tls.certificate`, `tls.key`: PEM files, given together.
    std::string certificate;
    std::string key;

    // `tls.client_ca`: PEM file of authorities for client certificates; empty: none are accepted.
    std::string client_ca;
  } tls;

  struct Webhooks {
    // `webhooks.allow_private`: send to addresses that are not of the public internet (loopback, private networks and
    // the like). Off (default): such a webhook cannot be created, and where a name resolves to one nothing is sent.
    bool allow_private = false;

    // `webhooks.allow_http`: send without TLS. Off (default): https only.
    bool allow_http = false;

    // `webhooks.timeout`: of one send, from the name's look-up to the end of the answer. 1 s to 30 s. Stopping waits
    // for sends under way.
    std::chrono::milliseconds timeout{10'000};

    // `webhooks.retry_first`, `webhooks.retry_longest`: a message that was not taken waits at most so long after its
    // first failed try, twice that after the second, and so on to the longest; each time anything between nothing and
    // that. 100 ms to 1 h, and 1 s to 24 h.
    std::chrono::milliseconds retry_first{5'000};
    std::chrono::milliseconds retry_longest{3'600'000};

    // `webhooks.give_up_after`: the age at which a message that is still not taken goes. 1 min to 30 days.
    std::chrono::milliseconds give_up_after = std::chrono::hours(72);
  } webhooks;

  struct Lanes {
    // `lanes.count`: 1 to 16 (the number of shards).
    int count = 2;

    // `lanes.batch_max`: calls in one transaction. 1 to 1024.
    int batch_max = 128;

    // `lanes.queue_max`: calls that wait in one lane, of each priority; the next is answered OVERLOADED. 1 to
    // 1,000,000.
    int queue_max = 4096;
  } lanes;
};

// Reads the text alone: no files, no environment, paths as they are written. All mistakes are named at once, each with
// `source` and its line; no value of `database_url` is ever in an error.
absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view source);

// DATA_DIR/tallyd.toml, then TALLY_DATABASE_URL (which is wiped from the environment, so that no child process has it:
// call this before any thread is started); paths made absolute.
absl::StatusOr<Config> LoadConfig(const std::string& data_dir);

// The key itself, from where `key_encryption_key` says. Also before any thread is started.
absl::StatusOr<keys::Secret> ReadKeyEncryptionKey(const Config& config);

// What `tallyd init` leaves: deploy/tallyd.toml as it was when this was compiled. Mode 0600; AlreadyExists, and nothing
// touched, where something is.
absl::Status WriteDefaultConfig(const std::string& path);
extern const char* const kDefaultConfigText;

// "ADDRESS:PORT" or "[ADDRESS]:PORT" in its two parts.
struct Endpoint {
  std::string host;
  int port = 0;
};
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text);

// Every setting by its full name ("lanes.count"), as ParseConfig knows them.
std::vector<std::string> ConfigNames();

}  // namespace tally::ops

#endif  // TALLY_SERVER_OPS_CONFIG_H_
