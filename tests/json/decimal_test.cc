#include "lib/json/decimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tally::json {
namespace {

Decimal D(std::string_view text) {
  Decimal number;
  size_t length = 0;
  EXPECT_EQ(ScanNumber(text, &number, &length), NumberScan::kNumber) << text;
  EXPECT_EQ(length, text.size()) << text;
  return number;
}

std::string Normal(std::string_view text) {
  std::string out;
  AppendDecimal(D(text), &out);
  return out;
}

std::string Double(double number) {
  std::string out;
  AppendDouble(number, &out);
  return out;
}

TEST(DecimalTest, EveryValueHasOneText) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-0.000e5", "0"},
      {"0e99999999999999999999999", "0"},
      {"1.0", "1"},
      {"10e-1", "1"},
      {"0.1e1", "1"},
      {"1E2", "100"},
      {"-1e+2", "-100"},
      {"4.50", "4.5"},
      {"9007199254740993", "9007199254740993"},
      {"18446744073709551615", "18446744073709551615"},
      {"333333333.33333329", "333333333.33333329"},
      {"0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"},
      {"100000000000000000000", "100000000000000000000"},
      {"999999999999999999999", "999999999999999999999"},
      {"1000000000000000000000", "1e+21"},
      {"1234567890123456789012", "1.234567890123456789012e+21"},
      {"123456789012345678901.5", "123456789012345678901.5"},
      {"0.000001", "0.000001"},
      {"0.0000001", "1e-7"},
      {"0.00000123", "0.00000123"},
      {"0.000000123", "1.23e-7"},
      {"1e400", "1e+400"},
      {"1e-400", "1e-400"},
      {"-1.5e400", "-1.5e+400"},
      {"1e1000000000", "1e+1000000000"},
      {"1e-1000000000", "1e-1000000000"},
      {"1e999999999999999", "1e+999999999999999"},
      {"0.1e1000000000000000", "1e+999999999999999"},
      {"10e-1000000000000000", "1e-999999999999999"},
  };
  for (const auto& [text, normal] : cases) {
    EXPECT_EQ(Normal(text), normal) << text;
    EXPECT_EQ(Normal(normal), normal) << text;
  }
}

TEST(DecimalTest, ExponentsBeyondTheLimitAreSaidToBe) {
  Decimal number;
  size_t length = 0;
  for (const char* text : {"1e1000000000000000", "10e999999999999999", "1e-1000000000000000", "0.1e-999999999999999",
                           "1e99999999999999999999999999", "1e-99999999999999999999999999"}) {
    EXPECT_EQ(ScanNumber(text, &number, &length), NumberScan::kExponentTooLarge) << text;
  }
}

// RFC 8785 appendix B, by bit pattern.
TEST(DecimalTest, DoublesAreWrittenAsRfc8785AppendixB) {
  const auto bits = [](uint64_t pattern) {
    double number;
    static_assert(sizeof(number) == sizeof(pattern));
    __builtin_memcpy(&number, &pattern, sizeof(number));
    return Double(number);
  };
  EXPECT_EQ(bits(0x0000000000000000), "0");
  EXPECT_EQ(bits(0x8000000000000000), "0");
  EXPECT_EQ(bits(0x0000000000000001), "5e-324");
  EXPECT_EQ(bits(0x8000000000000001), "-5e-324");
  EXPECT_EQ(bits(0x7fefffffffffffff), "1.7976931348623157e+308");
  EXPECT_EQ(bits(0xffefffffffffffff), "-1.7976931348623157e+308");
  EXPECT_EQ(bits(0x4340000000000000), "9007199254740992");
  EXPECT_EQ(bits(0xc340000000000000), "-9007199254740992");
  EXPECT_EQ(bits(0x4430000000000000), "295147905179352830000");
  EXPECT_EQ(bits(0x44b52d02c7e14af5), "9.999999999999997e+22");
  EXPECT_EQ(bits(0x44b52d02c7e14af6), "1e+23");
  EXPECT_EQ(bits(0x44b52d02c7e14af7), "1.0000000000000001e+23");
  EXPECT_EQ(bits(0x444b1ae4d6e2ef4e), "999999999999999700000");
  EXPECT_EQ(bits(0x444b1ae4d6e2ef4f), "999999999999999900000");
  EXPECT_EQ(bits(0x444b1ae4d6e2ef50), "1e+21");
  EXPECT_EQ(bits(0x3eb0c6f7a0b5ed8c), "9.999999999999997e-7");
  EXPECT_EQ(bits(0x3eb0c6f7a0b5ed8d), "0.000001");
  EXPECT_EQ(bits(0x41b3de4355555553), "333333333.3333332");
  EXPECT_EQ(bits(0x41b3de4355555554), "333333333.33333325");
  EXPECT_EQ(bits(0x41b3de4355555555), "333333333.3333333");
  EXPECT_EQ(bits(0x41b3de4355555556), "333333333.3333334");
  EXPECT_EQ(bits(0x41b3de4355555557), "333333333.33333343");
  EXPECT_EQ(bits(0xbecbf647612f3696), "-0.0000033333333333333333");
  EXPECT_EQ(bits(0x43143ff3c1cb0959), "1424953923781206.2");
}

TEST(DecimalTest, ComparesByValue) {
  const char* ascending[] = {"-1e1000000000", "-10", "-9.5", "-9.05", "-1e-9", "0",  "1e-1000000000", "0.1",
                             "0.11",          "1",   "1.5",  "2",     "9",     "10", "10.5",          "1e1000000000"};
  for (size_t i = 0; i < std::size(ascending); ++i) {
    for (size_t j = 0; j < std::size(ascending); ++j) {
      EXPECT_EQ(D(ascending[i]) <=> D(ascending[j]), i <=> j) << ascending[i] << " " << ascending[j];
    }
  }
  EXPECT_EQ(D("1.0"), D("10e-1"));
}

TEST(DecimalTest, WholeNumbersAreKnownHoweverTheyAreWritten) {
  for (const char* text : {"0", "1", "1.0", "10e-1", "1e2", "1.5e1", "1e1000000000", "-3"}) {
    EXPECT_TRUE(D(text).IsInteger()) << text;
  }
  for (const char* text : {"0.5", "1e-1", "1.05e1", "1e-1000000000", "-0.1", "9007199254740993.5"}) {
    EXPECT_FALSE(D(text).IsInteger()) << text;
  }
}

TEST(DecimalTest, MultiplesAreExact) {
  const std::pair<const char*, const char*> multiples[] = {{"0", "7"},
                                                           {"10", "2"},
                                                           {"4.5", "1.5"},
                                                           {"0.0075", "0.0001"},
                                                           {"-9", "3"},
                                                           {"1e308", "0.5"},
                                                           {"1e1000", "8"},
                                                           {"3e-5", "1e-5"},
                                                           {"21e1000000000", "7e-3"},
                                                           {"19.99", "0.01"},
                                                           {"999999999999999999999999999998", "2"}};
  const std::pair<const char*, const char*> others[] = {{"7", "2"},
                                                        {"35", "1.5"},
                                                        {"0.00751", "0.0001"},
                                                        {"1e308", "0.123456789"},
                                                        {"1e-1000000000", "1"},
                                                        {"1", "3e5"},
                                                        {"19.999", "0.01"},
                                                        {"1e1000000000", "3"},
                                                        {"1e1000000000", "7e-3"},
                                                        {"999999999999999999999999999999", "2"},
                                                        {"1e-400", "1e-399"}};
  for (const auto& [value, divisor] : multiples) {
    EXPECT_TRUE(IsMultipleOf(D(value), D(divisor))) << value << " " << divisor;
  }
  for (const auto& [value, divisor] : others) {
    EXPECT_FALSE(IsMultipleOf(D(value), D(divisor))) << value << " " << divisor;
  }
}

}  // namespace
}  // namespace tally::json
