// Regular expressions of JSON Schema (ECMA-262, with the flag u), run by RE2: in time linear in the text, always.
#ifndef TALLY_LIB_SCHEMA_PATTERN_H_
#define TALLY_LIB_SCHEMA_PATTERN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace re2 {
class RE2;
}

namespace tally::schema {

inline constexpr size_t kPatternBytesMax = 4096;

// The same expression in RE2's syntax. What ECMA-262 and RE2 read differently is written out (\s, ., \uXXXX, \cX,
// classes), so that RE2 reads what ECMA-262 means. InvalidArgument, saying what, for what RE2 cannot do (look-ahead,
// look-behind, back-references, \B) and for what ECMA-262 does not have (\Z, \a, \pL, inline flags).
absl::StatusOr<std::string> ToRe2Syntax(std::string_view pattern);

// Immutable; safe to use from many threads.
class Pattern {
 public:
  // InvalidArgument as above, and for what RE2 refuses: repeats over 1000, programs too large.
  static absl::StatusOr<Pattern> Compile(std::string_view pattern);

  // Whether some part of `text`, which must be UTF-8, matches.
  bool Matches(std::string_view text) const;

  // A bound on the work of Matches, in the validator's steps.
  int64_t Steps(std::string_view text) const;

  const std::string& source() const { return source_; }

 private:
  Pattern(std::string_view source, std::shared_ptr<const re2::RE2> program);

  std::string source_;
  std::shared_ptr<const re2::RE2> program_;
  int64_t program_size_;
};

}  // namespace tally::schema

#endif  // TALLY_LIB_SCHEMA_PATTERN_H_
