#include "server/ledger/tenants.h"

#include "lib/keys/published.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"
#include "server/ledger/tenant_chain.h"

namespace tally::ledger {
namespace {

// A name that is taken inserts nothing.
constexpr Statement kInsertTenant{
    "insert_tenant",
    "INSERT INTO tenants (tenant, chain_id, sealed_secret, created_at_us, sequence, head) "
    "VALUES ($1, $2, $3, $4, 0, '') ON CONFLICT (tenant) DO NOTHING"};
constexpr Statement kListTenants{
    "list_tenants", "SELECT tenant, created_at_us FROM tenants WHERE tenant > $1 ORDER BY tenant LIMIT $2"};

}  // namespace

absl::StatusOr<CreatedTenant> CreateTenant(Connection& connection, const keys::Signer& signer,
                                           const TenantSecrets& secrets, const std::string& name,
                                           std::string_view actor) {
  const auto sealed = secrets.SealNew(name);
  if (!sealed.ok()) return sealed.status();
  CreatedTenant created;
  absl::Status status = Write(connection, [&](Tx& tx) -> absl::Status {
    created = {};
    const std::string chain_id = keys::UuidText(keys::NewUuid7(tx.now_us() / 1000, kTenantChainShard));
    if (tx.Exec(kInsertTenant, name, chain_id, Binary(*sealed), tx.now_us()).affected_rows() == 0) {
      return absl::AlreadyExistsError("a tenant of this name exists");
    }
    created.tenant.set_name(name);
    created.tenant.set_created_at_us(tx.now_us());

    v1::ReceiptPayload tenant_created;
    tenant_created.set_kind(v1::TENANT_CREATED);
    v1::ReceiptPayload key_added;
    key_added.set_kind(v1::KEY_ADDED);
    key_added.mutable_key()->set_key_id(signer.public_key().id().str());
    key_added.mutable_key()->set_vkey(keys::ToVkey(signer.public_key()));
    for (v1::ReceiptPayload* payload : {&tenant_created, &key_added}) {
      SetSpeaker(*payload, actor, v1::ADMIN);
      auto receipt = AppendToTenant(tx, signer, name, std::move(*payload));
      if (!receipt.ok()) return receipt.status();
      created.receipts.push_back(std::move(*receipt));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return created;
}

absl::StatusOr<std::vector<v1::Tenant>> ListTenants(Connection& connection, const std::string& after, int limit) {
  std::vector<v1::Tenant> list;
  absl::Status status = Read(connection, [&](Tx& tx) {
    list.clear();
    for (const pqxx::row& row : tx.Exec(kListTenants, after, limit)) {
      list.emplace_back();
      list.back().set_name(Text(row[0]));
      list.back().set_created_at_us(row[1].as<int64_t>());
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return list;
}

}  // namespace tally::ledger
