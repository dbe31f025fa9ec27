// JSON that is looked at but never printed again: what is passed on is a range of the bytes that came.
#ifndef TALLY_GATEWAY_MCP_RAW_H_
#define TALLY_GATEWAY_MCP_RAW_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tally::mcp {

// Arrays and objects inside one another that CheckJson and RawObject::Parse take.
inline constexpr int kRawDepthMax = 512;

// InvalidArgument, with the byte offset and nothing of the text, unless `text` is one JSON value (RFC 8259) in UTF-8
// with nothing but white space around it. Laxer than lib/json's Parse: lone surrogates in escapes, any exponent and,
// inside, members of equal names pass.
absl::Status CheckJson(std::string_view text);

struct Member {
  std::string name;        // unescaped
  std::string_view value;  // as it stands in the text, without white space around it
};

// The members of one JSON object in order, as ranges of the text they were parsed from, which must outlive it.
class RawObject {
 public:
  // The whole text is checked as by CheckJson. Refused beyond that: what is not an object, and two members of this very
  // object with equal names.
  static absl::StatusOr<RawObject> Parse(std::string_view object);

  // Null if there is none.
  const std::string_view* Find(std::string_view name) const;
  const std::vector<Member>& members() const { return members_; }

 private:
  std::vector<Member> members_;
};

// Copies of an object's text with one member replaced or added (at the end), or left out with its comma. All other
// bytes are as they were. Precondition: RawObject::Parse takes `object`, CheckJson `raw_value`; a text that is no such
// object is returned unchanged.
std::string WithMember(std::string_view object, std::string_view name, std::string_view raw_value);
std::string WithoutMember(std::string_view object, std::string_view name);
// All those that `leave_out` is true for, in one pass.
std::string WithoutMembers(std::string_view object, const std::function<bool(std::string_view name)>& leave_out);

// A JSON string. What is not UTF-8 in it becomes U+FFFD.
std::string Quote(std::string_view utf8);

// Unescaped; nullopt if `raw` is not one JSON string. A lone surrogate becomes U+FFFD.
std::optional<std::string> StringOf(std::string_view raw);
// Nullopt unless `raw` is an integer written without fraction or exponent that fits.
std::optional<int64_t> IntegerOf(std::string_view raw);
std::optional<bool> BoolOf(std::string_view raw);
// The elements of an array as ranges of `raw`; nullopt if it is not one JSON array.
std::optional<std::vector<std::string_view>> ElementsOf(std::string_view raw);

inline bool IsObject(std::string_view raw) { return raw.starts_with('{'); }
inline bool IsArray(std::string_view raw) { return raw.starts_with('['); }

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_RAW_H_
