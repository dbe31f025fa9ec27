#include "lib/json/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/json/canonical.h"

namespace tally::json {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What admission says: the refusal, or "admitted".
std::string Says(std::string_view text, const ParseOptions& options = {}) {
  const auto value = Parse(text, options);
  if (value.ok()) return "admitted";
  EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(value.status().message());
}

std::string Nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(ParseTest, EveryKindOfValueIsRead) {
  const auto value = Parse(" { \"a\" : [ null , true , false , -1.50 , \"x\\u00e9\\n\" ] , \"b\" : { } } \r\n\t");
  ASSERT_TRUE(value.ok()) << value.status();
  const Array& a = *value->AsObject()->Find("a")->AsArray();
  ASSERT_EQ(a.size(), 5u);
  EXPECT_TRUE(a[0].IsNull());
  EXPECT_TRUE(*a[1].AsBool());
  EXPECT_FALSE(*a[2].AsBool());
  EXPECT_EQ(a[3].AsNumber()->text(), "-1.5");
  EXPECT_EQ(*a[4].AsString(), "x\u00e9\n");
  EXPECT_TRUE(value->AsObject()->Find("b")->AsObject()->empty());
  EXPECT_EQ(value->AsObject()->Find("c"), nullptr);
}

TEST(ParseTest, WhatIsNotJsonIsRefused) {
  for (const char* text :
       {"",          " ",       "[",           "]",         "{",        "}",          "[1",       "[1,",
        "[1,]",      "[,1]",    "[1 2]",       "{\"a\"}",   "{\"a\":}", "{\"a\":1,}", "{,}",      "{a:1}",
        "{'a':1}",   "{1:1}",   "nul",         "nulll",     "True",     "NaN",        "Infinity", "-Infinity",
        "undefined", "1 2",     "1,",          "// c\n1",   "/* c */1", "'a'",        "\"a",      "\"\\",
        "\"\\u",     "\"\\u12", "\"\\u123g\"", "\"\\x41\"", "\"\\'\"",  "\"\\ \"",    "\"a\nb\"", "\"a\tb\"",
        "\"\x1f\"",  "[1]]",    "{\"a\":1}}",  "\v1",       "\u00a01",  "1\f",        "#"}) {
    EXPECT_NE(Says(text), "admitted") << text;
  }
}

TEST(ParseTest, NumbersFollowTheGrammar) {
  for (const char* text :
       {"0", "-0", "1", "10", "1.5", "1e5", "1E5", "1e+5", "1e-5", "0.0", "0e0", "123456789012345678901234"}) {
    EXPECT_EQ(Says(text), "admitted") << text;
  }
  for (const char* text :
       {"01", "-01", "00", "+1", ".5", "1.", "1.e5", "1e", "1e+", "-", "--1", "0x10", "1_000", "1e1.5", "-a", "1-1"}) {
    EXPECT_NE(Says(text), "admitted") << text;
  }
}

TEST(ParseTest, ByteOrderMarksAreRefused) {
  EXPECT_EQ(Says("\xEF\xBB\xBF{}"), "JSON refused at byte 0: byte order mark");
  EXPECT_NE(Says("\xFF\xFE{\0}\0"), "admitted");
  EXPECT_EQ(Says("\"\xEF\xBB\xBF\""), "admitted");  // inside a string it is a character
}

TEST(ParseTest, RawNulBytesAreRefusedEscapedOnesAdmitted) {
  using namespace std::string_view_literals;
  EXPECT_EQ(Says("\"\\u0000\""), "admitted");
  EXPECT_EQ(*Parse("\"\\u0000\"")->AsString(), "\0"sv);
  EXPECT_NE(Says("\"\0\""sv), "admitted");
  EXPECT_NE(Says("1\0"sv), "admitted");
  EXPECT_NE(Says("\0"sv), "admitted");
}

TEST(ParseTest, LoneSurrogatesAreRefused) {
  EXPECT_EQ(*Parse("\"\\ud83d\\uDE02\"")->AsString(), "\U0001F602");
  for (const char* text : {"\"\\ud800\"", "\"\\udc00\"", "\"\\ud83d\\ud83d\"", "\"\\ude02\\ud83d\"", "\"\\ud83dx\"",
                           "\"\\ud83d\\n\"", "\"\\ud83d\\u0041\"", "{\"\\udead\":1}"}) {
    EXPECT_THAT(Says(text), HasSubstr("a lone surrogate")) << text;
  }
  EXPECT_THAT(Says("\"\xED\xA0\x80\""), HasSubstr("not UTF-8"));
  EXPECT_THAT(Says("\"\xED\xA0\xBD\xED\xB8\x82\""), HasSubstr("not UTF-8"));
}

TEST(ParseTest, IllFormedUtf8IsRefusedWhereItStands) {
  EXPECT_EQ(Says("[\"ab\xC0\x80\"]"), "JSON refused at byte 4: not UTF-8");
  EXPECT_THAT(Says("\"\xF0\x9F\x98\""), HasSubstr("not UTF-8"));
  EXPECT_THAT(Says("\"\xC3"), HasSubstr("not UTF-8"));
  EXPECT_THAT(Says("\"\xFF\""), HasSubstr("not UTF-8"));
}

TEST(ParseTest, SixtyFourLevelsAreAdmittedAndSixtyFiveRefused) {
  EXPECT_EQ(Says(Nested(64)), "admitted");
  EXPECT_EQ(Says(Nested(65)), "JSON refused at byte 64: nested over 64 levels");
  std::string objects = "1";
  for (int i = 0; i < 64; ++i) objects = "{\"a\":" + objects + "}";
  EXPECT_EQ(Says(objects), "admitted");
  EXPECT_THAT(Says("[" + objects + "]"), HasSubstr("nested over 64 levels"));
  EXPECT_EQ(Says("[" + Nested(63) + "," + Nested(63) + "]"), "admitted");  // levels, not brackets
}

TEST(ParseTest, TheDepthLimitIsAParameterWithinTheHardOne) {
  EXPECT_EQ(Says("1", {.depth_max = 0}), "admitted");
  EXPECT_NE(Says("[]", {.depth_max = 0}), "admitted");
  EXPECT_EQ(Says(Nested(kDepthMax), {.depth_max = 1'000'000}), "admitted");
  EXPECT_NE(Says(Nested(kDepthMax + 1), {.depth_max = 1'000'000}), "admitted");
  EXPECT_NE(Says(std::string(200'000, '['), {.depth_max = 1'000'000}), "admitted");
}

TEST(ParseTest, TheByteLimitIsAParameterAndCountsEveryByte) {
  const std::string full = "\"" + std::string(256 * 1024 - 2, 'a') + "\"";
  EXPECT_EQ(Says(full), "admitted");
  EXPECT_EQ(Says(full + " "), "JSON refused: 262145 bytes, over the limit of 262144");
  EXPECT_EQ(Says("123", {.bytes_max = 3}), "admitted");
  EXPECT_NE(Says("1234", {.bytes_max = 3}), "admitted");
}

TEST(ParseTest, EqualMembersAreRefusedHoweverTheyAreWritten) {
  EXPECT_EQ(Says(R"({"a":1,"a":1})"), "JSON refused at byte 7: the member has the same name as the one at byte 1");
  EXPECT_THAT(Says(R"({"a":1,"\u0061":2})"), HasSubstr("same name"));
  EXPECT_THAT(Says(R"([{"x":{"b":1,"c":2,"b":3}}])"), HasSubstr("same name"));
  EXPECT_THAT(Says(R"({"":1,"":2})"), HasSubstr("same name"));
  EXPECT_THAT(Says(R"({"a":1,"a":1})", {.case_variants = CaseVariants::kAdmit}), HasSubstr("same name"));
  EXPECT_EQ(Says(R"([{"a":1},{"a":1,"b":{"a":1}}])"), "admitted");
}

TEST(ParseTest, MembersThatDifferOnlyByCaseAreRefusedAnywhere) {
  EXPECT_EQ(Says(R"({"amount":1,"Amount":2})"),
            "JSON refused at byte 12: the member's name differs only by case from the one at byte 1");
  for (const char* text : {R"({"k":1,"\u212a":2})", R"({"s":1,"\u017f":2})", R"([[{"a":{"E":1,"e":2}}]])",
                           R"({"\u00df":1,"SS":2})", R"({"id":1,"x":0,"\u0131d":2})"}) {
    EXPECT_THAT(Says(text), HasSubstr("only by case")) << text;
    EXPECT_EQ(Says(text, {.case_variants = CaseVariants::kAdmit}), "admitted") << text;
  }
}

TEST(ParseTest, EqualMembersAreFoundInLargeObjectsToo) {
  const auto object = [](int count, const std::string& last) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += "\"name" + std::to_string(i * 7919 % count) + "\":0,";
    return text + "\"" + last + "\":0}";
  };
  for (int count : {14, 15, 16, 17, 18, 100, 5000}) {
    EXPECT_EQ(Says(object(count, "other")), "admitted") << count;
    EXPECT_THAT(Says(object(count, "name3")), HasSubstr("same name")) << count;
    EXPECT_THAT(Says(object(count, "NAME3")), HasSubstr("only by case")) << count;
    EXPECT_THAT(Says(object(count, "name3"), {.case_variants = CaseVariants::kAdmit}), HasSubstr("same name")) << count;
    EXPECT_EQ(Says(object(count, "NAME3"), {.case_variants = CaseVariants::kAdmit}), "admitted") << count;
  }
}

TEST(ParseTest, HugeExponentsStaySmallAndBeyondTheLimitAreRefused) {
  const auto value = Parse("[1e1000000000,-1e-1000000000]");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(Canonical(*value), "[1e+1000000000,-1e-1000000000]");
  EXPECT_EQ(Says("[1, 1e9999999999999999]"), "JSON refused at byte 4: the number's exponent is over 999999999999999");
  EXPECT_EQ(Says("0e9999999999999999"), "admitted");
}

TEST(ParseTest, RefusalsQuoteNothingOfTheText) {
  for (const char* text : {R"({"hunter2":1,"hunter2":2})", R"({"hunter2":1,"HUNTER2":2})", "[hunter2]", "{\"hunter2\"",
                           "\"hunter2", "\"hunter2\\x\"", "hunter2"}) {
    EXPECT_THAT(Says(text), Not(HasSubstr("unter2"))) << text;
  }
}

}  // namespace
}  // namespace tally::json
