// Canonical bytes of a value: RFC 8785, and the product's form of it that loses no digits.
#ifndef TALLY_LIB_JSON_CANONICAL_H_
#define TALLY_LIB_JSON_CANONICAL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/json/parse.h"
#include "lib/json/value.h"

namespace tally::json {

// The product's canonical form: RFC 8785, except that a number which is no IEEE 754 double keeps its exact digits, in
// the layout that AppendDecimal describes (decimal.h). 9007199254740993 stays itself, 1e400 is 1e+400, -0 is 0.
// Equal values give equal bytes, different values different ones, and the bytes parse back to the same value.
std::string Canonical(const Value& value);
void AppendCanonical(const Value& value, std::string* out);

// A string as both forms write it, quotes included.
void AppendCanonicalString(std::string_view string, std::string* out);

// Parse, then Canonical.
absl::StatusOr<std::string> Canonicalise(std::string_view text, const ParseOptions& options = {});

// Plain RFC 8785: every number is taken as the double nearest to it. InvalidArgument for a number beyond the doubles.
// For what is exchanged with other implementations; fingerprints use Canonical.
absl::StatusOr<std::string> CanonicalOfDoubles(const Value& value);

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_CANONICAL_H_
