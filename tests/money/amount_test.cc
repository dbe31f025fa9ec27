#include "lib/money/amount.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace tally::money {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

Unit U(std::string_view text) { return *Unit::Parse(text); }

std::optional<int64_t> Decimal(std::string_view text, std::string_view unit = "USD/2") {
  const auto minor = ParseDecimal(text, U(unit));
  return minor.ok() ? std::optional<int64_t>(*minor) : std::nullopt;
}

std::optional<int64_t> Minor(std::string_view text) {
  const auto minor = ParseMinorUnits(text);
  return minor.ok() ? std::optional<int64_t>(*minor) : std::nullopt;
}

__extension__ typedef __int128 Wide;

std::optional<int64_t> Fit(Wide wide) {
  if (wide > kMax || wide < kMin) return std::nullopt;
  return static_cast<int64_t>(wide);
}

// Numbers near the edges, where overflow happens, as well as small ones.
rc::Gen<int64_t> AnyAmount() {
  return rc::gen::oneOf(rc::gen::arbitrary<int64_t>(), rc::gen::inRange<int64_t>(-5, 5),
                        rc::gen::inRange<int64_t>(kMax - 5, kMax), rc::gen::inRange<int64_t>(kMin, kMin + 5),
                        rc::gen::inRange<int64_t>(-5'000'000'000, 5'000'000'000));
}

RC_GTEST_PROP(AmountProperty, ArithmeticIsExactOrRefused, ()) {
  const int64_t a = *AnyAmount();
  const int64_t b = *AnyAmount();
  RC_ASSERT(Add(a, b) == Fit(Wide{a} + b));
  RC_ASSERT(Sub(a, b) == Fit(Wide{a} - b));
  RC_ASSERT(Mul(a, b) == Fit(Wide{a} * b));
}

RC_GTEST_PROP(AmountProperty, WhatIsFormattedParsesBackInEveryUnit, ()) {
  const int64_t minor = *AnyAmount();
  const Unit unit = U("XTS/" + std::to_string(*rc::gen::inRange(0, 19)));
  RC_ASSERT(*ParseDecimal(FormatDecimal(minor, unit), unit) == minor);
  RC_ASSERT(*ParseMinorUnits(std::to_string(minor)) == minor);
}

TEST(AmountTest, OverflowIsRefusedAtBothEnds) {
  EXPECT_EQ(Add(kMax, 0), kMax);
  EXPECT_EQ(Add(kMax, 1), std::nullopt);
  EXPECT_EQ(Sub(kMin, 1), std::nullopt);
  EXPECT_EQ(Sub(0, kMin), std::nullopt);
  EXPECT_EQ(Mul(kMin, -1), std::nullopt);
  EXPECT_EQ(Mul(3'037'000'500, 3'037'000'500), std::nullopt);
}

TEST(AmountTest, FormatsForPeople) {
  EXPECT_EQ(Format(50000, U("USD/2")), "500.00 USD");
  EXPECT_EQ(Format(5, U("USD/2")), "0.05 USD");
  EXPECT_EQ(Format(-5, U("USD/2")), "-0.05 USD");
  EXPECT_EQ(Format(0, U("USD/2")), "0.00 USD");
  EXPECT_EQ(Format(500, U("JPY/0")), "500 JPY");
  EXPECT_EQ(Format(1, U("WEI/18")), "0.000000000000000001 WEI");
  EXPECT_EQ(Format(kMin, U("USD/2")), "-92233720368547758.08 USD");
  EXPECT_EQ(Format(kMin, U("JPY/0")), "-9223372036854775808 JPY");
}

TEST(AmountTest, DecimalStringsAreExact) {
  EXPECT_EQ(Decimal("12.30"), 1230);
  EXPECT_EQ(Decimal("12.3"), 1230);
  EXPECT_EQ(Decimal("12.300"), 1230);
  EXPECT_EQ(Decimal("12"), 1200);
  EXPECT_EQ(Decimal("0"), 0);
  EXPECT_EQ(Decimal("-0.00"), 0);
  EXPECT_EQ(Decimal("0.29"), 29);  // 0.29 * 100 is 28.999… in doubles
  EXPECT_EQ(Decimal("-12.30"), -1230);
  EXPECT_EQ(Decimal("92233720368547758.07"), kMax);
  EXPECT_EQ(Decimal("-92233720368547758.08"), kMin);
  EXPECT_EQ(Decimal("1.5", "JPY/0"), std::nullopt);
  EXPECT_EQ(Decimal("9.223372036854775807", "WEI/18"), kMax);
}

TEST(AmountTest, FractionsOfAMinorUnitAndOverflowAreRefused) {
  for (const char* text : {"12.345", "0.001", "0.0000000000000000000000000001", "92233720368547758.08",
                           "-92233720368547758.09", "100000000000000000000000000000"}) {
    EXPECT_EQ(Decimal(text), std::nullopt) << text;
  }
}

TEST(AmountTest, OtherSpellingsOfADecimalAreRefused) {
  for (const char* text :
       {"",      "-",  ".",  ".5",  "5.",   "+5",  "05",       "00",    "-05", "1e2",      "1E2", "1,000.00",
        "1 000", " 5", "5 ", "5\n", "0x10", "NaN", "Infinity", "1.2.3", "--1", "\xd9\xa1", "$5",  "5 USD"}) {
    EXPECT_EQ(Decimal(text), std::nullopt) << text;
  }
  EXPECT_EQ(Decimal(std::string_view("5\0", 2)), std::nullopt);
}

TEST(AmountTest, JsonNumbersCountMinorUnitsByTheirValue) {
  EXPECT_EQ(Minor("1230"), 1230);
  EXPECT_EQ(Minor("-1230"), -1230);
  EXPECT_EQ(Minor("1e2"), 100);
  EXPECT_EQ(Minor("1E+2"), 100);
  EXPECT_EQ(Minor("100.0"), 100);
  EXPECT_EQ(Minor("12300e-2"), 123);
  EXPECT_EQ(Minor("-0"), 0);
  EXPECT_EQ(Minor("0e99999999999999999999"), 0);
  EXPECT_EQ(Minor("9223372036854775807"), kMax);
  EXPECT_EQ(Minor("-9223372036854775808"), kMin);
  EXPECT_EQ(Minor("922337203685477580.7e1"), kMax);
}

TEST(AmountTest, JsonNumbersThatAreNoInt64AreRefused) {
  for (const char* text : {"1.5", "1e-1", "9223372036854775808", "-9223372036854775809", "1e19", "1e1000000000",
                           "1e-1000000000", "1e99999999999999999999", "1e-99999999999999999999", "", "01", "1e", "1e+",
                           "\"1\"", "null", "1 ", "1.", "- 1"}) {
    EXPECT_EQ(Minor(text), std::nullopt) << text;
  }
}

TEST(AmountTest, ErrorsDoNotQuoteTheAmount) {
  for (const char* text : {"12.345", "98765432109876543210", "secret"}) {
    EXPECT_EQ(ParseDecimal(text, U("USD/2")).status().message().find(text), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace tally::money
