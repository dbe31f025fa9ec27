// The unit that a permit counts in: a code and the number of decimals of its minor unit, written `USD/2`.
#ifndef TALLY_LIB_MONEY_UNIT_H_
#define TALLY_LIB_MONEY_UNIT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tally::money {

inline constexpr size_t kUnitCodeBytesMax = 12;
// 10^18 is the largest power of ten in an int64: with more decimals one whole unit could not be written.
inline constexpr int kUnitDecimalsMax = 18;

// Immutable. Only made by Parse, so that a Unit in hand is always valid.
class Unit {
 public:
  // `CODE/DECIMALS`: 1 to 12 of [A-Z0-9], a slash, 0 to 18 without leading zeros. Anything else is InvalidArgument.
  static absl::StatusOr<Unit> Parse(std::string_view text);

  const std::string& code() const { return code_; }
  int decimals() const { return decimals_; }

  // The text that Parse takes; one unit has exactly one.
  std::string ToString() const;

  friend bool operator==(const Unit&, const Unit&) = default;

 private:
  Unit(std::string_view code, int decimals) : code_(code), decimals_(decimals) {}

  std::string code_;
  int decimals_;
};

}  // namespace tally::money

#endif  // TALLY_LIB_MONEY_UNIT_H_
