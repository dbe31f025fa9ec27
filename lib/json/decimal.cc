#include "lib/json/decimal.h"

#include <algorithm>
#include <charconv>

namespace tally::json {
namespace {

// Written exponents saturate here: ten times as much still fits an int64, and no text in memory has digits enough to
// bring such a number back below kExponentMax.
constexpr int64_t kExponentSaturated = 100'000'000'000'000'000;
// ECMA-262: from 10^21 on, and below 10^-6, numbers are written with an exponent.
constexpr int64_t kPlainPointMax = 21;
constexpr int64_t kPlainPointMin = -5;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

size_t DigitsFrom(std::string_view text, size_t at) {
  size_t end = at;
  while (end < text.size() && IsDigit(text[end])) ++end;
  return end - at;
}

// digits * 10^exponent, as written, to the normal form.
void Normalise(Decimal* number, int64_t exponent) {
  const size_t last = number->digits.find_last_not_of('0');
  if (last == std::string::npos) {
    *number = Decimal{};
    return;
  }
  number->point = static_cast<int64_t>(number->digits.size()) + exponent;
  number->digits.erase(last + 1);
  const size_t first = number->digits.find_first_not_of('0');
  number->digits.erase(0, first);
  number->point -= static_cast<int64_t>(first);
}

void AppendLayout(bool negative, std::string_view digits, int64_t point, std::string* out) {
  if (digits.empty()) {
    out->push_back('0');
    return;
  }
  if (negative) out->push_back('-');
  const int64_t count = static_cast<int64_t>(digits.size());
  if (point >= count && point <= kPlainPointMax) {
    out->append(digits).append(static_cast<size_t>(point - count), '0');
  } else if (point > 0 && point <= kPlainPointMax) {
    out->append(digits.substr(0, static_cast<size_t>(point)))
        .append(".")
        .append(digits.substr(static_cast<size_t>(point)));
  } else if (point <= 0 && point >= kPlainPointMin) {
    out->append("0.").append(static_cast<size_t>(-point), '0').append(digits);
  } else {
    out->push_back(digits[0]);
    if (count > 1) out->append(".").append(digits.substr(1));
    const int64_t exponent = point - 1;
    out->append(exponent < 0 ? "e-" : "e+").append(std::to_string(exponent < 0 ? -exponent : exponent));
  }
}

}  // namespace

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  const int sign_a = a.IsZero() ? 0 : a.negative ? -1 : 1;
  const int sign_b = b.IsZero() ? 0 : b.negative ? -1 : 1;
  if (sign_a != sign_b) return sign_a <=> sign_b;
  // Digits start with a nonzero one, so the point decides, then the digits as text.
  std::strong_ordering magnitude = a.point <=> b.point;
  if (magnitude == 0) magnitude = a.digits.compare(b.digits) <=> 0;
  return sign_a < 0 ? 0 <=> magnitude : magnitude;
}

NumberScan ScanNumber(std::string_view text, Decimal* number, size_t* length) {
  *number = Decimal{};
  size_t at = 0;
  const auto malformed = [&] {
    *length = at;
    return NumberScan::kMalformed;
  };
  if (at < text.size() && text[at] == '-') {
    number->negative = true;
    ++at;
  }
  const size_t whole = DigitsFrom(text, at);
  if (whole == 0 || (whole > 1 && text[at] == '0')) return malformed();
  number->digits.append(text.substr(at, whole));
  at += whole;
  int64_t exponent = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    const size_t fraction = DigitsFrom(text, at);
    if (fraction == 0) return malformed();
    number->digits.append(text.substr(at, fraction));
    exponent = -static_cast<int64_t>(fraction);
    at += fraction;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    const bool negative = at < text.size() && text[at] == '-';
    if (negative || (at < text.size() && text[at] == '+')) ++at;
    const size_t count = DigitsFrom(text, at);
    if (count == 0) return malformed();
    int64_t written = 0;
    for (char c : text.substr(at, count)) written = std::min(kExponentSaturated, written * 10 + (c - '0'));
    exponent += negative ? -written : written;
    at += count;
  }
  *length = at;
  Normalise(number, exponent);
  const int64_t scientific = number->point - 1;
  if (!number->IsZero() && (scientific > kExponentMax || scientific < -kExponentMax)) {
    return NumberScan::kExponentTooLarge;
  }
  return NumberScan::kNumber;
}

void AppendDecimal(const Decimal& number, std::string* out) {
  AppendLayout(number.negative, number.digits, number.point, out);
}

void AppendDouble(double number, std::string* out) {
  // Shortest digits that read back as the same double, the closest of them: what ECMA-262 asks for.
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), number, std::chars_format::scientific).ptr;
  Decimal decimal;
  size_t length = 0;
  ScanNumber(std::string_view(text, static_cast<size_t>(end - text)), &decimal, &length);
  AppendDecimal(decimal, out);
}

bool IsMultipleOf(const Decimal& value, const Decimal& divisor) {
  __extension__ typedef unsigned __int128 Wide;
  if (value.IsZero()) return true;
  // value = a * 10^x and divisor = b * 10^y, with a and b whole and not divisible by ten.
  const int64_t x = value.point - static_cast<int64_t>(value.digits.size());
  const int64_t y = divisor.point - static_cast<int64_t>(divisor.digits.size());
  // Then a would have to be a multiple of b * 10^(y-x), and so of ten.
  if (x < y) return false;
  uint64_t b = 0;
  for (char c : divisor.digits) b = b * 10 + static_cast<uint64_t>(c - '0');
  if (b == 0) return false;
  uint64_t rest = 0;
  for (char c : value.digits) rest = static_cast<uint64_t>((Wide{rest} * 10 + static_cast<uint64_t>(c - '0')) % b);
  // rest * 10^(x-y) mod b, by repeated squaring: at most 64 rounds whatever the exponent.
  uint64_t base = 10 % b;
  for (uint64_t power = static_cast<uint64_t>(x - y); power > 0; power >>= 1) {
    if (power & 1) rest = static_cast<uint64_t>(Wide{rest} * base % b);
    base = static_cast<uint64_t>(Wide{base} * base % b);
  }
  return rest == 0;
}

}  // namespace tally::json
