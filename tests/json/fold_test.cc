#include "lib/json/fold.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace tally::json {
namespace {

TEST(FoldTest, NamesThatDifferOnlyByCaseAreOne) {
  const std::pair<const char*, const char*> pairs[] = {
      {"amount", "Amount"},
      {"AMOUNT", "aMoUnT"},
      {"k", "\u212A"},  // Kelvin sign
      {"s", "\u017F"},  // long s
      {"S", "\u017F"},
      {"\u00E5", "\u212B"},  // Angstrom sign
      {"\u03C3", "\u03C2"},  // final sigma
      {"\u0416", "\u0436"},  // Cyrillic
      {"stra\u00DFe", "STRASSE"},
      {"\u1E9E", "\u00DF"},
      {"\u01C4", "\u01C6"},  // digraph dz with caron
      {"\u01C5", "\u01C6"},
      {"id", "\u0131d"},  // dotless i
      {"id", "\u0130D"},  // I with dot
      {"i\u0307d", "\u0130D"},
      {"\u13A0", "\uAB70"},          // Cherokee
      {"\U00010400", "\U00010428"},  // Deseret, beyond the basic plane
      {"\u1F88", "\u1F80"},
      {"\uFB03", "ffi"},     // ligature
      {"\u00B5", "\u03BC"},  // micro sign
      {"\u1E9B", "\u1E61"},
  };
  for (const auto& [a, b] : pairs) {
    EXPECT_EQ(FoldCompare(a, b), std::strong_ordering::equal) << a << " " << b;
    EXPECT_EQ(FoldHash(a), FoldHash(b)) << a << " " << b;
    EXPECT_EQ(Fold(a), Fold(b)) << a << " " << b;
  }
}

TEST(FoldTest, OtherNamesStayApart) {
  const std::pair<const char*, const char*> pairs[] = {
      {"a", "b"},   {"a", "aa"},           {"", "a"},           {"e", "\u00E9"}, {"\u00D7", "\u00F7"},
      {"a_", "a-"}, {"\u00E9", "e\u0301"}, {"[", "{"},          {"@", "`"},      {"\u00DF", "s"},
      {"o", "0"},   {"\u0101", "\u0103"},  {"\u0138", "\u0139"}};
  for (const auto& [a, b] : pairs) {
    EXPECT_NE(FoldCompare(a, b), std::strong_ordering::equal) << a << " " << b;
    EXPECT_EQ(FoldCompare(a, b), 0 <=> FoldCompare(b, a)) << a << " " << b;
  }
}

TEST(FoldTest, HashesAgreeWherePlainLettersMeetOthers) {
  for (const char* name : {"xI\u0307y", "i\u0307", "I\u0307\u0307", "a\u0307", "ab\u00C9I\u0307\u0130", "\u0307i"}) {
    EXPECT_EQ(FoldHash(name), FoldHash(Fold(name))) << name;
    EXPECT_EQ(FoldCompare(name, Fold(name)), std::strong_ordering::equal) << name;
  }
  EXPECT_NE(FoldHash("a\u0307"), FoldHash("a"));
}

TEST(FoldTest, FoldingTwiceChangesNothingMore) {
  for (const char* name : {"A\u00DF\u212A\u017F\u0130\u0131i\u0307\uFB03\u1F88\U00010400", "plain", ""}) {
    EXPECT_EQ(Fold(Fold(name)), Fold(name));
  }
}

}  // namespace
}  // namespace tally::json
