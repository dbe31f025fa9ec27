#ifndef TALLY_SERVER_LEDGER_RECEIPT_READS_H_
#define TALLY_SERVER_LEDGER_RECEIPT_READS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/decide/world.h"
#include "lib/keys/signer.h"
#include "server/ledger/transaction.h"
#include "tally/v1/receipt.pb.h"

// Receipts as they were stored. `tenant` empty (admins): any; what is another tenant's is NotFound.
namespace tally::ledger {

absl::StatusOr<v1::Receipt> GetReceipt(Connection& connection, const std::string& tenant,
                                       const std::string& receipt_id);

// PERMIT_HEAD over the chain's last receipt, signed now. Writes nothing.
absl::StatusOr<v1::Receipt> SignHead(Connection& connection, const keys::Signer& signer, const std::string& tenant,
                                     const decide::Id& permit, std::string_view principal_id, v1::Role role);

// A chain that a caller may read.
struct Chain {
  int shard = 0;
  std::string id;  // UUID text
};
absl::StatusOr<Chain> PermitChain(Connection& connection, const std::string& tenant, const decide::Id& permit);
// NotFound: no such tenant.
absl::StatusOr<Chain> TenantChain(Connection& connection, const std::string& tenant);
absl::StatusOr<Chain> CallChain(Connection& connection, const std::string& tenant, const decide::Id& call);

struct ReceiptPage {
  std::vector<v1::Receipt> receipts;
  int64_t next = 0;  // sequence to go on from; 0: that was all
};

// Receipts with sequences from `from` to `to` (0: to the end), about `call` only if it is given, in order; some
// hundreds, and not much more than a mebibyte.
absl::StatusOr<ReceiptPage> ReadChain(Connection& connection, const Chain& chain, int64_t from, int64_t to,
                                      const decide::Id* call);

// Receipts of one call, first to last.
std::vector<v1::Receipt> ReceiptsOfCall(Tx& tx, int shard, const std::string& chain_id, int64_t last_sequence);

// (receipt_id, payload, signature) of a row, from column `first`. The key id stands in the payload.
v1::Receipt ToReceipt(const pqxx::row& row, int first);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_RECEIPT_READS_H_
