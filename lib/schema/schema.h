// JSON Schema draft 7 that is enforced whole, or refused when it is compiled. A constraint that would be ignored is
// worse than none.
#ifndef TALLY_LIB_SCHEMA_SCHEMA_H_
#define TALLY_LIB_SCHEMA_SCHEMA_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/json/value.h"

namespace tally::schema {

// A step is about a schema looking at a value: some tens of nanoseconds.
inline constexpr int64_t kStepsMax = 2'000'000;
inline constexpr int kNestingMax = 64;       // schemas written inside one another
inline constexpr int kInPlaceMax = 64;       // schemas that apply to one and the same value through one another
inline constexpr int kRecursionMax = 1'000;  // schemas in progress at once in one validation
inline constexpr size_t kPatternsMax = 256;  // in one schema

enum class Outcome {
  kOk,
  kViolated,
  kUnenforceable,  // not judged: the work would have no bound. Never to be taken for kOk
};

struct Result {
  Outcome outcome = Outcome::kOk;
  // Of the first violation found. The pointer (RFC 6901) leads into the instance and so holds names of its members;
  // the keyword and the sentence are made of the schema's words only.
  std::string pointer;
  std::string keyword;   // "false" for the schema false; empty if not violated
  std::string sentence;  // for a person; also says why kUnenforceable
};

struct CompiledSchema;  // node.h

// Immutable, safe to use from many threads.
class Schema {
 public:
  // Neither recursion nor running time depends on more than `steps_max` and the limits above.
  Result Validate(const json::Value& instance, int64_t steps_max = kStepsMax) const;

  ~Schema();

 private:
  friend absl::StatusOr<std::shared_ptr<const Schema>> Compile(const json::Value& schema);
  explicit Schema(std::unique_ptr<const CompiledSchema> compiled);

  std::unique_ptr<const CompiledSchema> compiled_;
};

// Draft 7, with these differences, each an InvalidArgument that names the keyword and its JSON pointer:
//  - format, contentEncoding, contentMediaType, $id and every keyword that draft 7 does not have are refused;
//    title, description, $comment, default, examples, readOnly and writeOnly are accepted and mean nothing;
//    $schema may name draft 7 only; $defs is read like definitions;
//  - $ref must lead to a schema inside the document (`#`, or `#` and a JSON pointer); a keyword beside it, which draft
//  7
//    ignores, is refused unless it means nothing or is definitions;
//  - references that go round without ever going into the instance are refused;
//  - keywords of the wrong form, an empty enum, a multipleOf of over 18 significant digits and patterns that Pattern
//    (pattern.h) cannot run are refused.
// Numbers are exact decimals, lengths are in code points, and 1.0 is 1 and an integer.
absl::StatusOr<std::shared_ptr<const Schema>> Compile(const json::Value& schema);

}  // namespace tally::schema

#endif  // TALLY_LIB_SCHEMA_SCHEMA_H_
