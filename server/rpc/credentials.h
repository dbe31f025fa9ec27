#ifndef TALLY_SERVER_RPC_CREDENTIALS_H_
#define TALLY_SERVER_RPC_CREDENTIALS_H_

#include <grpcpp/grpcpp.h>

#include <optional>
#include <string_view>

#include "server/ledger/principals.h"

namespace tally::rpc {

// What the caller proves itself with: `authorization: Bearer KEY`, or else its client certificate. nullopt: nothing
// that could be anybody's, so nobody has to be looked up.
std::optional<ledger::Credential> CredentialOf(const grpc::ServerContextBase& context);

// SHA-256 of the DER form of the first certificate in the text; nullopt where there is none, or it is not valid now.
std::optional<keys::Digest> CertificateSha256(std::string_view pem);

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_CREDENTIALS_H_
