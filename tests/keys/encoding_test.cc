#include "lib/keys/encoding.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tally::keys {
namespace {

RC_GTEST_PROP(Encoding, EveryByteStringComesBackFromEveryForm, (const std::string& bytes)) {
  RC_ASSERT(HexDecode(HexEncode(bytes)) == bytes);
  RC_ASSERT(Base64Decode(Base64Encode(bytes)) == bytes);
  RC_ASSERT(Base64UrlDecode(Base64UrlEncode(bytes)) == bytes);
  RC_ASSERT(Base64DecodeAny(Base64Encode(bytes)) == bytes);
  RC_ASSERT(Base64DecodeAny(Base64UrlEncode(bytes)) == bytes);
}

RC_GTEST_PROP(Encoding, WhatDecodesIsTheOnlySpellingOfItsBytes, ()) {
  const auto text = *rc::gen::container<std::string>(
      rc::gen::oneOf(rc::gen::elementOf(std::string("aQgZz09+/-_=")), rc::gen::arbitrary<char>()));
  if (auto bytes = Base64Decode(text)) RC_ASSERT(Base64Encode(*bytes) == text);
  if (auto bytes = Base64UrlDecode(text)) RC_ASSERT(Base64UrlEncode(*bytes) == text);
}

TEST(Base64, GivesTheValuesOfRfc4648) {
  EXPECT_EQ(Base64Encode("f"), "Zg==");
  EXPECT_EQ(Base64Encode("fo"), "Zm8=");
  EXPECT_EQ(Base64Encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64UrlEncode("\xfb\xff"), "-_8");
}

TEST(Base64, RefusesPaddingErrorsSpacesAndStrayBits) {
  for (const char* text : {"Zg", "Zg=", "Zg===", "Zh==", " Zg==", "Zg==\n", "Z", "Zg==Zg==", "Zm9-", "aaa\xca"}) {
    EXPECT_FALSE(Base64Decode(text)) << text;
  }
  EXPECT_FALSE(Base64UrlDecode("Zg=="));
  EXPECT_FALSE(Base64UrlDecode("+/8"));
}

TEST(Base64, AnyTakesUrlSafeWithAndWithoutPadding) {
  EXPECT_EQ(Base64DecodeAny("-_8="), "\xfb\xff");
  EXPECT_EQ(Base64DecodeAny("-_8"), "\xfb\xff");
  EXPECT_EQ(Base64DecodeAny("+/8="), "\xfb\xff");
  EXPECT_FALSE(Base64DecodeAny("+_8="));
}

TEST(Hex, TakesEitherCaseAndNothingElse) {
  EXPECT_EQ(HexDecode("0aFF"), std::string("\x0a\xff"));
  EXPECT_EQ(HexDecode(""), "");
  for (const char* text : {"0", "0x", "0g", " 00", "00 "}) EXPECT_FALSE(HexDecode(text)) << text;
}

}  // namespace
}  // namespace tally::keys
