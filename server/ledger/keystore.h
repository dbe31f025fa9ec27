#ifndef TALLY_SERVER_LEDGER_KEYSTORE_H_
#define TALLY_SERVER_LEDGER_KEYSTORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "lib/keys/sealed.h"
#include "lib/keys/secret.h"
#include "lib/keys/signer.h"
#include "server/ledger/transaction.h"

// Keys at rest in the database, sealed under the key-encryption key, so that replicas share them.
namespace tally::ledger {

// Makes the issuer's first signing key if there is none in use; two replicas that start together make one. True if this
// call made it.
absl::StatusOr<bool> EnsureSigningKey(Connection& connection, const keys::Sealer& sealer, std::string_view issuer);

// The signing key in use. FailedPrecondition, with what to do, where there is none or it does not open under this
// key-encryption key.
absl::StatusOr<std::unique_ptr<keys::Signer>> LoadSigner(Connection& connection, const keys::Sealer& sealer);

// The same of a database that is to be served: its schema is checked first.
absl::StatusOr<std::unique_ptr<keys::Signer>> OpenSigner(const std::string& conninfo, const keys::Sealer& sealer);

// Public halves, oldest first.
struct SigningKey {
  std::string key_id;  // 32 bytes
  std::string name;
  std::string public_key;
  int64_t not_before_us = 0;
  std::optional<int64_t> not_after_us;  // nullopt: in use
};
absl::StatusOr<std::vector<SigningKey>> ListSigningKeys(Connection& connection);

// The HMAC secrets of tenants, opened once and kept. A tenant's secret never changes. Thread-safe.
class TenantSecrets {
 public:
  explicit TenantSecrets(const keys::Sealer& sealer) : sealer_(sealer) {}

  // A new secret as `tenants` keeps it.
  absl::StatusOr<std::string> SealNew(std::string_view tenant) const;

  // Null: not opened yet, see Load.
  std::shared_ptr<const keys::Secret> Find(std::string_view tenant);
  // NotFound: no such tenant.
  absl::StatusOr<std::shared_ptr<const keys::Secret>> Load(Connection& connection, std::string_view tenant);

 private:
  const keys::Sealer& sealer_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<const keys::Secret>> opened_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_KEYSTORE_H_
