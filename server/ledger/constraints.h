#ifndef TALLY_SERVER_LEDGER_CONSTRAINTS_H_
#define TALLY_SERVER_LEDGER_CONSTRAINTS_H_

#include <string_view>

#include "server/ledger/transaction.h"

namespace tally::ledger {

// What it means that a constraint refused a batch.
enum class Refused {
  kRaced,          // somebody else was first: decide again
  kAttemptIdUsed,  // an attempt_id of the batch is used already: decide again, knowing which
  kBroken,         // a rule would have been broken: a bug, or a batch with a request that cannot be stored
};

// The one place where a constraint's name gets its meaning.
Refused MeaningOf(const TxResult& result);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_CONSTRAINTS_H_
