#ifndef TALLY_SERVER_LEDGER_CALL_READS_H_
#define TALLY_SERVER_LEDGER_CALL_READS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/decide/world.h"
#include "server/ledger/transaction.h"
#include "tally/v1/calls.pb.h"
#include "tally/v1/parked.pb.h"

// Calls as they stand, for those who may see them. What a decision rests on is never read here.
namespace tally::ledger {

// Whose eyes. A call that these may not see is NotFound, or left out.
struct Reader {
  std::string tenant;        // empty (admins): any
  std::string principal_id;  // gateways: only calls of which they made an attempt; empty: all calls of the tenant
};

struct CallShown {
  bool bodies = false;  // arguments, result, partial answer, evidence
  bool result = false;  // the result alone
  bool receipts = false;
};

absl::StatusOr<v1::CallInfo> GetCall(Connection& connection, const Reader& reader, const decide::Id& call_id,
                                     CallShown shown);
absl::StatusOr<v1::CallInfo> GetCallByKey(Connection& connection, const Reader& reader,
                                          const decide::PermitTerms& terms, const std::string& key, CallShown shown);

// In order of id, those after `after`, without bodies and receipts. `permit` null: all of the tenant. State
// unspecified: all; AUTHORIZED and UNCERTAIN as the database has them, before the lease is looked at.
absl::StatusOr<std::vector<v1::CallInfo>> ListCalls(Connection& connection, const Reader& reader,
                                                    const decide::Id* permit, v1::CallState state,
                                                    const decide::Id& after, int limit);

struct ParkedFilter {
  std::optional<decide::Id> permit;
  std::optional<decide::Id> call;
  std::string uncertain_receipt_id;  // 32 bytes, or empty
  bool attention_only = false;
  bool claimable_only = false;
};

// Parked calls, and those for which a person is called; in order of id, those after `after`. With bodies where one call
// is named; without look-ups where only claimable ones are asked for.
absl::StatusOr<std::vector<v1::ParkedCall>> ListParked(Connection& connection, const std::string& tenant,
                                                       const ParkedFilter& filter, const decide::Id& after, int limit);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_CALL_READS_H_
