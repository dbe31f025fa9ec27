#include "server/ledger/receipt_reads.h"

#include <algorithm>

#include "lib/receipt/chain.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"

namespace tally::ledger {
namespace {

constexpr int kPageReceipts = 256;
constexpr size_t kPageBytes = 1 << 20;
constexpr int kReceiptsOfCallMax = 1000;

}  // namespace

v1::Receipt ToReceipt(const pqxx::row& row, int first) {
  v1::Receipt receipt;
  receipt.set_receipt_id(Bytea(row[first]));
  receipt.set_payload(Bytea(row[first + 1]));
  receipt.set_signature(Bytea(row[first + 2]));
  v1::ReceiptPayload payload;
  if (payload.ParseFromString(receipt.payload())) receipt.set_key_id(payload.key_id());
  return receipt;
}

namespace {
// A permit's chain is the permit's id; a tenant's own chain is named by the tenant.
constexpr Statement kGetReceipt{
    "get_receipt",
    "SELECT r.receipt_id, r.payload, r.signature FROM receipts r WHERE r.receipt_id = $1 AND ($2 = '' "
    "OR EXISTS (SELECT 1 FROM permits p WHERE p.tenant = $2 AND p.permit_id = r.chain_id) "
    "OR EXISTS (SELECT 1 FROM tenants t WHERE t.tenant = $2 AND t.chain_id = r.chain_id))"};
}  // namespace

absl::StatusOr<v1::Receipt> GetReceipt(Connection& connection, const std::string& tenant,
                                       const std::string& receipt_id) {
  v1::Receipt receipt;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const pqxx::result rows = tx.Exec(kGetReceipt, Binary(receipt_id), tenant);
    if (rows.empty()) return absl::NotFoundError("no such receipt");
    receipt = ToReceipt(rows[0], 0);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return receipt;
}

namespace {
constexpr Statement kHead{"chain_head",
                          "SELECT p.tenant, s.sequence, s.head FROM permits p "
                          "JOIN permit_state s ON s.shard = p.shard AND s.permit_id = p.permit_id "
                          "WHERE p.permit_id = $1 AND ($2 = '' OR p.tenant = $2)"};
}  // namespace

absl::StatusOr<v1::Receipt> SignHead(Connection& connection, const keys::Signer& signer, const std::string& tenant,
                                     const decide::Id& permit, std::string_view principal_id, v1::Role role) {
  v1::ReceiptPayload payload;
  receipt::ChainHead head;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const pqxx::result rows = tx.Exec(kHead, IdText(permit), tenant);
    if (rows.empty()) return absl::NotFoundError("no such permit");
    payload.set_tenant(Text(rows[0][0]));
    payload.set_time_us(tx.now_us());
    head = {rows[0][1].as<int64_t>(), Bytea(rows[0][2])};
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  payload.set_kind(v1::PERMIT_HEAD);
  payload.set_permit_id(std::string(Bytes(permit)));
  payload.set_principal_id(std::string(principal_id));
  payload.set_principal_role(role);
  return receipt::Sign(receipt::SealPermitHead(std::move(payload), head, signer), signer);
}

namespace {

constexpr Statement kPermitChain{
    "permit_chain", "SELECT shard, permit_id FROM permits WHERE permit_id = $1 AND ($2 = '' OR tenant = $2)"};
constexpr Statement kTenantChain{"tenant_chain", "SELECT 0, chain_id FROM tenants WHERE tenant = $1 AND $2 = ''"};
constexpr Statement kCallChain{"call_chain",
                               "SELECT p.shard, p.permit_id FROM calls c "
                               "JOIN permits p ON p.shard = c.shard AND p.permit_id = c.permit_id "
                               "WHERE c.shard = $3 AND c.call_id = $1 AND ($2 = '' OR p.tenant = $2)"};

template <typename... Args>
absl::StatusOr<Chain> FindChain(Connection& connection, const Statement& statement, const Args&... args) {
  Chain chain;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const pqxx::result rows = tx.Exec(statement, args...);
    if (rows.empty()) return absl::NotFoundError("no such chain");
    chain = {rows[0][0].as<int>(), Text(rows[0][1])};
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return chain;
}

}  // namespace

absl::StatusOr<Chain> PermitChain(Connection& connection, const std::string& tenant, const decide::Id& permit) {
  return FindChain(connection, kPermitChain, IdText(permit), tenant);
}

absl::StatusOr<Chain> TenantChain(Connection& connection, const std::string& tenant) {
  return FindChain(connection, kTenantChain, tenant, std::string());
}

absl::StatusOr<Chain> CallChain(Connection& connection, const std::string& tenant, const decide::Id& call) {
  return FindChain(connection, kCallChain, IdText(call), tenant, keys::Uuid7RandA(Bytes(call)));
}

namespace {
constexpr Statement kReadChain{"read_chain",
                               "SELECT sequence, receipt_id, payload, signature FROM receipts WHERE shard = $1 AND "
                               "chain_id = $2 AND sequence >= $3 AND sequence <= $4 ORDER BY sequence LIMIT $5"};
}  // namespace

absl::StatusOr<ReceiptPage> ReadChain(Connection& connection, const Chain& chain, int64_t from, int64_t to,
                                      const decide::Id* call) {
  if (to <= 0) to = INT64_MAX;
  ReceiptPage page;
  absl::Status status = Read(connection, [&](Tx& tx) {
    page = {};
    const pqxx::result rows = tx.Exec(kReadChain, chain.shard, chain.id, from, to, kPageReceipts);
    size_t bytes = 0;
    for (const pqxx::row& row : rows) {
      const int64_t sequence = row[0].as<int64_t>();
      if (bytes >= kPageBytes) {
        page.next = sequence;
        return absl::OkStatus();
      }
      v1::Receipt receipt = ToReceipt(row, 1);
      bytes += receipt.payload().size();
      v1::ReceiptPayload payload;
      if (call == nullptr || (payload.ParseFromString(receipt.payload()) && payload.call_id() == Bytes(*call))) {
        page.receipts.push_back(std::move(receipt));
      }
    }
    if (rows.size() == kPageReceipts) page.next = rows[rows.size() - 1][0].as<int64_t>() + 1;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return page;
}

namespace {
constexpr Statement kOneReceipt{"one_receipt",
                                "SELECT receipt_id, payload, signature, coalesce(call_previous_seq, 0) FROM receipts "
                                "WHERE shard = $1 AND chain_id = $2 AND sequence = $3"};
}  // namespace

std::vector<v1::Receipt> ReceiptsOfCall(Tx& tx, int shard, const std::string& chain_id, int64_t last_sequence) {
  std::vector<v1::Receipt> receipts;
  for (int64_t sequence = last_sequence; sequence > 0 && receipts.size() < kReceiptsOfCallMax;) {
    const pqxx::result rows = tx.Exec(kOneReceipt, shard, chain_id, sequence);
    if (rows.empty()) break;
    receipts.push_back(ToReceipt(rows[0], 0));
    const int64_t previous = rows[0][3].as<int64_t>();
    if (previous >= sequence) break;  // links go backwards
    sequence = previous;
  }
  std::reverse(receipts.begin(), receipts.end());
  return receipts;
}

}  // namespace tally::ledger
