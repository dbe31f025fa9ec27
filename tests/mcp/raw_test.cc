#include "gateway/mcp/raw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tally::mcp {
namespace {

using testing::HasSubstr;

std::string Nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(RawTest, MembersAreRangesOfTheTextInOrder) {
  const std::string_view text = " { \"b\" : [1, {\"x\":2}] ,\"a\":\"q\\\"}\",\"\\u0063\":-1.50e+3}\n";
  const auto object = RawObject::Parse(text);
  ASSERT_TRUE(object.ok()) << object.status();
  ASSERT_EQ(object->members().size(), 3u);
  EXPECT_EQ(object->members()[0].name, "b");
  EXPECT_EQ(object->members()[0].value, "[1, {\"x\":2}]");
  EXPECT_EQ(*object->Find("a"), "\"q\\\"}\"");
  EXPECT_EQ(*object->Find("c"), "-1.50e+3");
  EXPECT_EQ(object->Find("x"), nullptr);
  EXPECT_GE(object->members()[2].value.data(), text.data());
  EXPECT_LT(object->members()[2].value.data(), text.data() + text.size());
}

TEST(RawTest, WhatIsNoJsonIsRefusedWithItsPlaceAndNotItsText) {
  for (const char* bad : {"",
                          " ",
                          "{",
                          "}",
                          "[",
                          "[1",
                          "[1,]",
                          "[,1]",
                          "[1 2]",
                          "{\"a\"}",
                          "{\"a\":}",
                          "{\"a\":1,}",
                          "{a:1}",
                          "{'a':1}",
                          "01",
                          "1.",
                          ".5",
                          "+1",
                          "-",
                          "1e",
                          "1e+",
                          "tru",
                          "nul",
                          "True",
                          "NaN",
                          "\"",
                          "\"\\",
                          "\"\\x\"",
                          "\"\\u12\"",
                          "\"\\u12G4\"",
                          "\"\n\"",
                          "\"\x01\"",
                          "\"\xff\"",
                          "\"\xc0\xaf\"",
                          "\"\xed\xa0\x80\"",
                          "1 2",
                          "{} {}",
                          "\xEF\xBB\xBF{}",
                          "[}",
                          "{]",
                          "[1}",
                          "{\"a\":1]",
                          "//",
                          "{\"a\":1}x",
                          "\"\\ud83d\\u00\""}) {
    const absl::Status status = CheckJson(bad);
    EXPECT_FALSE(status.ok()) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("JSON refused at byte "));
  }
  EXPECT_THAT(std::string(CheckJson("{\"secret\": sesame}").message()), testing::Not(HasSubstr("sesame")));
}

TEST(RawTest, WhatIsJsonPasses) {
  for (const char* good : {"0", "-0", "-0.0e-0", "1E5", "[]", "[ ]", "{}", "{ }", "[[],{}]", "\"\\ud83d\"",
                           "\"\\ude00x\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\\ud83d\\ude00\"", "\t\r\n null ",
                           "{\"a\":{\"a\":1,\"a\":2}}", "1e999999999999999999999", "\"\x7f\""}) {
    EXPECT_TRUE(CheckJson(good).ok()) << good << CheckJson(good);
  }
}

TEST(RawTest, NestingIsBoundedAndCostsNoStack) {
  EXPECT_TRUE(CheckJson(Nested(kRawDepthMax)).ok());
  EXPECT_FALSE(CheckJson(Nested(kRawDepthMax + 1)).ok());
  EXPECT_FALSE(CheckJson(std::string(10'000'000, '[')).ok());
}

TEST(RawTest, EqualNamesHoweverWrittenAreRefusedInTheObjectItself) {
  EXPECT_FALSE(RawObject::Parse(R"({"a":1,"\u0061":2})").ok());
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(RawObject::Parse(many + "\"40\":0}").ok());
  EXPECT_FALSE(RawObject::Parse(many + "\"7\":0}").ok());
  EXPECT_TRUE(RawObject::Parse(R"({"a":1,"A":2})").ok()) << "case is for the client's side to look at";
  EXPECT_FALSE(RawObject::Parse("[]").ok());
}

TEST(RawTest, AMemberIsReplacedOrAddedAndAllElseStays) {
  EXPECT_EQ(WithMember("{}", "a", "1"), "{\"a\":1}");
  EXPECT_EQ(WithMember(" { } ", "a", "1"), " {\"a\":1 } ");
  EXPECT_EQ(WithMember("{ \"b\" : 1.0 }", "a\n", "{}"), "{ \"b\" : 1.0,\"a\\n\":{} }");
  EXPECT_EQ(WithMember("{\"\\u0061\" : [1] , \"b\":2}", "a", "null"), "{\"\\u0061\" : null , \"b\":2}");
  EXPECT_EQ(WithMember("[1]", "a", "1"), "[1]");
}

TEST(RawTest, AMemberIsLeftOutWithItsCommaAndAllElseStays) {
  EXPECT_EQ(WithoutMember("{\"a\":1}", "a"), "{}");
  EXPECT_EQ(WithoutMember("{ \"a\":1 }", "a"), "{  }");
  EXPECT_EQ(WithoutMember("{\"a\":1, \"b\":2 ,\"c\":3}", "a"), "{\"b\":2 ,\"c\":3}");
  EXPECT_EQ(WithoutMember("{\"a\":1, \"b\":2 ,\"c\":3}", "b"), "{\"a\":1 ,\"c\":3}");
  EXPECT_EQ(WithoutMember("{\"a\":1, \"b\":2 ,\"c\":3 }", "c"), "{\"a\":1, \"b\":2 }");
  EXPECT_EQ(WithoutMember("{\"a\":1}", "b"), "{\"a\":1}");
}

TEST(RawTest, ScalarsAreReadStrictly) {
  EXPECT_EQ(StringOf(R"("a\/\u00e9\ud83d\ude00\n")"), "a/\u00e9\U0001F600\n");
  EXPECT_EQ(StringOf(R"("\ud83d")"), "\uFFFD");
  EXPECT_EQ(StringOf(R"("\ud83dx\ude00")"), "\uFFFDx\uFFFD");
  EXPECT_EQ(StringOf(R"("\ud83d\u0041")"), "\uFFFDA");
  EXPECT_EQ(StringOf("1"), std::nullopt);
  EXPECT_EQ(StringOf("\"a\" "), std::nullopt);
  EXPECT_EQ(StringOf(""), std::nullopt);
  EXPECT_EQ(IntegerOf("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(IntegerOf("9223372036854775807"), INT64_MAX);
  for (const char* none :
       {"9223372036854775808", "1.0", "1e3", "01", "-01", "-", "", "+1", " 1", "1 ", "\"1\"", "0x1"}) {
    EXPECT_EQ(IntegerOf(none), std::nullopt) << none;
  }
  EXPECT_EQ(IntegerOf("-0"), 0);
  EXPECT_EQ(BoolOf("true"), true);
  EXPECT_EQ(BoolOf("1"), std::nullopt);
  EXPECT_THAT(*ElementsOf("[ 1 , [2,3],\"]\" ]"), testing::ElementsAre("1", "[2,3]", "\"]\""));
  EXPECT_THAT(*ElementsOf("[]"), testing::IsEmpty());
  EXPECT_FALSE(ElementsOf("[1,]"));
  EXPECT_FALSE(ElementsOf("[1] x"));
  EXPECT_FALSE(ElementsOf("{}"));
}

TEST(RawTest, QuoteWritesValidJsonOfAnyBytes) {
  EXPECT_EQ(Quote("a\"\\\n\t\x01\x1f\x7f\u00e9"), "\"a\\\"\\\\\\n\\u0009\\u0001\\u001f\x7f\u00e9\"");
  EXPECT_EQ(Quote("\xff\xc3"), "\"\uFFFD\uFFFD\"");
}

}  // namespace
}  // namespace tally::mcp
