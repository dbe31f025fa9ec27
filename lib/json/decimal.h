// Numbers of JSON as exact decimals. Nothing here depends on the size of an exponent: 1e1000000000 costs what 1e10
// costs.
#ifndef TALLY_LIB_JSON_DECIMAL_H_
#define TALLY_LIB_JSON_DECIMAL_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tally::json {

// Beyond 10^±999,999,999,999,999 numbers are refused, so that sums of exponents and digit counts stay inside an int64.
inline constexpr int64_t kExponentMax = 999'999'999'999'999;

// (negative ? -1 : 1) * 0.DIGITS * 10^point. Digits have neither leading nor trailing zeros; zero has none and point 0,
// and is never negative. So equal values have equal fields.
struct Decimal {
  bool negative = false;
  std::string digits;
  int64_t point = 0;

  bool IsZero() const { return digits.empty(); }
  // A whole number, however it was written: 1.0 and 1e2 are.
  bool IsInteger() const { return point >= static_cast<int64_t>(digits.size()); }

  friend bool operator==(const Decimal&, const Decimal&) = default;
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
};

// What ScanNumber says of a text.
enum class NumberScan { kNumber, kMalformed, kExponentTooLarge };

// The longest JSON number (RFC 8259 section 6) at the start of `text`; `*length` is how much of the text it takes, or
// where it goes wrong.
NumberScan ScanNumber(std::string_view text, Decimal* number, size_t* length);

// The one text of a value: ECMAScript's layout (ECMA-262, Number::toString, base 10) of the exact digits. With n =
// point: 0 < n <= 21 is written in full, -6 < n <= 0 as 0.000ddd, all else as d.ddde+n. Wherever the value's RFC 8785
// form is the same decimal value, this is that form.
void AppendDecimal(const Decimal& number, std::string* out);

// As above for a double: RFC 8785 section 3.2.2.3. Precondition: finite.
void AppendDouble(double number, std::string* out);

// Whether value = k * divisor for a whole k. Exact; work grows with the digits of `value` only.
// Precondition: divisor is positive and has at most kDivisorDigitsMax digits.
inline constexpr size_t kDivisorDigitsMax = 18;
bool IsMultipleOf(const Decimal& value, const Decimal& divisor);

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_DECIMAL_H_
