#include "gateway/mcp/sse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tally::mcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::string_view_literals;

std::vector<SseEvent> Events(std::string_view text, size_t bytes_max = 1000) {
  SseParser parser(bytes_max);
  std::vector<SseEvent> events;
  EXPECT_TRUE(parser.Feed(text, &events));
  return events;
}

TEST(SseTest, FieldsLinesAndCommentsAreReadAsTheStandardSays) {
  EXPECT_THAT(Events(": hello\nevent: message\nid: 1\ndata: {\"a\":1}\n\n"),
              ElementsAre(SseEvent{"1", "message", "{\"a\":1}"}));
  EXPECT_THAT(Events("data:a\ndata: b\ndata:  c\ndata\n\n"), ElementsAre(SseEvent{"", "", "a\nb\n c\n"}));
  EXPECT_THAT(Events("data: a\r\n\r\ndata: b\r\rdata: c\n\n"),
              ElementsAre(SseEvent{"", "", "a"}, SseEvent{"", "", "b"}, SseEvent{"", "", "c"}));
  EXPECT_THAT(Events("\xEF\xBB\xBF"
                     "data: a\n\n"),
              ElementsAre(SseEvent{"", "", "a"}));
  EXPECT_THAT(Events("data\n\ndata\ndata\n\ndata:"), ElementsAre(SseEvent{"", "", ""}, SseEvent{"", "", "\n"}));
  EXPECT_THAT(Events("Data: a\nunknown: b\n\n"), IsEmpty());
  EXPECT_THAT(Events("event: x\n\ndata: a\n\n"), ElementsAre(SseEvent{"", "", "a"}));
}

TEST(SseTest, TheLastIdStaysAndCountsWithoutData) {
  SseParser parser(1000);
  std::vector<SseEvent> events;
  ASSERT_TRUE(parser.Feed(SsePriming("p0"), &events));
  EXPECT_EQ(parser.last_event_id(), "p0");
  ASSERT_TRUE(parser.Feed("data: a\n\nid: 2\ndata: b\n\n"sv, &events));
  ASSERT_TRUE(parser.Feed("id: x\0y\ndata: c\n\nid\ndata: d\n\n"sv, &events));
  EXPECT_EQ(events.front(), (SseEvent{"p0", "", ""})) << "the priming event has a data field, though an empty one";
  EXPECT_EQ(events[1], (SseEvent{"p0", "", "a"}));
  EXPECT_EQ(events[2], (SseEvent{"2", "", "b"}));
  EXPECT_EQ(events[3], (SseEvent{"2", "", "c"})) << "an id with NUL counts for nothing";
  EXPECT_EQ(events[4], (SseEvent{"", "", "d"}));
}

TEST(SseTest, RetryIsTakenIfItIsDigits) {
  SseParser parser(1000);
  std::vector<SseEvent> events;
  ASSERT_TRUE(parser.Feed("retry: 12x\n\nretry:\n\nretry: -5\n\nretry: 99999999999999999999\n\n", &events));
  EXPECT_EQ(parser.retry_ms(), std::nullopt);
  ASSERT_TRUE(parser.Feed("retry: 1500\n\n", &events));
  EXPECT_EQ(parser.retry_ms(), 1500);
}

TEST(SseTest, AnUnfinishedEventIsNone) {
  EXPECT_THAT(Events("data: a\n\ndata: {\"cut\":1}\n"), ElementsAre(SseEvent{"", "", "a"}));
}

TEST(SseTest, AnEventOverTheLimitEndsTheStreamAndKeepsWhatCameBefore) {
  SseParser parser(20);
  std::vector<SseEvent> events;
  EXPECT_TRUE(parser.Feed("data: 12345678\n\n", &events));
  EXPECT_FALSE(parser.Feed("data: ok\n\ndata: 12345678\ndata: 12345678\n\n", &events));
  EXPECT_EQ(events.size(), 2u);
  EXPECT_FALSE(parser.Feed("\n\ndata: a\n\n", &events));
  EXPECT_EQ(events.size(), 2u);
}

TEST(SseTest, WhatIsWrittenIsReadAgain) {
  for (const SseEvent& event : {SseEvent{"7", "message", "{\"a\":1}"}, SseEvent{"", "", "two\nlines"},
                                SseEvent{"", "", " leading"}, SseEvent{"x", "", "\n\nends\n"}}) {
    EXPECT_THAT(Events(SseText(event)), ElementsAre(event));
  }
  EXPECT_THAT(Events(SseText({"", "", "a\r\nb\rc"})), ElementsAre(SseEvent{"", "", "a\nb\nc"}));
  EXPECT_THAT(Events(kSseKeepAlive), IsEmpty());
}

}  // namespace
}  // namespace tally::mcp
