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

// What a parked call shows besides, from column kParkedColumn on. `s` is the permit's state, `n` the attempt's last
// look-up.
#define TALLY_PARKED_COLUMNS                                                                                     \
  "c.late_not_sent, coalesce(n.next_look_us, 0), s.revoked_seq = 0 AND s.closing_seq = 0 AND s.closed_seq = 0, " \
  "p.expires_at_us, r.payload"
// Of tables named c and p: the state's receipt, the permit's state, the attempt's last look-up.
#define TALLY_PARKED_JOINS                                                                                      \
  "JOIN permit_state s ON s.shard = p.shard AND s.permit_id = p.permit_id "                                     \
  "LEFT JOIN receipts r ON r.shard = c.shard AND r.chain_id = c.permit_id AND r.sequence = c.state_seq "        \
  "LEFT JOIN LATERAL (SELECT l.next_look_us FROM look_ups l WHERE l.shard = c.shard AND l.call_id = c.call_id " \
  "AND l.attempt_id = c.attempt_id ORDER BY l.look_up_id DESC LIMIT 1) n ON true "

// Of TALLY_CALL_COLUMNS, then TALLY_PARKED_COLUMNS.
absl::Status ToParked(const pqxx::row& row, int64_t now_us, v1::ParkedCall& parked);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_CALL_ROW_H_
