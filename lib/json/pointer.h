// JSON pointers (RFC 6901).
#ifndef TALLY_LIB_JSON_POINTER_H_
#define TALLY_LIB_JSON_POINTER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/json/value.h"

namespace tally::json {

inline constexpr size_t kPointerBytesMax = 4096;
inline constexpr size_t kPointerTokensMax = 64;  // no admitted value is deeper

// Immutable. "" is the whole value; "/a/0" its member a's first element.
class Pointer {
 public:
  // InvalidArgument for what is not RFC 6901 or not UTF-8, for more than the limits, and for the token "-", which
  // names the element after an array's last: it never exists in a value that is read.
  static absl::StatusOr<Pointer> Parse(std::string_view text);

  // Unescaped.
  const std::vector<std::string>& tokens() const { return tokens_; }
  std::string ToString() const;

  friend bool operator==(const Pointer&, const Pointer&) = default;

 private:
  std::vector<std::string> tokens_;
};

// The value pointed at, within `root`; null where there is none. A token is a member's name in an object, an index in
// an array ("0", or digits without a leading zero), and leads nowhere in anything else. A member that is null is not
// absent.
const Value* Get(const Value& root, const Pointer& pointer);

// A token read as an array index, nullopt if it is none.
std::optional<size_t> ArrayIndex(std::string_view token);

// "/" and the token with '~' and '/' escaped.
void AppendPointerToken(std::string_view token, std::string* pointer);

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_POINTER_H_
