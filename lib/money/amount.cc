#include "lib/money/amount.h"

#include <algorithm>

#include "absl/status/status.h"

namespace tally::money {
namespace {

constexpr size_t kInt64DigitsMax = 19;
// Exponents saturate here: far beyond what an int64 holds, and far from overflowing the sums below.
constexpr int64_t kExponentMax = 1'000'000'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// A number as scanned: (negative ? -1 : 1) * digits * 10^exponent, where digits has neither leading nor trailing
// zeros, and is empty for zero.
struct Scanned {
  bool negative = false;
  std::string digits;
  int64_t exponent = 0;
};

std::string_view TakeDigits(std::string_view* text) {
  size_t n = 0;
  while (n < text->size() && IsDigit((*text)[n])) ++n;
  const std::string_view digits = text->substr(0, n);
  text->remove_prefix(n);
  return digits;
}

bool TakeByte(std::string_view* text, std::string_view any_of) {
  if (text->empty() || any_of.find(text->front()) == std::string_view::npos) return false;
  text->remove_prefix(1);
  return true;
}

// The exponent part after its 'e'. False where it is malformed.
bool TakeExponent(std::string_view* text, int64_t* exponent) {
  const bool negative = TakeByte(text, "-");
  if (!negative) TakeByte(text, "+");
  const std::string_view digits = TakeDigits(text);
  for (char c : digits) *exponent = std::min(kExponentMax, *exponent * 10 + (c - '0'));
  if (negative) *exponent = -*exponent;
  return !digits.empty();
}

// The grammar of a JSON number; without exponents it is that of a decimal string.
std::optional<Scanned> Scan(std::string_view text, bool exponent_allowed) {
  Scanned number;
  number.negative = TakeByte(&text, "-");
  const std::string_view whole = TakeDigits(&text);
  if (whole.empty() || (whole.size() > 1 && whole[0] == '0')) return std::nullopt;
  std::string_view fraction;
  if (TakeByte(&text, ".")) {
    fraction = TakeDigits(&text);
    if (fraction.empty()) return std::nullopt;
  }
  if (exponent_allowed && TakeByte(&text, "eE") && !TakeExponent(&text, &number.exponent)) return std::nullopt;
  if (!text.empty()) return std::nullopt;

  number.digits.append(whole).append(fraction);
  number.exponent -= static_cast<int64_t>(fraction.size());
  const size_t last = number.digits.find_last_not_of('0');
  if (last == std::string::npos) return Scanned{};
  number.exponent += static_cast<int64_t>(number.digits.size() - 1 - last);
  number.digits.erase(last + 1);
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  return number;
}

// number * 10^decimals as an int64, exactly or not at all.
absl::StatusOr<int64_t> ToMinor(const Scanned& number, int decimals) {
  if (number.digits.empty()) return 0;
  const int64_t zeros = number.exponent + decimals;
  if (zeros < 0) return absl::InvalidArgumentError("the amount has a fraction of a minor unit");
  const absl::Status overflow = absl::InvalidArgumentError("the amount does not fit 64 bits of minor units");
  if (zeros > static_cast<int64_t>(kInt64DigitsMax) || number.digits.size() > kInt64DigitsMax) return overflow;
  // Counted on the negative side, which reaches one further.
  int64_t minor = 0;
  const std::string all = number.digits + std::string(static_cast<size_t>(zeros), '0');
  for (char c : all) {
    if (__builtin_mul_overflow(minor, int64_t{10}, &minor) || __builtin_sub_overflow(minor, c - '0', &minor)) {
      return overflow;
    }
  }
  if (!number.negative && __builtin_sub_overflow(int64_t{0}, minor, &minor)) return overflow;
  return minor;
}

}  // namespace

std::optional<int64_t> Add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<int64_t> Sub(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::optional<int64_t> Mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

std::string FormatDecimal(int64_t minor, const Unit& unit) {
  // The magnitude of the smallest int64 only fits unsigned.
  const uint64_t magnitude = minor < 0 ? 0 - static_cast<uint64_t>(minor) : static_cast<uint64_t>(minor);
  std::string digits = std::to_string(magnitude);
  const size_t decimals = static_cast<size_t>(unit.decimals());
  if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
  if (decimals > 0) digits.insert(digits.size() - decimals, 1, '.');
  return (minor < 0 ? "-" : "") + digits;
}

std::string Format(int64_t minor, const Unit& unit) { return FormatDecimal(minor, unit) + " " + unit.code(); }

absl::StatusOr<int64_t> ParseDecimal(std::string_view text, const Unit& unit) {
  const std::optional<Scanned> number = Scan(text, /*exponent_allowed=*/false);
  if (!number) return absl::InvalidArgumentError("the amount is not a plain decimal number such as 12.30");
  return ToMinor(*number, unit.decimals());
}

absl::StatusOr<int64_t> ParseMinorUnits(std::string_view json_number) {
  const std::optional<Scanned> number = Scan(json_number, /*exponent_allowed=*/true);
  if (!number) return absl::InvalidArgumentError("the amount is not a JSON number");
  return ToMinor(*number, 0);
}

}  // namespace tally::money
