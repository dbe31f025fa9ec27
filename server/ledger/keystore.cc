#include "server/ledger/keystore.h"

#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/keys/text.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"
#include "server/ledger/migrate.h"

namespace tally::ledger {
namespace {

constexpr size_t kTenantSecretSize = 32;
// Locked memory is scarce: what does not fit is opened again when needed.
constexpr size_t kOpenedSecretsMax = 1024;

// What a blob was sealed for, so that blobs of one table cannot pass for another's.
std::string SeedContext(std::string_view key_id) { return keys::Cat("signing-key/", key_id); }
std::string TenantContext(std::string_view tenant) { return keys::Cat("tenant/", tenant); }

constexpr Statement kKeyInUse{"key_in_use",
                              "SELECT key_id, name, sealed_seed FROM signing_keys WHERE not_after_us IS NULL"};
constexpr Statement kAddKey{"add_key",
                            "INSERT INTO signing_keys (key_id, name, public_key, sealed_seed, not_before_us) "
                            "VALUES ($1, $2, $3, $4, $5)"};
constexpr Statement kListKeys{"list_keys",
                              "SELECT key_id, name, public_key, not_before_us, not_after_us FROM signing_keys "
                              "ORDER BY not_before_us, key_id"};
constexpr Statement kTenantSecret{"tenant_secret", "SELECT sealed_secret FROM tenants WHERE tenant = $1"};

}  // namespace

absl::StatusOr<bool> EnsureSigningKey(Connection& connection, const keys::Sealer& sealer, std::string_view issuer) {
  const keys::Secret seed = keys::Secret::Random(keys::kSeedSize);
  const auto signer = keys::Ed25519Signer::Create(issuer, seed);
  if (!signer.ok()) return signer.status();
  const keys::PublicKey& key = (*signer)->public_key();
  const auto sealed = sealer.Seal(seed, SeedContext(key.id()));
  if (!sealed.ok()) return sealed.status();

  bool made = false;
  absl::Status status = Write(connection, [&](Tx& tx) {
    made = tx.Exec(kKeyInUse).empty();
    if (!made) return absl::OkStatus();
    // A rival's key is refused by signing_keys_one_in_use, or as a lost race.
    tx.Exec(kAddKey, Binary(key.id()), key.name(), Binary(key.bytes()), Binary(*sealed), tx.now_us());
    return absl::OkStatus();
  });
  if (absl::IsInternal(status)) {
    status = Read(connection, [&](Tx& tx) {
      made = false;
      return tx.Exec(kKeyInUse).empty() ? absl::InternalError("the signing key could not be stored") : absl::OkStatus();
    });
  }
  if (!status.ok()) return status;
  return made;
}

absl::StatusOr<std::unique_ptr<keys::Signer>> LoadSigner(Connection& connection, const keys::Sealer& sealer) {
  std::string key_id, name, sealed;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const pqxx::result rows = tx.Exec(kKeyInUse);
    if (rows.empty()) return absl::FailedPreconditionError("the database holds no signing key; run tallyd init first");
    key_id = Bytea(rows[0][0]);
    name = Text(rows[0][1]);
    sealed = Bytea(rows[0][2]);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  const auto seed = sealer.Unseal(sealed, SeedContext(key_id));
  if (!seed.ok()) {
    return absl::FailedPreconditionError(
        keys::Cat("signing key ", keys::HexEncode(key_id), " cannot be opened with this key-encryption key: ",
                  seed.status().message(), ". Give the key-encryption key that sealed it."));
  }
  auto signer = keys::Ed25519Signer::Create(name, *seed);
  if (!signer.ok()) return signer.status();
  if ((*signer)->public_key().id().view() != key_id) {
    return absl::FailedPreconditionError(
        keys::Cat("signing key ", keys::HexEncode(key_id), " does not fit its id; signing_keys was altered"));
  }
  return std::unique_ptr<keys::Signer>(std::move(*signer));
}

absl::StatusOr<std::unique_ptr<keys::Signer>> OpenSigner(const std::string& conninfo, const keys::Sealer& sealer) {
  Connection connection(conninfo);
  if (absl::Status status = CheckSchema(connection); !status.ok()) return status;
  return LoadSigner(connection, sealer);
}

absl::StatusOr<std::vector<SigningKey>> ListSigningKeys(Connection& connection) {
  std::vector<SigningKey> list;
  absl::Status status = Read(connection, [&](Tx& tx) {
    list.clear();
    for (const pqxx::row& row : tx.Exec(kListKeys)) {
      list.push_back({Bytea(row[0]), Text(row[1]), Bytea(row[2]), row[3].as<int64_t>(), OptionalInt(row[4])});
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return list;
}

absl::StatusOr<std::string> TenantSecrets::SealNew(std::string_view tenant) const {
  return sealer_.Seal(keys::Secret::Random(kTenantSecretSize), TenantContext(tenant));
}

std::shared_ptr<const keys::Secret> TenantSecrets::Find(std::string_view tenant) {
  absl::MutexLock lock(&mutex_);
  const auto found = opened_.find(std::string(tenant));
  return found == opened_.end() ? nullptr : found->second;
}

absl::StatusOr<std::shared_ptr<const keys::Secret>> TenantSecrets::Load(Connection& connection,
                                                                        std::string_view tenant) {
  if (auto found = Find(tenant)) return found;
  std::string sealed;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const pqxx::result rows = tx.Exec(kTenantSecret, std::string(tenant));
    if (rows.empty()) return absl::NotFoundError("no such tenant");
    sealed = Bytea(rows[0][0]);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  auto opened = sealer_.Unseal(sealed, TenantContext(tenant));
  if (!opened.ok()) return absl::InternalError(keys::Cat("secret of tenant ", tenant, ": ", opened.status().message()));
  auto secret = std::make_shared<const keys::Secret>(std::move(*opened));
  absl::MutexLock lock(&mutex_);
  if (opened_.size() >= kOpenedSecretsMax) opened_.clear();
  opened_[std::string(tenant)] = secret;
  return secret;
}

}  // namespace tally::ledger
