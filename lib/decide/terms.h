#ifndef TALLY_LIB_DECIDE_TERMS_H_
#define TALLY_LIB_DECIDE_TERMS_H_

#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/decide/world.h"
#include "tally/v1/permits.pb.h"
#include "tally/v1/receipt.pb.h"

namespace tally::decide {

// The terms of a mint request: checked, defaults filled in, patterns and schema compiled once to see that they can be
// enforced. `now` serves expires_in. InvalidArgument says which term is wrong and why. `token_hash` is left empty.
absl::StatusOr<v1::PermitTerms> TermsOfMint(const v1::MintRequest& request, Time now);

// The terms as decisions use them. Terms that were minted always convert; an error means that they were altered, or
// minted by a newer version.
absl::StatusOr<std::shared_ptr<const PermitTerms>> FromProto(const v1::PermitTerms& terms, const Id& permit_id,
                                                             int16_t shard, std::string_view tenant);

// The grant for a tool: the exact name, else the longest prefix. 0: none; else its position from 1.
int32_t GrantFor(const PermitTerms& terms, std::string_view tool);

// The live permits of a tenant must give a WRITE tool the same intent scope. InvalidArgument names the tool on which
// `minted` differs from `live`.
absl::Status CheckSameScope(const PermitTerms& minted, const PermitTerms& live);

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_TERMS_H_
