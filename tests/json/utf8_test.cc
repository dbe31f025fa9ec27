#include "lib/json/utf8.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace tally::json {
namespace {

std::u16string ToUtf16(std::string_view text) {
  std::u16string units;
  while (!text.empty()) {
    const char32_t c = TakeCodePoint(&text);
    if (c < 0x10000) {
      units.push_back(static_cast<char16_t>(c));
    } else {
      units.push_back(static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10)));
      units.push_back(static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FF)));
    }
  }
  return units;
}

TEST(Utf8Test, EveryCodePointComesBackAndNoSurrogateDoes) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    AppendUtf8(c, &text);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    ASSERT_EQ(Utf8SequenceLength(text), surrogate ? 0 : text.size()) << std::hex << static_cast<uint32_t>(c);
    std::string_view rest = text;
    if (!surrogate) {
      ASSERT_EQ(TakeCodePoint(&rest), c);
      ASSERT_TRUE(rest.empty());
    }
  }
}

TEST(Utf8Test, IllFormedSequencesAreNotTaken) {
  for (const char* text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xE2\x82",
        "\xE2\x82\x41", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xF0\x9F\x98", "\xFE", "\xFF"}) {
    EXPECT_EQ(Utf8SequenceLength(text), 0u) << text;
  }
}

RC_GTEST_PROP(Utf8Property, OrderIsThatOfUtf16CodeUnits, ()) {
  const auto text = [] {
    // Few code points, so that texts share prefixes; some on each side of every boundary that matters.
    const auto points = *rc::gen::container<std::vector<char32_t>>(rc::gen::element<char32_t>(
        'a', 'b', 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xEFFF, 0xF000, 0xFFFF, 0x10000, 0x1F602, 0x10FFFF));
    std::string utf8;
    for (char32_t c : points) AppendUtf8(c, &utf8);
    return utf8;
  };
  const std::string a = text();
  const std::string b = text();
  RC_ASSERT(Utf16Less(a, b) == (ToUtf16(a) < ToUtf16(b)));
}

TEST(Utf8Test, CodePointsAreCountedNotBytes) {
  EXPECT_EQ(CountCodePoints(""), 0u);
  EXPECT_EQ(CountCodePoints("a\u00E9\u20AC\U0001F602"), 4u);
}

}  // namespace
}  // namespace tally::json
