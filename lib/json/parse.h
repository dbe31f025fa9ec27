// Admission: untrusted text to a Value, or a refusal. What is admitted means the same to every reader.
#ifndef TALLY_LIB_JSON_PARSE_H_
#define TALLY_LIB_JSON_PARSE_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/json/value.h"

namespace tally::json {

enum class CaseVariants {
  kRefuse,  // two members of one object may not have names that differ only by case (see fold.h)
  kAdmit,   // for texts that no upstream will act on; equal names are refused all the same
};

struct ParseOptions {
  size_t bytes_max = 256 * 1024;
  // Arrays and objects inside one another; a scalar alone is depth 0. Above kDepthMax it counts as kDepthMax.
  int depth_max = 64;
  CaseVariants case_variants = CaseVariants::kRefuse;
};

// Trees are walked by recursion, here and by their readers.
inline constexpr int kDepthMax = 512;

// RFC 8259, strictly: one value, UTF-8 without a byte order mark, nothing after it. Refused beyond that grammar: lone
// surrogates in escapes, members that are equal or differ only by case, exponents over decimal.h's kExponentMax, and
// what exceeds the limits. "\u0000" in a string is admitted, a raw NUL is not.
// Errors are InvalidArgument, name the byte offset, and quote nothing of the text, which may be secret.
absl::StatusOr<Value> Parse(std::string_view text, const ParseOptions& options = {});

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_PARSE_H_
