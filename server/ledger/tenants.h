#ifndef TALLY_SERVER_LEDGER_TENANTS_H_
#define TALLY_SERVER_LEDGER_TENANTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/keys/signer.h"
#include "server/ledger/keystore.h"
#include "server/ledger/transaction.h"
#include "tally/v1/tenants.pb.h"

namespace tally::ledger {

struct CreatedTenant {
  v1::Tenant tenant;
  std::vector<v1::Receipt> receipts;  // TENANT_CREATED, and KEY_ADDED for the signing key in use
};

// AlreadyExists: the name is taken. The form of the name was checked.
absl::StatusOr<CreatedTenant> CreateTenant(Connection& connection, const keys::Signer& signer,
                                           const TenantSecrets& secrets, const std::string& name,
                                           std::string_view actor);

// In order of name, those after `after`.
absl::StatusOr<std::vector<v1::Tenant>> ListTenants(Connection& connection, const std::string& after, int limit);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_TENANTS_H_
