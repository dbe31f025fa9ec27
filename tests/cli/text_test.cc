#include "cli/text.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace tally::cli {
namespace {

TEST(ForTerminal, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(ForTerminal("plain, naïve, 日本"), "plain, naïve, 日本");
  EXPECT_EQ(ForTerminal("\x1b[2J\x07"), "\\x1b[2J\\x07");
  EXPECT_EQ(ForTerminal("a\nb"), "a\\x0ab");
  EXPECT_EQ(ForTerminal("a\nb\r", LineFeeds::kKeep), "a\nb\\x0d");
  EXPECT_EQ(ForTerminal("\xc2\x9b"), "\\u{9b}");  // CSI as one character
  EXPECT_EQ(ForTerminal("\xe2\x80\xae"
                        "abc"),
            "\\u{202e}abc");  // right to left from here on
  EXPECT_EQ(ForTerminal("\xff\xc3"), "\\xff\\xc3");
}

RC_GTEST_PROP(ForTerminal, NoControlByteComesThrough, (const std::string& text)) {
  for (const char c : ForTerminal(text)) {
    const auto byte = static_cast<unsigned char>(c);
    RC_ASSERT(byte >= 0x20 && byte != 0x7f);
  }
}

TEST(Table, ColumnsLineUpByCharactersAndLinesDoNotTrail) {
  Table table({"TOOL", "STATE"});
  table.Add({"größe", "X"});
  table.Add({"a", ""});
  EXPECT_EQ(table.Text(), "TOOL   STATE\ngröße  X\na\n");
}

TEST(DurationText, TakesTheLargestUnitThatDivides) {
  EXPECT_EQ(DurationText(10'000), "10 s");
  EXPECT_EQ(DurationText(600'000), "10 min");
  EXPECT_EQ(DurationText(86'400'000), "24 h");
  EXPECT_EQ(DurationText(1'500), "1500 ms");
  EXPECT_EQ(DurationText(0), "0 ms");
}

}  // namespace
}  // namespace tally::cli
