#ifndef TALLY_SERVER_LEDGER_CONTROL_H_
#define TALLY_SERVER_LEDGER_CONTROL_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/ledger/transaction.h"

// How everything outside the hot path runs its transactions: retried when a race was lost or a connection had gone
// stale, in this one place, and bounded.
//
// What their status means, wherever a function of the control plane returns one:
//   NotFound, AlreadyExists, InvalidArgument, FailedPrecondition, PermissionDenied: the body said so; nothing was
//   written Aborted: every try lost its race; nothing was written Unavailable: no connection; nothing was written
//   Unknown: the reply to COMMIT was lost, and what became of it could not be found out
//   DeadlineExceeded: a statement took longer than its limit; nothing was written
//   Internal: a bug or a broken database; nothing was written. The message is for the log only.
namespace tally::ledger {

inline constexpr int kControlTriesMax = 8;

using Body = absl::FunctionRef<absl::Status(Tx&)>;

// SERIALIZABLE. `body` may be run several times; a status other than OK rolls back and is returned.
absl::Status Write(Connection& connection, Body body);

// READ COMMITTED, READ ONLY.
absl::Status Read(Connection& connection, Body body);

// REPEATABLE READ, READ ONLY: for what must add up.
absl::Status ReadSnapshot(Connection& connection, Body body);

// A transaction's end, other than a refusal of its body, as a status.
absl::Status ToStatus(const TxResult& result);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_CONTROL_H_
