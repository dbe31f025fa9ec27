#include "lib/client/endpoint.h"

#include <sodium.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace tally::client {
namespace {

constexpr size_t kSmallFileBytesMax = 1 << 20;
constexpr size_t kCredentialBytesMax = 4096;
constexpr int kReceiveBytesMax = 64 << 20;
constexpr int kReconnectFirstMs = 100;
constexpr int kReconnectMaxMs = 2000;

absl::StatusOr<std::string> ReadSmallFile(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::string text(kSmallFileBytesMax + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if (text.size() > kSmallFileBytesMax) return absl::InvalidArgumentError(absl::StrCat(path, " is larger than 1 MiB"));
  return text;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsCredentials(const Endpoint& endpoint) {
  if (endpoint.certificate_file.empty() != endpoint.key_file.empty()) {
    return absl::InvalidArgumentError("a client certificate and its key go together: give both or neither");
  }
  grpc::SslCredentialsOptions options;
  for (const auto& [path, text] : {std::pair{&endpoint.ca_file, &options.pem_root_certs},
                                   std::pair{&endpoint.certificate_file, &options.pem_cert_chain},
                                   std::pair{&endpoint.key_file, &options.pem_private_key}}) {
    if (path->empty()) continue;
    auto read = ReadSmallFile(*path);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  return grpc::SslCredentials(options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Endpoint& endpoint) {
  const std::string& server = endpoint.server;
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (server.rfind("unix:", 0) == 0) {
    if (server.size() == 5) return absl::InvalidArgumentError("no socket named after unix:");
    // The file's permissions and the credential protect a unix socket; nothing on it leaves the machine.
    credentials = grpc::InsecureChannelCredentials();
  } else {
    const size_t colon = server.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == server.size() ||
        server.find("//") != std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("the server must be unix:PATH or HOST:PORT, and is '", server, "'"));
    }
    auto tls = TlsCredentials(endpoint);
    if (!tls.ok()) return tls.status();
    credentials = *std::move(tls);
  }
  grpc::ChannelArguments arguments;
  // One place decides about retries, and it is not this one: gRPC's own would not know what they repeat.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kReceiveBytesMax);
  // The stock second before the first reconnect would use up most of a call's time.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectFirstMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

absl::StatusOr<keys::Secret> ReadCredentialFile(const std::string& path) {
  auto text = ReadSmallFile(path);
  if (!text.ok()) return text.status();
  std::string& bytes = *text;
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  const size_t last = bytes.find_last_not_of(" \t\r\n");
  std::string credential = first == std::string::npos ? "" : bytes.substr(first, last - first + 1);
  sodium_memzero(bytes.data(), bytes.size());
  bool sound = !credential.empty() && credential.size() <= kCredentialBytesMax;
  for (const char c : credential) sound = sound && c > ' ' && c < 0x7f;
  // Takes and wipes, sound or not.
  keys::Secret secret = keys::Secret::Take(credential);
  if (!sound) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " does not hold one credential: a single line of printable characters without spaces"));
  }
  return secret;
}

}  // namespace tally::client
