#ifndef TALLY_SERVER_LEDGER_LOOK_UPS_H_
#define TALLY_SERVER_LEDGER_LOOK_UPS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "lib/decide/verdict.h"
#include "lib/decide/world.h"
#include "server/ledger/transaction.h"
#include "tally/v1/parked.pb.h"

// What look-ups of parked calls answered. Kept for whoever comes next; decides nothing.
namespace tally::ledger {

inline constexpr int kLookUpsMax = 100;  // kept of each attempt

struct LookUpNote {
  std::string tenant;
  std::string principal_id;
  decide::Id call_id{};
  decide::Id attempt_id{};
  std::string supersedes;  // receipt id of the CALL_UNCERTAIN it is about
  decide::Id claim_id{};
  v1::LookUp look_up;
  int64_t next_look_us = 0;  // from now; 0: no wish
  bool release_claim = false;
};

struct Noted {
  decide::Verdict verdict = decide::Verdict::kRecorded;  // or kNotFound, kStaleResolution: nothing was written
  int64_t next_look_us = 0;                              // the time; 0: none
};

// Keeps it if the attempt is parked still, on the receipt named, and the claim is the principal's own and live.
absl::StatusOr<Noted> NoteLookUp(Connection& connection, const LookUpNote& note);

// Adds those of the call's present attempt, oldest first. Bodies and all details where `whole`; else the last one's
// detail only.
void AddLookUps(Tx& tx, int shard, bool whole, v1::ParkedCall& parked);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_LOOK_UPS_H_
