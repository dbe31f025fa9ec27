#include "server/ops/config.h"

#include <absl/strings/str_join.h>
#include <sodium.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>

#include "lib/keys/key_encryption_key.h"
#include "lib/keys/private_file.h"
#include "lib/keys/public_key.h"
#include "lib/keys/text.h"
#include "lib/settings/toml_file.h"
#include "lib/settings/toml_reader.h"

namespace tally::ops {
namespace {

using keys::Cat;
using settings::MakeAbsolute;
using settings::TomlReader;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr const char* kDatabaseUrl = "TALLY_DATABASE_URL";

bool StartsWith(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

void ReadAll(TomlReader& reader, Config& config, std::string& log_level) {
  reader.Confidential("database_url", config.database_url);
  reader.Text("issuer", config.issuer);
  reader.Text("key_encryption_key", config.key_encryption_key);
  reader.Text("log_level", log_level);
  reader.Duration("shutdown_grace", config.shutdown_grace, milliseconds(0), minutes(10));
  reader.Duration("sweep_interval", config.sweep_interval, milliseconds(100), minutes(1));
  reader.Whole("control_workers", config.control_workers, 1, 64);
  reader.Whole("message_bytes_max", config.message_bytes_max, 2 << 20, 64 << 20);
  reader.Text("listen.socket", config.listen.socket);
  reader.Text("listen.tcp", config.listen.tcp);
  reader.Text("listen.http", config.listen.http);
  reader.Text("tls.certificate", config.tls.certificate);
  reader.Text("tls.key", config.tls.key);
  reader.Text("tls.client_ca", config.tls.client_ca);
  reader.Flag("webhooks.allow_private", config.webhooks.allow_private);
  reader.Flag("webhooks.allow_http", config.webhooks.allow_http);
  reader.Duration("webhooks.timeout", config.webhooks.timeout, seconds(1), seconds(30));
  reader.Duration("webhooks.retry_first", config.webhooks.retry_first, milliseconds(100), hours(1));
  reader.Duration("webhooks.retry_longest", config.webhooks.retry_longest, seconds(1), hours(24));
  reader.Duration("webhooks.give_up_after", config.webhooks.give_up_after, minutes(1), hours(30 * 24));
  reader.Whole("lanes.count", config.lanes.count, 1, 16);
  reader.Whole("lanes.batch_max", config.lanes.batch_max, 1, 1024);
  reader.Whole("lanes.queue_max", config.lanes.queue_max, 1, 1'000'000);
}

// "file" and "PATH" of "file:PATH"; nothing where there are no such two parts.
std::optional<std::pair<std::string, std::string>> KeySource(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return std::nullopt;
  auto kind = text.substr(0, colon);
  if (kind != "file" && kind != "env" && kind != "credential") return std::nullopt;
  return std::pair(std::move(kind), text.substr(colon + 1));
}

void CheckOne(TomlReader& reader, Config& config, const std::string& log_level) {
  if (const auto severity = SeverityOf(log_level)) {
    config.log_level = *severity;
  } else {
    reader.Complain("log_level", R"(must be "debug", "info", "warning" or "error")");
  }
  if (const auto status = keys::CheckKeyName(config.issuer); !status.ok()) {
    reader.Complain("issuer", "must be 1-255 bytes of UTF-8 without spaces, control characters and '+'");
  }
  if (!KeySource(config.key_encryption_key)) {
    reader.Complain("key_encryption_key", R"(must be "file:PATH", "env:VARIABLE" or "credential:NAME")");
  }
  for (const auto& [name, address] :
       {std::pair{"listen.tcp", &config.listen.tcp}, {"listen.http", &config.listen.http}}) {
    if (address->empty()) continue;
    if (const auto endpoint = ParseEndpoint(*address); !endpoint.ok()) {
      reader.Complain(name, Cat("must be ", endpoint.status().message()));
    }
  }
}

void CheckTogether(TomlReader& reader, const Config& config) {
  if (config.listen.socket.empty() && config.listen.tcp.empty()) {
    reader.Complain("listen.socket", "is empty and so is listen.tcp: nobody could reach the service");
  }
  if (config.tls.certificate.empty() != config.tls.key.empty()) {
    reader.Complain(config.tls.key.empty() ? "tls.certificate" : "tls.key",
                    "stands alone: tls.certificate and tls.key are given together");
  }
  if (!config.listen.tcp.empty() && config.tls.certificate.empty()) {
    reader.Complain("listen.tcp", "needs tls.certificate and tls.key: there is no service on TCP without TLS");
  }
  if (!config.tls.client_ca.empty() && config.tls.certificate.empty()) {
    reader.Complain("tls.client_ca", "needs tls.certificate and tls.key");
  }
}

}  // namespace

absl::StatusOr<Config> ParseConfig(std::string_view text, std::string_view source) {
  const auto document = settings::ParseToml(text, source, {"database_url"});
  if (!document.ok()) return document.status();

  Config config;
  std::string log_level(NameOf(config.log_level));
  settings::Complaints complaints(source);
  TomlReader reader(*document, complaints);
  ReadAll(reader, config, log_level);
  reader.RefuseUnknown();
  if (complaints.empty()) CheckOne(reader, config, log_level);
  if (complaints.empty()) CheckTogether(reader, config);
  if (!complaints.empty()) return absl::InvalidArgumentError(absl::StrJoin(complaints.Lines(), "\n"));
  return config;
}

absl::StatusOr<Config> LoadConfig(const std::string& data_dir) {
  std::error_code error;
  const auto folder = std::filesystem::absolute(data_dir, error).string();
  if (error) return absl::InvalidArgumentError(Cat(data_dir, ": ", error.message()));
  const auto path = (std::filesystem::path(folder) / "tallyd.toml").string();
  auto text = settings::ReadSettingsFile(path);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(Cat("there is no ", path, ": run tallyd init with this --data-dir first"));
  }
  if (!text.ok()) return text.status();
  auto config = ParseConfig(*text, path);
  sodium_memzero(text->data(), text->size());
  if (!config.ok()) return config;

  if (char* url = std::getenv(kDatabaseUrl); url != nullptr) {
    config->database_url = keys::Secret::Copy(url);
    sodium_memzero(url, std::strlen(url));
    unsetenv(kDatabaseUrl);
  }

  for (std::string* file :
       {&config->listen.socket, &config->tls.certificate, &config->tls.key, &config->tls.client_ca}) {
    MakeAbsolute(folder, *file);
  }
  if (auto source = KeySource(config->key_encryption_key); source->first == "file") {
    MakeAbsolute(folder, source->second);
    config->key_encryption_key = "file:" + source->second;
  }
  if (config->listen.socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(Cat(path, ": listen.socket is too long: ", config->listen.socket, " has ",
                                          config->listen.socket.size(),
                                          " bytes and the system takes 107; set a shorter "
                                          "path, for instance under /run"));
  }
  return config;
}

absl::StatusOr<keys::Secret> ReadKeyEncryptionKey(const Config& config) {
  const auto source = KeySource(config.key_encryption_key);
  if (!source) return absl::InvalidArgumentError("key_encryption_key names no source");
  const auto& [kind, name] = *source;
  auto key = kind == "file"  ? keys::KeyEncryptionKeyFromFile(name)
             : kind == "env" ? keys::KeyEncryptionKeyFromEnvironment(name)
                             : keys::KeyEncryptionKeyFromCredential(name);
  if (key.ok()) return key;
  return absl::Status(key.status().code(),
                      Cat("the key-encryption key cannot be had: ", key.status().message(),
                          ". Nothing was started: without it the signing keys in the database cannot be opened. Put "
                          "it back where key_encryption_key in tallyd.toml says"));
}

absl::Status WriteDefaultConfig(const std::string& path) { return keys::WritePrivateFile(path, kDefaultConfigText); }

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  const auto wrong = [] {
    return absl::InvalidArgumentError(R"("ADDRESS:PORT" or "[ADDRESS]:PORT", with a port from 0 to 65535)");
  };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong();
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (StartsWith(host, "[") && host.size() > 2 && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.%") != std::string_view::npos) return wrong();
  } else if (host.find_first_of("[]:/ \t") != std::string_view::npos) {
    return wrong();
  }
  if (host.empty() || port.empty() || port.size() > 5) return wrong();
  if (port.find_first_not_of("0123456789") != std::string_view::npos) return wrong();
  const int number = std::atoi(std::string(port).c_str());  // NOLINT(cert-err34-c): one to five digits
  if (number > 65535) return wrong();
  return Endpoint{std::string(host), number};
}

std::vector<std::string> ConfigNames() {
  const toml::table nothing;
  settings::Complaints complaints("");
  TomlReader reader(nothing, complaints);
  Config config;
  std::string log_level;
  ReadAll(reader, config, log_level);
  return reader.names();
}

}  // namespace tally::ops
