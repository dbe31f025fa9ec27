// A JSON value as an immutable-feeling tree in normal form: members in RFC 8785 order and unique, numbers as the one
// text of their exact value. Two values are equal exactly when their canonical bytes are.
#ifndef TALLY_LIB_JSON_VALUE_H_
#define TALLY_LIB_JSON_VALUE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/json/decimal.h"

namespace tally::json {

class Value;
struct Member;

enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

// "null", "boolean", "number", "string", "array", "object".
std::string_view KindName(Kind kind);

// A number, held as the text that AppendDecimal writes for its exact value. Default: zero.
class Number {
 public:
  Number() : text_("0") {}
  explicit Number(const Decimal& decimal) { AppendDecimal(decimal, &text_); }
  explicit Number(int64_t whole);

  // InvalidArgument unless all of `text` is one JSON number within the exponent limit.
  static absl::StatusOr<Number> Parse(std::string_view text);

  // For the parser, which knows that `text` is in normal form already.
  static Number FromNormalText(std::string_view text) { return Number(std::string(text)); }

  const std::string& text() const { return text_; }
  Decimal decimal() const;
  bool IsInteger() const { return text_.find_first_of(".e") == std::string::npos || decimal().IsInteger(); }

  friend bool operator==(const Number&, const Number&) = default;

 private:
  explicit Number(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

using Array = std::vector<Value>;

// Members in the order of their names' UTF-16 code units (RFC 8785 section 3.2.3).
class Object {
 public:
  // Defined where Member is complete: a vector of an incomplete type may be named, not made or ended.
  Object();
  ~Object();
  Object(const Object& other);
  Object(Object&& other) noexcept;
  Object& operator=(const Object& other);
  Object& operator=(Object&& other) noexcept;

  // Inserts, or replaces the value of an equal name.
  void Set(std::string name, Value value);
  // Null if there is none. Binary search.
  const Value* Find(std::string_view name) const;

  const std::vector<Member>& members() const { return members_; }
  size_t size() const;
  bool empty() const { return size() == 0; }

  // Precondition: sorted and unique. For the parser.
  static Object FromSorted(std::vector<Member> members);

 private:
  std::vector<Member> members_;
};
bool operator==(const Object& a, const Object& b);

class Value {
 public:
  Value() = default;  // null
  explicit Value(bool b) : data_(b) {}
  explicit Value(Number number) : data_(std::move(number)) {}
  // Precondition: valid UTF-8.
  explicit Value(std::string string) : data_(std::move(string)) {}
  explicit Value(const char* string) : data_(std::string(string)) {}
  explicit Value(int64_t whole) : data_(Number(whole)) {}
  explicit Value(Array array) : data_(std::move(array)) {}
  explicit Value(Object object) : data_(std::move(object)) {}

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool IsNull() const { return kind() == Kind::kNull; }
  bool IsBool() const { return kind() == Kind::kBool; }
  bool IsNumber() const { return kind() == Kind::kNumber; }
  bool IsString() const { return kind() == Kind::kString; }
  bool IsArray() const { return kind() == Kind::kArray; }
  bool IsObject() const { return kind() == Kind::kObject; }

  // Null unless the value is of that kind.
  const bool* AsBool() const { return std::get_if<bool>(&data_); }
  const Number* AsNumber() const { return std::get_if<Number>(&data_); }
  const std::string* AsString() const { return std::get_if<std::string>(&data_); }
  const Array* AsArray() const { return std::get_if<Array>(&data_); }
  const Object* AsObject() const { return std::get_if<Object>(&data_); }

  friend bool operator==(const Value& a, const Value& b) { return a.data_ == b.data_; }

 private:
  // In the order of Kind.
  std::variant<std::monostate, bool, Number, std::string, Array, Object> data_;
};

struct Member {
  std::string name;
  Value value;

  friend bool operator==(const Member&, const Member&) = default;
};

inline Object::Object() = default;
inline Object::~Object() = default;
inline Object::Object(const Object& other) = default;
inline Object::Object(Object&& other) noexcept = default;
inline Object& Object::operator=(const Object& other) = default;
inline Object& Object::operator=(Object&& other) noexcept = default;
inline size_t Object::size() const { return members_.size(); }
inline bool operator==(const Object& a, const Object& b) { return a.members() == b.members(); }

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_VALUE_H_
