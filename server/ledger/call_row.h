#ifndef TALLY_SERVER_LEDGER_CALL_ROW_H_
#define TALLY_SERVER_LEDGER_CALL_ROW_H_

#include <pqxx/pqxx>

#include "absl/status/status.h"
#include "server/ledger/call_reads.h"

// A row of `calls` joined with its permit, as messages show it.
namespace tally::ledger {

// Of tables named c and p. Bodies are not among them.
#define TALLY_CALL_COLUMNS                                                                                       \
  "c.call_id, c.permit_id, c.key, c.tool, c.state, c.number, c.attempt_id, c.held, c.charged, c.granted_at_us, " \
  "c.lease_end_us, c.sent_at_us, c.principal_id, c.by_verdict, c.first_seen_us, c.refusal, c.bound_to, "         \
  "coalesce(c.attention, ''), c.contradicted, c.state_receipt, c.last_seq, c.earlier, c.shard, c.hold, "         \
  "c.escalated_seq, coalesce(c.claimed_by, ''), c.claim_until_us, c.result IS NOT NULL, c.send_within_us, p.terms"

absl::Status ToCallInfo(const pqxx::row& row, v1::CallInfo& info);

void AddEarlierAttempts(Tx& tx, const pqxx::row& row, v1::CallInfo& info);
void AddBodies(Tx& tx, const pqxx::row& row, CallShown shown, v1::CallInfo& info);
void AddReceipts(Tx& tx, const pqxx::row& row, v1::CallInfo& info);

absl::Status ToParked(const pqxx::row& row, v1::ParkedCall& parked);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_CALL_ROW_H_
