// Where a server is and how a client proves who it is.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "lib/keys/secret.h"

namespace tally::client {

struct Endpoint {
  // `unix:PATH`, or HOST:PORT, which is always TLS: there is no plain TCP.
  std::string server;
  std::string ca_file = {};           // PEM of the issuer of the server's certificate; empty: the system's
  std::string certificate_file = {};  // PEM of a client certificate; together with key_file or not at all
  std::string key_file = {};
};

// InvalidArgument for an endpoint that cannot be, NotFound or the like for a file that cannot be read; never an error
// for a server that is not there: the first call tells.
absl::StatusOr<std::shared_ptr<grpc::Channel>> OpenChannel(const Endpoint& endpoint);

// The one credential (an API key) that a file holds, without the line's end. Errors never quote the contents.
absl::StatusOr<keys::Secret> ReadCredentialFile(const std::string& path);

}  // namespace tally::client
