#include "lib/json/value.h"

#include <gtest/gtest.h>

#include <limits>

#include "lib/json/canonical.h"

namespace tally::json {
namespace {

TEST(ValueTest, MembersSetInAnyOrderStandInCanonicalOrder) {
  Object object;
  object.Set("b", Value(int64_t{2}));
  object.Set("\uFB33", Value());
  object.Set("\U0001F602", Value(true));
  object.Set("a", Value("x"));
  object.Set("b", Value(int64_t{3}));
  EXPECT_EQ(Canonical(Value(object)), "{\"a\":\"x\",\"b\":3,\"\U0001F602\":true,\"\uFB33\":null}");
  EXPECT_EQ(object.Find("b")->AsNumber()->text(), "3");
  EXPECT_EQ(object.Find("c"), nullptr);
}

TEST(ValueTest, AccessorsOfAnotherKindGiveNull) {
  const Value value(int64_t{1});
  EXPECT_NE(value.AsNumber(), nullptr);
  EXPECT_EQ(value.AsBool(), nullptr);
  EXPECT_EQ(value.AsString(), nullptr);
  EXPECT_EQ(value.AsArray(), nullptr);
  EXPECT_EQ(value.AsObject(), nullptr);
  EXPECT_TRUE(Value().IsNull());
  EXPECT_EQ(KindName(value.kind()), "number");
}

TEST(ValueTest, NumbersAreEqualByValueNotByText) {
  EXPECT_EQ(Value(*Number::Parse("1.0")), Value(int64_t{1}));
  EXPECT_EQ(Value(*Number::Parse("-0")), Value(int64_t{0}));
  EXPECT_NE(Value(*Number::Parse("9007199254740993")), Value(*Number::Parse("9007199254740992")));
  EXPECT_NE(Value(int64_t{0}), Value(false));
  EXPECT_EQ(Number(std::numeric_limits<int64_t>::min()).text(), "-9223372036854775808");
  EXPECT_FALSE(Number::Parse("1 ").ok());
  EXPECT_FALSE(Number::Parse("").ok());
  EXPECT_FALSE(Number::Parse("1e9999999999999999").ok());
}

}  // namespace
}  // namespace tally::json
