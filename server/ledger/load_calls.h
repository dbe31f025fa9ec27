#ifndef TALLY_SERVER_LEDGER_LOAD_CALLS_H_
#define TALLY_SERVER_LEDGER_LOAD_CALLS_H_

#include <cstdint>
#include <map>
#include <utility>

#include "lib/decide/world.h"
#include "server/ledger/arrays.h"
#include "server/ledger/transaction.h"

// Rows of `calls` and `attempts` as facts.
namespace tally::ledger {

// Attempts that are not their call's last, whose ends stand in `attempts`: attempt → call, number.
using Earlier = std::map<decide::Id, std::pair<decide::Id, int32_t>>;

// Calls that are in the world already stay as they are. What the rows name of earlier attempts is added to `earlier`.
void LoadCallsByKey(Tx& tx, Int16Array& shards, UuidArray& permits, TextArray& keys, decide::World& world,
                    Earlier& earlier);
void LoadCallsById(Tx& tx, Int16Array& shards, UuidArray& calls, decide::World& world, Earlier& earlier);

// Their calls must be in the world.
void LoadEarlierAttempts(Tx& tx, const Earlier& earlier, decide::World& world);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_LOAD_CALLS_H_
