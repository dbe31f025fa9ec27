#include "server/ledger/call_reads.h"

#include "server/ledger/call_row.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"

namespace tally::ledger {
namespace {

constexpr Statement kCallById{"call_by_id", "SELECT " TALLY_CALL_COLUMNS
                                            " FROM calls c JOIN permits p ON p.shard = c.shard AND "
                                            "p.permit_id = c.permit_id WHERE c.shard = $1 AND c.call_id = $2 "
                                            "AND ($3 = '' OR p.tenant = $3)"};
constexpr Statement kCallByKey{"call_by_key", "SELECT " TALLY_CALL_COLUMNS
                                              " FROM calls c JOIN permits p ON p.shard = c.shard AND "
                                              "p.permit_id = c.permit_id WHERE c.shard = $1 AND c.permit_id = $2 "
                                              "AND c.key = $3 AND ($4 = '' OR p.tenant = $4)"};

// A gateway sees a call if it made one of its attempts, or if nobody made any (a refusal names no principal).
bool MaySee(const Reader& reader, const v1::CallInfo& info) {
  if (reader.principal_id.empty() || info.attempts().empty()) return true;
  for (const v1::AttemptInfo& attempt : info.attempts()) {
    if (attempt.principal_id() == reader.principal_id) return true;
  }
  return false;
}

absl::Status ToShown(Tx& tx, const pqxx::result& rows, const Reader& reader, CallShown shown, v1::CallInfo& info) {
  info.Clear();
  if (rows.empty()) return absl::NotFoundError("no such call");
  const absl::Status converted = ToCallInfo(rows[0], info);
  if (!converted.ok()) return converted;
  AddEarlierAttempts(tx, rows[0], info);
  if (!MaySee(reader, info)) return absl::NotFoundError("no such call");
  if (shown.bodies || shown.result) AddBodies(tx, rows[0], shown, info);
  if (shown.receipts) AddReceipts(tx, rows[0], info);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::CallInfo> GetCall(Connection& connection, const Reader& reader, const decide::Id& call_id,
                                     CallShown shown) {
  v1::CallInfo info;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const auto rows = tx.Exec(kCallById, keys::Uuid7RandA(Bytes(call_id)), IdText(call_id), reader.tenant);
    return ToShown(tx, rows, reader, shown, info);
  });
  if (!status.ok()) return status;
  return info;
}

absl::StatusOr<v1::CallInfo> GetCallByKey(Connection& connection, const Reader& reader,
                                          const decide::PermitTerms& terms, const std::string& key, CallShown shown) {
  v1::CallInfo info;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const auto rows = tx.Exec(kCallByKey, terms.shard, IdText(terms.permit_id), key, reader.tenant);
    return ToShown(tx, rows, reader, shown, info);
  });
  if (!status.ok()) return status;
  return info;
}

namespace {
// By permit, or by all permits of the tenant.
constexpr Statement kListCalls{
    "list_calls",
    "SELECT " TALLY_CALL_COLUMNS
    " FROM permits p JOIN calls c ON c.shard = p.shard AND c.permit_id = p.permit_id "
    "WHERE ($1 = '' OR p.tenant = $1) AND ($2::uuid IS NULL OR p.permit_id = $2) AND ($3 = 0 OR c.state = $3) "
    "AND c.call_id > $4 AND ($6 = '' OR c.principal_id = $6 OR EXISTS (SELECT 1 FROM attempts a "
    "WHERE a.attempt_id = ANY (c.earlier) AND a.principal_id = $6)) ORDER BY c.call_id LIMIT $5"};
}  // namespace

absl::StatusOr<std::vector<v1::CallInfo>> ListCalls(Connection& connection, const Reader& reader,
                                                    const decide::Id* permit, v1::CallState state,
                                                    const decide::Id& after, int limit) {
  std::optional<std::string> permit_id;
  if (permit != nullptr) permit_id = IdText(*permit);
  std::vector<v1::CallInfo> list;
  absl::Status status = Read(connection, [&](Tx& tx) {
    list.clear();
    for (const pqxx::row& row : tx.Exec(kListCalls, reader.tenant, permit_id, static_cast<int>(state), IdText(after),
                                        limit, reader.principal_id)) {
      const absl::Status converted = ToCallInfo(row, list.emplace_back());
      if (!converted.ok()) return converted;
      AddEarlierAttempts(tx, row, list.back());
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return list;
}

}  // namespace tally::ledger
