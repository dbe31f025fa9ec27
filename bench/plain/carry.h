#ifndef TALLY_BENCH_PLAIN_CARRY_H_
#define TALLY_BENCH_PLAIN_CARRY_H_

#include "lib/keys/signer.h"
#include "server/ledger/calls.h"
#include "server/ledger/terms_cache.h"
#include "server/ledger/transaction.h"

namespace tally::plain {

// Carries out one Authorize or Commit in one interactive SERIALIZABLE transaction, with a prepared statement for each
// row it reads or writes. The decision, the rows and the receipts are those of tallyd. What a comparison of speed does
// not need ends as kError, with nothing written: second attempts of a call, notes kept as evidence, and every other
// request. kLostRace: to be tried again.
ledger::TxResult Carry(ledger::Connection& connection, const keys::Signer& signer, ledger::TermsCache& terms,
                       ledger::CallJob& job);

}  // namespace tally::plain

#endif  // TALLY_BENCH_PLAIN_CARRY_H_
