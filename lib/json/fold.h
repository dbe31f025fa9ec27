// Names that differ only by case. An upstream that folds case would read such members as one and the same.
#ifndef TALLY_LIB_JSON_FOLD_H_
#define TALLY_LIB_JSON_FOLD_H_

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tally::json {

// Unicode's full case folding, a superset of the simple one: K, k and the Kelvin sign U+212A are one, as are S, s and
// the long s U+017F, ß, ẞ and ss. Dotless i folds to i too, since both have the upper case I. No normalisation.
// All three take well-formed UTF-8.
std::string Fold(std::string_view name);
std::strong_ordering FoldCompare(std::string_view a, std::string_view b);
// Equal for names that fold to the same.
uint64_t FoldHash(std::string_view name);

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_FOLD_H_
