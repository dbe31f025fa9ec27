#include "lib/json/value.h"

#include <algorithm>

#include "absl/status/status.h"
#include "lib/json/utf8.h"

namespace tally::json {
namespace {

auto LowerBound(const std::vector<Member>& members, std::string_view name) {
  return std::lower_bound(members.begin(), members.end(), name,
                          [](const Member& member, std::string_view n) { return Utf16Less(member.name, n); });
}

}  // namespace

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "boolean";
    case Kind::kNumber:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
  }
  return "unknown";
}

Number::Number(int64_t whole) {
  Decimal decimal;
  size_t length = 0;
  ScanNumber(std::to_string(whole), &decimal, &length);
  AppendDecimal(decimal, &text_);
}

absl::StatusOr<Number> Number::Parse(std::string_view text) {
  Decimal decimal;
  size_t length = 0;
  const NumberScan scan = ScanNumber(text, &decimal, &length);
  if (scan == NumberScan::kExponentTooLarge) {
    return absl::InvalidArgumentError("the number's exponent is over 999999999999999");
  }
  if (scan != NumberScan::kNumber || length != text.size()) {
    return absl::InvalidArgumentError("the text is not a JSON number");
  }
  return Number(decimal);
}

Decimal Number::decimal() const {
  Decimal decimal;
  size_t length = 0;
  ScanNumber(text_, &decimal, &length);
  return decimal;
}

void Object::Set(std::string name, Value value) {
  const auto at = members_.begin() + (LowerBound(members_, name) - members_.cbegin());
  if (at != members_.end() && at->name == name) {
    at->value = std::move(value);
  } else {
    members_.insert(at, Member{std::move(name), std::move(value)});
  }
}

const Value* Object::Find(std::string_view name) const {
  const auto at = LowerBound(members_, name);
  return at != members_.end() && at->name == name ? &at->value : nullptr;
}

Object Object::FromSorted(std::vector<Member> members) {
  Object object;
  object.members_ = std::move(members);
  return object;
}

}  // namespace tally::json
