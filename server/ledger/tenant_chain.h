#ifndef TALLY_SERVER_LEDGER_TENANT_CHAIN_H_
#define TALLY_SERVER_LEDGER_TENANT_CHAIN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/keys/signer.h"
#include "lib/receipt/chain.h"
#include "server/ledger/transaction.h"
#include "tally/v1/receipt.pb.h"

namespace tally::ledger {

// Receipts that belong to no permit lie on their tenant's chain, all in this shard.
inline constexpr int kTenantChainShard = 0;

// Signs `payload` as the next receipt of the tenant's chain and stores it; fills in tenant, issuer, key, time, sequence
// and the receipt before. The chain's rivals wait for this transaction. NotFound: no such tenant.
absl::StatusOr<v1::Receipt> AppendToTenant(Tx& tx, const keys::Signer& signer, const std::string& tenant,
                                           v1::ReceiptPayload payload);

// The chain's next receipt, signed.
absl::StatusOr<v1::Receipt> SealAndSign(const keys::Signer& signer, v1::ReceiptPayload payload,
                                        receipt::ChainHead& head);

// Stores a receipt that is about no call.
void InsertReceipt(Tx& tx, int shard, const std::string& chain_id, int64_t sequence, const v1::Receipt& receipt);

// Who asked for it, as receipts say it; `principal_id` empty: the server itself.
void SetSpeaker(v1::ReceiptPayload& payload, std::string_view principal_id, v1::Role role);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_TENANT_CHAIN_H_
