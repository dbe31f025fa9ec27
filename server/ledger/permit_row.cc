#include "server/ledger/permit_row.h"

#include "server/ledger/transaction.h"

namespace tally::ledger {

int ReadPermitState(const pqxx::row& row, int first, decide::Permit& permit) {
  int i = first;
  permit.version = row[i++].as<int64_t>();
  permit.revoked_seq = row[i++].as<int64_t>();
  permit.closing_seq = row[i++].as<int64_t>();
  permit.closed_seq = row[i++].as<int64_t>();
  permit.denial_limit_seq = row[i++].as<int64_t>();
  permit.refusals = row[i++].as<int64_t>();
  permit.open_calls = row[i++].as<int64_t>();
  permit.attempts = row[i++].as<int64_t>();
  permit.calls = row[i++].as<int64_t>();
  permit.succeeded = row[i++].as<int64_t>();
  permit.tool_error = row[i++].as<int64_t>();
  permit.released = row[i++].as<int64_t>();
  permit.not_happened = row[i++].as<int64_t>();
  permit.sequence = row[i++].as<int64_t>();
  permit.head = Bytea(row[i++]);
  permit.money.held = row[i++].as<int64_t>();
  permit.money.spent = row[i++].as<int64_t>();
  permit.money.overrun = row[i++].as<int64_t>();
  permit.revoked = permit.revoked_seq > 0;
  permit.closing = permit.closing_seq > 0;
  permit.closed = permit.closed_seq > 0;
  permit.grants.resize(permit.terms->grants.size());
  permit.grant_versions.resize(permit.terms->grants.size());
  permit.grant_dirty.resize(permit.terms->grants.size());
  return i;
}

}  // namespace tally::ledger
