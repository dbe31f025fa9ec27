#include "lib/json/pointer.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/json/canonical.h"

namespace tally::json {
namespace {

std::string At(std::string_view text, std::string_view pointer) {
  const auto root = Parse(text);
  const auto parsed = Pointer::Parse(pointer);
  if (!root.ok() || !parsed.ok()) return "refused";
  const Value* value = Get(*root, *parsed);
  return value == nullptr ? "absent" : Canonical(*value);
}

// RFC 6901 section 5.
TEST(PointerTest, PointsAsTheRfcsExamplesDo) {
  const char* document =
      R"({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8})";
  const std::pair<const char*, const char*> cases[] = {{"/foo", "[\"bar\",\"baz\"]"},
                                                       {"/foo/0", "\"bar\""},
                                                       {"/", "0"},
                                                       {"/a~1b", "1"},
                                                       {"/c%d", "2"},
                                                       {"/e^f", "3"},
                                                       {"/g|h", "4"},
                                                       {"/i\\j", "5"},
                                                       {"/k\"l", "6"},
                                                       {"/ ", "7"},
                                                       {"/m~0n", "8"}};
  for (const auto& [pointer, value] : cases) EXPECT_EQ(At(document, pointer), value) << pointer;
  EXPECT_EQ(At("[1]", ""), "[1]");
}

TEST(PointerTest, WhatDoesNotExistIsAbsentAndNullIsNot) {
  EXPECT_EQ(At("{\"a\":null}", "/a"), "null");
  for (const char* pointer : {"/b", "/a/b", "/a/0", "/a/"}) EXPECT_EQ(At("{\"a\":null}", pointer), "absent") << pointer;
  for (const char* pointer :
       {"/2", "/00", "/01", "/x", "/", "/1e0", "/+1", "/-1", "/999999999", "/99999999999999999999"}) {
    EXPECT_EQ(At("[1,2]", pointer), "absent") << pointer;
  }
  EXPECT_EQ(At("\"string\"", "/0"), "absent");
  EXPECT_EQ(At("{\"0\":{\"01\":5}}", "/0/01"), "5");
  EXPECT_EQ(At("{\"Amount\":5}", "/amount"), "absent");
  EXPECT_EQ(At("{\"~1\":5}", "/~01"), "5");
}

TEST(PointerTest, OtherTextsAreRefused) {
  for (const char* text :
       {"a", "a/b", "#/a", "/~", "/a~", "/~2", "/~a", "/a/-", "/-", "/-/a", "/\xff", "/\xed\xa0\x80"}) {
    EXPECT_EQ(Pointer::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(Pointer::Parse("/-1").ok());
}

TEST(PointerTest, LimitsAreHeld) {
  std::string deep;
  for (size_t i = 0; i < kPointerTokensMax; ++i) deep += "/a";
  EXPECT_TRUE(Pointer::Parse(deep).ok());
  EXPECT_FALSE(Pointer::Parse(deep + "/a").ok());
  EXPECT_TRUE(Pointer::Parse("/" + std::string(kPointerBytesMax - 1, 'a')).ok());
  EXPECT_FALSE(Pointer::Parse("/" + std::string(kPointerBytesMax, 'a')).ok());
}

TEST(PointerTest, IsWrittenBackAsItWasRead) {
  for (const char* text : {"", "/", "//", "/a~1b/m~0n/0", "/\u20ac"}) {
    EXPECT_EQ(Pointer::Parse(text)->ToString(), text);
  }
}

}  // namespace
}  // namespace tally::json
