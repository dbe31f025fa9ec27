#include "lib/keys/uuid.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tally::keys {
namespace {

RC_GTEST_PROP(Uuid7, KeepsTimeAndTheCallersTwelveBits, ()) {
  const auto ms = *rc::gen::inRange<int64_t>(0, (int64_t{1} << 48) - 1);
  const auto rand_a = *rc::gen::inRange<uint16_t>(0, 1 << 12);
  const std::string id = NewUuid7(ms, rand_a);
  RC_ASSERT(IsUuid7(id));
  RC_ASSERT(Uuid7UnixMs(id) == ms);
  RC_ASSERT(Uuid7RandA(id) == rand_a);
  RC_ASSERT(ParseUuid(UuidText(id)) == id);
}

TEST(Uuid7, MatchesTheFieldsOfTheExampleInRfc9562) {
  const auto id = ParseUuid("017F22E2-79B0-7CC3-98C4-DC0C0C07398F");
  ASSERT_TRUE(id);
  EXPECT_TRUE(IsUuid7(*id));
  EXPECT_EQ(Uuid7UnixMs(*id), 0x017F22E279B0);
  EXPECT_EQ(Uuid7RandA(*id), 0xCC3);
  EXPECT_EQ(UuidText(*id), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(Uuid7, NeverRepeatsWithinOneMillisecond) { EXPECT_NE(NewUuid7(1, 2), NewUuid7(1, 2)); }

TEST(Uuid7, RefusesOtherVersionsAndVariants) {
  EXPECT_FALSE(IsUuid7(*ParseUuid("017f22e2-79b0-4cc3-98c4-dc0c0c07398f")));
  EXPECT_FALSE(IsUuid7(*ParseUuid("017f22e2-79b0-7cc3-d8c4-dc0c0c07398f")));
  EXPECT_FALSE(IsUuid7(""));
}

TEST(ParseUuid, RefusesEveryOtherSpelling) {
  for (const char* text : {"", "017f22e279b07cc398c4dc0c0c07398f", "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
                           "017f22e2-79b0-7cc3-98c4-dc0c0c07398", "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
                           "017f22e2079b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b0-7cc3-98c4dc0c-0c07398f"}) {
    EXPECT_FALSE(ParseUuid(text)) << text;
  }
}

}  // namespace
}  // namespace tally::keys
