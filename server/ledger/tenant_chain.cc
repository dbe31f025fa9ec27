#include "server/ledger/tenant_chain.h"

#include "lib/receipt/chain.h"
#include "server/ledger/ids.h"

namespace tally::ledger {
namespace {

constexpr Statement kLockChain{"lock_tenant_chain",
                               "SELECT chain_id, sequence, head FROM tenants WHERE tenant = $1 FOR UPDATE"};
constexpr Statement kMoveHead{"move_tenant_head",
                              "UPDATE tenants SET sequence = $2, head = $3 WHERE tenant = $1 AND sequence = $2 - 1"};
constexpr Statement kInsertReceipt{
    "insert_receipt",
    "INSERT INTO receipts (shard, chain_id, sequence, receipt_id, payload, signature) VALUES ($1, $2, $3, $4, $5, $6)"};

}  // namespace

void InsertReceipt(Tx& tx, int shard, const std::string& chain_id, int64_t sequence, const v1::Receipt& receipt) {
  tx.ExecExpecting(1, kInsertReceipt, shard, chain_id, sequence, Binary(receipt.receipt_id()),
                   Binary(receipt.payload()), Binary(receipt.signature()));
}

absl::StatusOr<v1::Receipt> SealAndSign(const keys::Signer& signer, v1::ReceiptPayload payload,
                                        receipt::ChainHead& head) {
  const auto sealed = receipt::Seal(std::move(payload), head, signer);
  if (!sealed.ok()) return sealed.status();
  return receipt::Sign(*sealed, signer);
}

absl::StatusOr<v1::Receipt> AppendToTenant(Tx& tx, const keys::Signer& signer, const std::string& tenant,
                                           v1::ReceiptPayload payload) {
  const pqxx::result rows = tx.Exec(kLockChain, tenant);
  if (rows.empty()) return absl::NotFoundError("no such tenant");
  receipt::ChainHead head{rows[0][1].as<int64_t>(), Bytea(rows[0][2])};
  payload.set_tenant(tenant);
  payload.set_time_us(tx.now_us());
  absl::StatusOr<v1::Receipt> receipt = SealAndSign(signer, std::move(payload), head);
  if (!receipt.ok()) return receipt;
  InsertReceipt(tx, kTenantChainShard, Text(rows[0][0]), head.sequence, *receipt);
  tx.ExecExpecting(1, kMoveHead, tenant, head.sequence, Binary(head.id));
  return receipt;
}

void SetSpeaker(v1::ReceiptPayload& payload, std::string_view principal_id, v1::Role role) {
  if (principal_id.empty()) return;
  payload.set_principal_id(std::string(principal_id));
  payload.set_principal_role(role);
}

}  // namespace tally::ledger
