#include "lib/json/canonical.h"

#include <gtest/gtest.h>

namespace tally::json {
namespace {

std::string C(std::string_view text) {
  const auto bytes = Canonicalise(text);
  return bytes.ok() ? *bytes : "refused";
}

TEST(CanonicalTest, StringsAreEscapedAsLittleAsRfc8785Says) {
  EXPECT_EQ(C(R"("\u0000\u0001\b\t\n\u000b\f\r\u001f\u007f\"\\\/\u2028\ud83d\ude02")"),
            "\"\\u0000\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\x7f\\\"\\\\/\u2028\U0001F602\"");
}

TEST(CanonicalTest, MembersAreOrderedByUtf16CodeUnits) {
  EXPECT_EQ(C(R"({"\ufb33":1,"\ud83d\ude02":2,"\u20ac":3,"b":4,"a":5,"":6})"),
            "{\"\":6,\"a\":5,\"b\":4,\"\u20ac\":3,\"\U0001F602\":2,\"\ufb33\":1}");
}

TEST(CanonicalTest, NumbersThatAreDoublesTakeTheirRfc8785Form) {
  EXPECT_EQ(C("[1.0,-0,0.0,1E30,4.50,2e-3,0.000000000000000000000000001,1e21,1e20,100]"),
            "[1,0,0,1e+30,4.5,0.002,1e-27,1e+21,100000000000000000000,100]");
}

TEST(CanonicalTest, NumbersThatAreNoDoubleKeepTheirExactDigits) {
  EXPECT_EQ(C("[9007199254740993,18446744073709551615,333333333.33333329,1e400,0.1,0.10000000000000001]"),
            "[9007199254740993,18446744073709551615,333333333.33333329,1e+400,0.1,0.10000000000000001]");
}

TEST(CanonicalTest, TheFormOfDoublesRoundsAndSaysWhenItCannot) {
  EXPECT_EQ(*CanonicalOfDoubles(*Parse("[9007199254740993,333333333.33333329,1e-400,-1e-400,5e-324,0]")),
            "[9007199254740992,333333333.3333333,0,0,5e-324,0]");
  EXPECT_FALSE(CanonicalOfDoubles(*Parse("[1e400]")).ok());
  EXPECT_FALSE(CanonicalOfDoubles(*Parse("-1e1000000000")).ok());
  EXPECT_EQ(*CanonicalOfDoubles(*Parse("1e-1000000000")), "0");
}

TEST(CanonicalTest, EmptyContainersAndScalarsStandAlone) {
  EXPECT_EQ(C(" [ ] "), "[]");
  EXPECT_EQ(C("{ }"), "{}");
  EXPECT_EQ(C("[[],{},\"\"]"), "[[],{},\"\"]");
  EXPECT_EQ(C("null"), "null");
}

}  // namespace
}  // namespace tally::json
