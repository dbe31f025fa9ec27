#include "lib/money/unit.h"

#include <gtest/gtest.h>

namespace tally::money {
namespace {

TEST(UnitTest, ParsesCodeAndDecimalsAndWritesThemBack) {
  for (const char* text : {"USD/2", "JPY/0", "BTC/8", "TOKENS/0", "X/18", "0A9/1", "ABCDEFGHIJKL/10"}) {
    const auto unit = Unit::Parse(text);
    ASSERT_TRUE(unit.ok()) << text;
    EXPECT_EQ(unit->ToString(), text);
  }
  EXPECT_EQ(Unit::Parse("USD/2")->code(), "USD");
  EXPECT_EQ(Unit::Parse("USD/2")->decimals(), 2);
}

TEST(UnitTest, RefusesEverythingElse) {
  for (const char* text : {"", "USD", "USD/", "/2", "usd/2", "USD/-1", "USD/19", "USD/02", "USD/00", "USD/2 ", " USD/2",
                           "USD/2/2", "US D/2", "USD/+2", "USD/2.0", "USD/100", "ABCDEFGHIJKLM/2", "\xc3\x84/2"}) {
    EXPECT_EQ(Unit::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_FALSE(Unit::Parse(std::string_view("USD\0/2", 6)).ok());
}

}  // namespace
}  // namespace tally::money
