#include "gateway/mcp/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tally::mcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Line> Lines(std::string_view text, size_t bytes_max = 10) {
  LineReader reader(bytes_max);
  std::vector<Line> lines;
  reader.Feed(text, &lines);
  return lines;
}

TEST(LinesTest, LinesEndInNewlineWithOrWithoutReturn) {
  EXPECT_THAT(Lines("a\nb\r\n\n \r\nc\r\r\nd"), ElementsAre(Line{"a"}, Line{"b"}, Line{"c\r"}));
  EXPECT_THAT(Lines(""), IsEmpty());
}

TEST(LinesTest, ALineAtTheLimitPassesAndOneOverItIsReportedOnceAndSkipped) {
  EXPECT_THAT(Lines("0123456789\n0123456789\r\n"), ElementsAre(Line{"0123456789"}, Line{"0123456789"}));
  EXPECT_THAT(Lines("0123456789x\nok\n"), ElementsAre(Line{"", true}, Line{"ok"}));
  EXPECT_THAT(Lines("0123456789\rx\nok\n"), ElementsAre(Line{"", true}, Line{"ok"}));
  EXPECT_THAT(Lines(std::string(10'000'000, 'x') + "\nok\n"), ElementsAre(Line{"", true}, Line{"ok"}));
}

TEST(LinesTest, AnEndlessLineIsReportedBeforeItEnds) {
  LineReader reader(10);
  std::vector<Line> lines;
  for (int i = 0; i < 1000; ++i) reader.Feed("xxxxxxxx", &lines);
  EXPECT_THAT(lines, ElementsAre(Line{"", true}));
  EXPECT_TRUE(reader.unfinished());
  reader.Feed("\nok\n", &lines);
  EXPECT_THAT(lines, ElementsAre(Line{"", true}, Line{"ok"}));
  EXPECT_FALSE(reader.unfinished());
}

TEST(LinesTest, ACutLineIsUnfinished) {
  LineReader reader(10);
  std::vector<Line> lines;
  reader.Feed("a\n{\"id\":", &lines);
  EXPECT_TRUE(reader.unfinished());
  EXPECT_THAT(lines, ElementsAre(Line{"a"}));
}

TEST(LinesTest, JsonOfSeveralLinesBecomesOneThatMeansTheSame) {
  EXPECT_EQ(JsonLine("{\r\n \"a\": 1\n}"), "{   \"a\": 1 }\n");
}

}  // namespace
}  // namespace tally::mcp
