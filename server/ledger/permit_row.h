#ifndef TALLY_SERVER_LEDGER_PERMIT_ROW_H_
#define TALLY_SERVER_LEDGER_PERMIT_ROW_H_

#include <pqxx/pqxx>

#include "lib/decide/world.h"

// A row of `permit_state` as a fact.
namespace tally::ledger {

// Of a table named p.
#define TALLY_PERMIT_STATE_COLUMNS                                                                                    \
  "p.version, p.revoked_seq, p.closing_seq, p.closed_seq, p.denial_limit_seq, p.refusals, p.open_calls, p.attempts, " \
  "p.calls, p.succeeded, p.tool_error, p.released, p.not_happened, p.sequence, p.head, p.held, p.spent, p.overrun"

// Reads these columns, which begin at `first`, and makes room for the grants; returns the column after them.
// Precondition: the permit's terms are set.
int ReadPermitState(const pqxx::row& row, int first, decide::Permit& permit);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_PERMIT_ROW_H_
