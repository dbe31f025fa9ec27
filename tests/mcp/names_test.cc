#include "gateway/mcp/names.h"

#include <gtest/gtest.h>

namespace tally::mcp {
namespace {

TEST(NamesTest, UpstreamNamesAreLowerCaseShortAndNotOurs) {
  for (const char* good : {"a", "payments", "my-server-2", "0"}) EXPECT_TRUE(IsUpstreamName(good)) << good;
  EXPECT_TRUE(IsUpstreamName(std::string(32, 'a')));
  EXPECT_FALSE(IsUpstreamName(std::string(33, 'a')));
  for (const char* bad : {"", "A", "a_b", "a.b", "a b", "é", "tally"}) EXPECT_FALSE(IsUpstreamName(bad)) << bad;
}

TEST(NamesTest, JoinedNamesComeApartAsTheyWereJoined) {
  for (const char* tool : {"refund", "_x", "__x", "a__b", "a/b", "A.b-c", "_"}) {
    const auto joined = JoinName("pay", tool);
    ASSERT_TRUE(joined) << tool;
    const auto split = SplitName(*joined);
    ASSERT_TRUE(split) << tool;
    EXPECT_EQ(split->upstream, "pay");
    EXPECT_EQ(split->tool, tool);
  }
}

TEST(NamesTest, WhatAPermitCannotNameIsLeftOut) {
  EXPECT_TRUE(JoinName("pay", std::string(123, 'x')));
  EXPECT_FALSE(JoinName("pay", std::string(124, 'x')));
  for (const char* bad : {"", "a b", "é", "a:b", "a\n"}) EXPECT_FALSE(JoinName("pay", bad)) << bad;
}

TEST(NamesTest, OurOwnToolsComeApartToo) {
  EXPECT_EQ(SplitName(kCallStatusTool)->upstream, kOwnUpstream);
  EXPECT_EQ(SplitName(kPermitStatusTool)->tool, "permit_status");
}

TEST(NamesTest, OtherNamesDoNotComeApart) {
  for (const char* bad : {"", "refund", "pay_refund", "pay__", "__refund", "Pay__refund", "pa_y__refund", "pay__a b"}) {
    EXPECT_FALSE(SplitName(bad)) << bad;
  }
}

}  // namespace
}  // namespace tally::mcp
