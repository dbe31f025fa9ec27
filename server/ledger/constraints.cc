#include "server/ledger/constraints.h"

#include <algorithm>
#include <iterator>

namespace tally::ledger {

Refused MeaningOf(const TxResult& result) {
  if (result.constraint == "attempts_id") return Refused::kAttemptIdUsed;
  // Two transactions made the same row, and the one that lost did not see the other's; or a webhook was deleted while a
  // message was being written for it.
  constexpr std::string_view kRaces[] = {"calls_key", "calls_pkey", "receipts_chain", "intents_one_each",
                                         "outbox_webhook_id_fkey"};
  if (std::ranges::find(kRaces, result.constraint) != std::end(kRaces)) return Refused::kRaced;
  return Refused::kBroken;
}

}  // namespace tally::ledger
