#ifndef TALLY_LIB_DECIDE_PREPARE_H_
#define TALLY_LIB_DECIDE_PREPARE_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/decide/request.h"
#include "lib/json/parse.h"

namespace tally::decide {

// The part of Authorize that needs only the request and the permit's terms, so it runs before, and outside, the
// transaction: canonical arguments, the fingerprint's parts, grant, constraints, cost and intents. Hashes are
// HMAC-SHA-256 under the tenant's secret, each over a domain word, since a bare hash of small arguments can be guessed.
//
// Fills in everything of AuthorizeRequest except principal, attempt_id, new_call_id, lease and the commitment.
struct PreparedCall {
  AuthorizeRequest request;
  std::string canonical_arguments;
};

// `arguments` is the JSON text as the caller sent it; empty means {}. InvalidArgument: not JSON, or not admitted (its
// message says where); the form of key, tool and intent is checked here too.
absl::StatusOr<PreparedCall> Prepare(const PermitTerms& terms, std::string_view tenant_secret, std::string_view key,
                                     std::string_view tool, std::string_view arguments, std::optional<Money> amount,
                                     std::optional<std::string_view> intent, bool repeat);

// Form: 1–255 bytes without control characters (keys, explicit intents); tool names [A-Za-z0-9_.\-/]{1,128}.
bool IsKey(std::string_view text);
bool IsToolName(std::string_view text);

Hash KeyHash(std::string_view tenant_secret, const Id& permit_id, std::string_view key);

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_PREPARE_H_
