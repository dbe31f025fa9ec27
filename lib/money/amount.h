// Amounts: int64 minor units of one Unit. There is no floating point anywhere on the way in or out.
#ifndef TALLY_LIB_MONEY_AMOUNT_H_
#define TALLY_LIB_MONEY_AMOUNT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/money/unit.h"

namespace tally::money {

// Checked arithmetic: nullopt when the exact result does not fit an int64.
std::optional<int64_t> Add(int64_t a, int64_t b);
std::optional<int64_t> Sub(int64_t a, int64_t b);
std::optional<int64_t> Mul(int64_t a, int64_t b);

// For people: `500.00 USD`, `-0.05 USD`, `500 JPY`.
std::string Format(int64_t minor, const Unit& unit);

// The same without the code: `500.00`. ParseDecimal takes it back to the same minor units.
std::string FormatDecimal(int64_t minor, const Unit& unit);

// A decimal string of whole units to minor units, exactly: "12.30", "12.3" and "12.300" of USD/2 are 1230.
// Grammar: an optional '-', digits without a leading zero, optionally '.' and digits; no '+', exponent, space or
// grouping. InvalidArgument for anything else, for a fraction of a minor unit and for what does not fit an int64.
// Negative amounts are parsed: whether one is allowed is the caller's rule. Errors never quote the amount.
absl::StatusOr<int64_t> ParseDecimal(std::string_view text, const Unit& unit);

// The text of a JSON number (RFC 8259 section 6) that counts minor units. It is judged by its value, since equal
// values have equal canonical bytes: 100, 100.0 and 1e2 are all 100. InvalidArgument as for ParseDecimal.
absl::StatusOr<int64_t> ParseMinorUnits(std::string_view json_number);

}  // namespace tally::money

#endif  // TALLY_LIB_MONEY_AMOUNT_H_
