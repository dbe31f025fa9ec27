#include "server/ledger/call_reads.h"
#include "server/ledger/call_row.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"
#include "server/ledger/look_ups.h"
#include "server/ledger/receipt_reads.h"

namespace tally::ledger {
namespace {

// Open intents without a lease are those of parked calls. A call may hold two intents.
constexpr Statement kListParked{
    "list_parked",
    "SELECT " TALLY_CALL_COLUMNS ", " TALLY_PARKED_COLUMNS
    " FROM ("
    "  SELECT p0.shard, i.open_call AS call_id FROM intents i"
    "  JOIN permits p0 ON p0.tenant = $1 AND p0.permit_id = i.open_permit"
    "  WHERE i.open_call IS NOT NULL AND i.lease_end_us IS NULL"
    "  UNION"
    "  SELECT a.shard, a.call_id FROM calls a JOIN permits p1 ON p1.shard = a.shard AND p1.permit_id = a.permit_id"
    "  WHERE a.attention IS NOT NULL AND p1.tenant = $1"
    ") w JOIN calls c ON c.shard = w.shard AND c.call_id = w.call_id "
    "JOIN permits p ON p.shard = c.shard AND p.permit_id = c.permit_id " TALLY_PARKED_JOINS
    "WHERE p.tenant = $1 AND (c.state = 3 OR c.attention IS NOT NULL) AND (NOT $2::boolean OR c.attention IS NOT NULL) "
    "AND (NOT $6::boolean OR (c.state = 3 AND coalesce(c.claim_until_us, 0) <= $7::bigint"
    "  AND coalesce(n.next_look_us, 0) <= $7::bigint)) "
    "AND ($3::uuid IS NULL OR c.permit_id = $3) AND c.call_id > $4 ORDER BY c.call_id LIMIT $5"};

constexpr Statement kOneParked{
    "one_parked", "SELECT " TALLY_CALL_COLUMNS ", " TALLY_PARKED_COLUMNS
                  " FROM calls c JOIN permits p ON p.shard = c.shard AND p.permit_id = c.permit_id " TALLY_PARKED_JOINS
                  "WHERE p.tenant = $1 AND c.shard = $2 AND c.call_id = $3 "
                  "AND ($4::boolean OR c.state = 3 OR c.attention IS NOT NULL)"};

constexpr Statement kCallOfReceipt{
    "call_of_receipt",
    "SELECT r.payload FROM receipts r JOIN permits p ON p.tenant = $2 AND p.permit_id = r.chain_id "
    "WHERE r.receipt_id = $1"};

// The call that a CALL_UNCERTAIN receipt is about; nullopt where there is no such receipt of this tenant.
std::optional<decide::Id> CallOfReceipt(Tx& tx, const std::string& tenant, const std::string& receipt_id) {
  const pqxx::result rows = tx.Exec(kCallOfReceipt, Binary(receipt_id), tenant);
  v1::ReceiptPayload payload;
  if (rows.empty() || !payload.ParseFromString(Bytea(rows[0][0])) || payload.kind() != v1::CALL_UNCERTAIN ||
      payload.call_id().size() != 16) {
    return std::nullopt;
  }
  return ToId(payload.call_id());
}

absl::Status ReadOne(Tx& tx, const std::string& tenant, const ParkedFilter& filter, std::vector<v1::ParkedCall>& list) {
  const std::optional<decide::Id> call =
      filter.call ? filter.call : CallOfReceipt(tx, tenant, filter.uncertain_receipt_id);
  if (!call) return absl::NotFoundError("no such parked call");
  // By its receipt a call is found after its end too: whoever repeats a Resolve whose answer was lost needs its
  // attempt.
  const pqxx::result rows =
      tx.Exec(kOneParked, tenant, keys::Uuid7RandA(Bytes(*call)), IdText(*call), !filter.call.has_value());
  if (rows.empty()) return absl::NotFoundError("no such parked call");
  v1::ParkedCall& parked = list.emplace_back();
  const absl::Status converted = ToParked(rows[0], tx.now_us(), parked);
  if (!converted.ok()) return converted;
  AddEarlierAttempts(tx, rows[0], *parked.mutable_call());
  AddBodies(tx, rows[0], {.bodies = true}, *parked.mutable_call());
  AddReceipts(tx, rows[0], *parked.mutable_call());
  AddLookUps(tx, keys::Uuid7RandA(Bytes(*call)), true, parked);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<v1::ParkedCall>> ListParked(Connection& connection, const std::string& tenant,
                                                       const ParkedFilter& filter, const decide::Id& after, int limit) {
  std::optional<std::string> permit_id;
  if (filter.permit) permit_id = IdText(*filter.permit);
  std::vector<v1::ParkedCall> list;
  absl::Status status = Read(connection, [&](Tx& tx) {
    list.clear();
    if (filter.call || !filter.uncertain_receipt_id.empty()) return ReadOne(tx, tenant, filter, list);
    for (const pqxx::row& row : tx.Exec(kListParked, tenant, filter.attention_only, permit_id, IdText(after), limit,
                                        filter.claimable_only, tx.now_us())) {
      v1::ParkedCall& parked = list.emplace_back();
      const absl::Status converted = ToParked(row, tx.now_us(), parked);
      if (!converted.ok()) return converted;
      if (filter.claimable_only || parked.uncertain_receipt_id().empty()) continue;
      AddLookUps(tx, keys::Uuid7RandA(Bytes(*ParseId(parked.call().call_id()))), false, parked);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return list;
}

}  // namespace tally::ledger
