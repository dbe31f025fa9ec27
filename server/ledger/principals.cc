#include "server/ledger/principals.h"

#include "lib/keys/encoding.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"
#include "server/ledger/tenant_chain.h"

namespace tally::ledger {
namespace {

constexpr std::string_view kKeyPrefix = "tally_";
constexpr size_t kKeyRandomBytes = 32;

// As every statement below lists them.
#define TALLY_PRINCIPAL_COLUMNS                                                                                     \
  "principal_id, coalesce(tenant, ''), role, name, certificate_sha256 IS NOT NULL, created_at_us, disabled_at_us, " \
  "hard, coalesce(certificate_sha256, '')"

v1::PrincipalInfo ToInfo(const pqxx::row& row) {
  v1::PrincipalInfo info;
  info.set_principal_id(Text(row[0]));
  info.set_tenant(Text(row[1]));
  info.set_role(static_cast<v1::Role>(row[2].as<int>()));
  info.set_name(Text(row[3]));
  info.set_by_certificate(row[4].as<bool>());
  info.set_created_at_us(row[5].as<int64_t>());
  info.set_disabled(!row[6].is_null());
  info.set_hard(row[7].as<bool>());
  info.set_disabled_at_us(OptionalInt(row[6]).value_or(0));
  return info;
}

v1::ReceiptPayload Event(v1::ReceiptKind kind, const v1::PrincipalInfo& info, std::string_view certificate,
                         std::string_view actor) {
  v1::ReceiptPayload payload;
  payload.set_kind(kind);
  SetSpeaker(payload, actor, v1::ADMIN);
  v1::PrincipalEvent& event = *payload.mutable_principal();
  event.set_principal_id(info.principal_id());
  event.set_name(info.name());
  event.set_role(info.role());
  event.set_hard(info.hard());
  event.set_certificate_sha256(std::string(certificate));
  return payload;
}

constexpr Statement kByKey{"principal_by_key",
                           "SELECT principal_id, coalesce(tenant, ''), role, disabled_at_us IS NOT NULL, hard "
                           "FROM principals WHERE credential_sha256 = $1"};
constexpr Statement kByCertificate{"principal_by_certificate",
                                   "SELECT principal_id, coalesce(tenant, ''), role, disabled_at_us IS NOT NULL, hard "
                                   "FROM principals WHERE certificate_sha256 = $1"};

}  // namespace

absl::StatusOr<PrincipalRow> FindPrincipal(Connection& connection, const Credential& credential) {
  PrincipalRow found;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const pqxx::result rows =
        tx.Exec(credential.by == Credential::By::kKey ? kByKey : kByCertificate, Binary(credential.sha256));
    if (rows.empty()) return absl::NotFoundError("no such principal");
    found = {Text(rows[0][0]), Text(rows[0][1]), static_cast<v1::Role>(rows[0][2].as<int>()), rows[0][3].as<bool>(),
             rows[0][4].as<bool>()};
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return found;
}

std::string NewApiKey() { return std::string(kKeyPrefix) + keys::Base64UrlEncode(keys::RandomBytes(kKeyRandomBytes)); }

bool IsApiKey(std::string_view text) {
  if (!text.starts_with(kKeyPrefix)) return false;
  const auto random = keys::Base64UrlDecode(text.substr(kKeyPrefix.size()));
  return random && random->size() == kKeyRandomBytes;
}

namespace {
constexpr Statement kTenantExists{"tenant_exists", "SELECT 1 FROM tenants WHERE tenant = $1"};
// A credential that is taken inserts nothing.
constexpr Statement kInsertPrincipal{
    "insert_principal",
    "INSERT INTO principals (principal_id, tenant, role, name, credential_sha256, certificate_sha256, created_at_us) "
    "VALUES ($1, nullif($2, ''), $3, $4, nullif($5, ''::bytea), nullif($6, ''::bytea), $7) ON CONFLICT DO NOTHING "
    "RETURNING " TALLY_PRINCIPAL_COLUMNS};
}  // namespace

absl::StatusOr<CreatedPrincipal> CreatePrincipal(Connection& connection, const keys::Signer& signer,
                                                 const v1::CreatePrincipalRequest& request, std::string_view actor) {
  CreatedPrincipal created;
  const bool by_certificate = !request.certificate_sha256().empty();
  const std::string key = by_certificate ? "" : NewApiKey();
  absl::Status status = Write(connection, [&](Tx& tx) -> absl::Status {
    created = {};
    if (!request.tenant().empty() && tx.Exec(kTenantExists, request.tenant()).empty()) {
      return absl::NotFoundError("no such tenant");
    }
    const std::string id = keys::UuidText(keys::NewUuid7(tx.now_us() / 1000, 0));
    const std::string key_sha256 = by_certificate ? "" : keys::Sha256(key).str();
    const pqxx::result rows =
        tx.Exec(kInsertPrincipal, id, request.tenant(), static_cast<int>(request.role()), request.name(),
                Binary(key_sha256), Binary(request.certificate_sha256()), tx.now_us());
    if (rows.empty()) return absl::AlreadyExistsError("this certificate is another principal's");
    created.info = ToInfo(rows[0]);
    if (request.tenant().empty()) return absl::OkStatus();
    auto receipt = AppendToTenant(tx, signer, request.tenant(),
                                  Event(v1::PRINCIPAL_CREATED, created.info, request.certificate_sha256(), actor));
    if (!receipt.ok()) return receipt.status();
    created.receipts.push_back(std::move(*receipt));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  created.credential = key;
  return created;
}

namespace {
constexpr Statement kAnyAdmin{"any_admin", "SELECT credential_sha256 FROM principals WHERE role = 1 LIMIT 1"};
}  // namespace

absl::StatusOr<bool> CreateFirstAdmin(Connection& connection, std::string_view api_key) {
  bool made = false;
  absl::Status status = Write(connection, [&](Tx& tx) -> absl::Status {
    made = tx.Exec(kAnyAdmin).empty();
    if (!made) return absl::OkStatus();
    const std::string id = keys::UuidText(keys::NewUuid7(tx.now_us() / 1000, 0));
    const pqxx::result rows =
        tx.Exec(kInsertPrincipal, id, std::string(), static_cast<int>(v1::ADMIN), std::string("first admin"),
                Binary(keys::Sha256(api_key)), Binary(""), tx.now_us());
    return rows.empty() ? absl::InternalError("the first admin could not be stored") : absl::OkStatus();
  });
  if (!status.ok()) return status;
  return made;
}

namespace {
constexpr Statement kLockPrincipal{
    "lock_principal", "SELECT " TALLY_PRINCIPAL_COLUMNS " FROM principals WHERE principal_id = $1 FOR UPDATE"};
constexpr Statement kDisable{"disable_principal",
                             "UPDATE principals SET disabled_at_us = coalesce(disabled_at_us, $2), hard = hard OR $3 "
                             "WHERE principal_id = $1 RETURNING " TALLY_PRINCIPAL_COLUMNS};
constexpr Statement kOtherAdmins{
    "other_admins", "SELECT count(*) FROM principals WHERE role = 1 AND disabled_at_us IS NULL AND principal_id <> $1"};
}  // namespace

absl::StatusOr<DisabledPrincipal> DisablePrincipal(Connection& connection, const keys::Signer& signer,
                                                   const std::string& principal_id, bool hard, std::string_view actor) {
  DisabledPrincipal disabled;
  absl::Status status = Write(connection, [&](Tx& tx) -> absl::Status {
    disabled = {};
    const pqxx::result before = tx.Exec(kLockPrincipal, principal_id);
    if (before.empty()) return absl::NotFoundError("no such principal");
    disabled.info = ToInfo(before[0]);
    if (disabled.info.disabled() && (disabled.info.hard() || !hard)) return absl::OkStatus();
    if (disabled.info.role() == v1::ADMIN && !disabled.info.disabled() &&
        tx.Exec(kOtherAdmins, principal_id)[0][0].as<int64_t>() == 0) {
      return absl::FailedPreconditionError("this is the last admin; nobody could let one in again");
    }
    const pqxx::result after = tx.ExecExpecting(1, kDisable, principal_id, tx.now_us(), hard);
    disabled.info = ToInfo(after[0]);
    if (disabled.info.tenant().empty()) return absl::OkStatus();
    auto receipt = AppendToTenant(tx, signer, disabled.info.tenant(),
                                  Event(v1::PRINCIPAL_DISABLED, disabled.info, Bytea(after[0][8]), actor));
    if (!receipt.ok()) return receipt.status();
    disabled.receipts.push_back(std::move(*receipt));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return disabled;
}

namespace {
constexpr Statement kListPrincipals{"list_principals",
                                    "SELECT " TALLY_PRINCIPAL_COLUMNS
                                    " FROM principals WHERE ($1 = '' OR tenant = $1) AND principal_id > $2 "
                                    "ORDER BY principal_id LIMIT $3"};
constexpr char kNilUuid[] = "00000000-0000-0000-0000-000000000000";
}  // namespace

absl::StatusOr<std::vector<v1::PrincipalInfo>> ListPrincipals(Connection& connection, const std::string& tenant,
                                                              const std::string& after, int limit) {
  std::vector<v1::PrincipalInfo> list;
  absl::Status status = Read(connection, [&](Tx& tx) {
    list.clear();
    for (const pqxx::row& row : tx.Exec(kListPrincipals, tenant, after.empty() ? kNilUuid : after, limit)) {
      list.push_back(ToInfo(row));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return list;
}

}  // namespace tally::ledger
