#include "lib/money/unit.h"

#include <algorithm>

#include "absl/status/status.h"

namespace tally::money {
namespace {

bool IsCodeByte(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

absl::StatusOr<Unit> Unit::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return absl::InvalidArgumentError("a unit is written CODE/DECIMALS, as in USD/2; the slash is missing");
  }
  const std::string_view code = text.substr(0, slash);
  if (code.empty() || code.size() > kUnitCodeBytesMax || !std::all_of(code.begin(), code.end(), IsCodeByte)) {
    return absl::InvalidArgumentError("the code of a unit is 1 to 12 characters of A-Z and 0-9, as in USD/2");
  }
  const std::string_view digits = text.substr(slash + 1);
  const bool plain = !digits.empty() && digits.size() <= 2 && std::all_of(digits.begin(), digits.end(), IsDigit) &&
                     (digits.size() == 1 || digits[0] != '0');
  int decimals = 0;
  for (char c : plain ? digits : std::string_view()) decimals = decimals * 10 + (c - '0');
  if (!plain || decimals > kUnitDecimalsMax) {
    return absl::InvalidArgumentError("the decimals of a unit are a whole number from 0 to 18, as in USD/2");
  }
  return Unit(code, decimals);
}

std::string Unit::ToString() const { return code_ + "/" + std::to_string(decimals_); }

}  // namespace tally::money
