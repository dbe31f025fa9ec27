#ifndef TALLY_SERVER_LEDGER_PRINCIPALS_H_
#define TALLY_SERVER_LEDGER_PRINCIPALS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/keys/hash.h"
#include "lib/keys/signer.h"
#include "server/ledger/transaction.h"
#include "tally/v1/tenants.pb.h"

// Who may speak. Ids, roles and tenants of a principal never change; it can only be disabled, once, and then --hard.
namespace tally::ledger {

struct PrincipalRow {
  std::string id;      // UUID text
  std::string tenant;  // empty: all (admins)
  v1::Role role = v1::ROLE_UNSPECIFIED;
  bool disabled = false;
  bool hard = false;
};

// What a caller proves itself with: the SHA-256 of an API key, or of a client certificate's DER.
struct Credential {
  enum class By { kKey, kCertificate };
  By by = By::kKey;
  keys::Digest sha256;
  bool operator==(const Credential&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Credential& c) {
    return H::combine(std::move(h), c.by, c.sha256.bytes);
  }
};

// NotFound: nobody has it.
absl::StatusOr<PrincipalRow> FindPrincipal(Connection& connection, const Credential& credential);

// API keys are "tally_" and 32 random bytes in base64url.
std::string NewApiKey();
bool IsApiKey(std::string_view text);

struct CreatedPrincipal {
  v1::PrincipalInfo info;
  std::string credential;  // shown once; empty with a certificate
  std::vector<v1::Receipt> receipts;
};

// `actor`: principal id of the admin who asks; empty: the server itself (init). A principal of a tenant is recorded on
// that tenant's chain; an admin belongs to none and on no chain. NotFound: no such tenant. AlreadyExists: the
// certificate is another principal's.
absl::StatusOr<CreatedPrincipal> CreatePrincipal(Connection& connection, const keys::Signer& signer,
                                                 const v1::CreatePrincipalRequest& request, std::string_view actor);

// The admin that `tallyd init` makes, with a key that is already in its file. False, and nothing done, where there is
// an admin already.
absl::StatusOr<bool> CreateFirstAdmin(Connection& connection, std::string_view api_key);

struct DisabledPrincipal {
  v1::PrincipalInfo info;
  std::vector<v1::Receipt> receipts;
};

// May be repeated; a repetition may add `hard`. NotFound: no such principal. FailedPrecondition: the last admin.
absl::StatusOr<DisabledPrincipal> DisablePrincipal(Connection& connection, const keys::Signer& signer,
                                                   const std::string& principal_id, bool hard, std::string_view actor);

// In order of id, those after `after` (UUID text, may be empty). `tenant` empty: all.
absl::StatusOr<std::vector<v1::PrincipalInfo>> ListPrincipals(Connection& connection, const std::string& tenant,
                                                              const std::string& after, int limit);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_PRINCIPALS_H_
