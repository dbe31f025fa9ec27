#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gateway/mcp/judge.h"
#include "gateway/mcp/lines.h"
#include "gateway/mcp/message.h"
#include "gateway/mcp/modern.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"
#include "gateway/mcp/sse.h"
#include "lib/json/parse.h"
#include "tests/mcp/probe.h"

namespace tally::mcp {
namespace {

using Json = nlohmann::json;

constexpr size_t kBytesMax = 1 << 20;

std::string AnyText(std::string_view alphabet) {
  const auto letter = rc::gen::elementOf(std::string(alphabet));
  return *rc::gen::container<std::string>(letter);
}

// Cuts a text where it likes.
std::vector<std::string> Pieces(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t length = *rc::gen::inRange<size_t>(1, std::min<size_t>(text.size(), 12) + 1);
    pieces.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

std::string Space() { return *rc::gen::element<std::string>("", "", " ", "\n", "\t ", "\r\n"); }

std::string AnyName() {
  return *rc::gen::element<std::string>("a", "b", "name", "\u00e9", "q\"", "\\", "\n", "", "x/y",
                                        "dev.tallystick/call");
}

// JSON text with space wherever it may stand, numbers as people write them, no equal members. Bounded by `depth`.
std::string AnyJson(int depth);

std::string AnyArray(int depth) {
  std::string text = "[" + Space();
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : "," + Space()) + AnyJson(depth - 1) + Space();
  return text + "]";
}

std::string AnyMembers(int depth) {
  std::string text = "{" + Space();
  std::vector<std::string> names;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) {
    const std::string name = AnyName();
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    text += (names.empty() ? "" : "," + Space()) + Quote(name) + Space() + ":" + Space() + AnyJson(depth - 1) + Space();
    names.push_back(name);
  }
  return text + "}";
}

std::string AnyJson(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return "null";
    case 1:
      return *rc::gen::element<std::string>("true", "false");
    case 2:
      return *rc::gen::element<std::string>("0", "-0", "12345678901234567890", "1.50", "-2e+7", "1E-9");
    case 6:
      return AnyArray(depth);
    case 7:
      return AnyMembers(depth);
    default:
      return Quote(AnyText("ab {}[],:\"\\\n\x7f"));
  }
}

std::string AnyObject() { return Space() + AnyMembers(3) + Space(); }

// Garbage that is near to the truth: a good text with a byte changed, cut off, put in or doubled.
std::string Damaged(std::string text) {
  const int times = *rc::gen::inRange(1, 4);
  for (int i = 0; i < times && !text.empty(); ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        text[at] = *rc::gen::arbitrary<char>();
        break;
      case 1:
        text.erase(at);
        break;
      case 2:
        text.insert(at, 1, *rc::gen::elementOf(std::string("{}[]\",:\\\n\x80\xff")));
        break;
      default:
        text.insert(at, text.substr(at, 10));
    }
  }
  return text;
}

RC_GTEST_PROP(SseProperty, PiecesGiveTheSameEventsAsTheWhole, ()) {
  std::string text;
  const int fields = *rc::gen::inRange(0, 20);
  for (int i = 0; i < fields; ++i) {
    text +=
        *rc::gen::element<std::string>("data:", "data: ", "data", "id: ", "event:", "retry:", ":", "", "\xEF\xBB\xBF");
    text += AnyText("ab:1 \xC3");
    text += *rc::gen::element<std::string>("\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n");
  }
  const size_t bytes_max = *rc::gen::element<size_t>(8, 30, 10'000);
  SseParser whole(bytes_max), cut(bytes_max);
  std::vector<SseEvent> expected, events;
  const bool good = whole.Feed(text, &expected);
  bool cut_good = true;
  for (const std::string& piece : Pieces(text)) cut_good = cut.Feed(piece, &events);
  RC_ASSERT(events == expected);
  RC_ASSERT(cut_good == good);
  RC_ASSERT(cut.last_event_id() == whole.last_event_id());
  RC_ASSERT(cut.retry_ms() == whole.retry_ms());
}

RC_GTEST_PROP(SseProperty, WhatIsWrittenIsReadAgain, ()) {
  std::vector<SseEvent> events;
  std::string text, last_id;
  const int count = *rc::gen::inRange(0, 6);
  for (int i = 0; i < count; ++i) {
    SseEvent event{AnyText("id 7:"), AnyText("me:"), AnyText("ab: {\n}")};
    // A leading space of a field is the separator's, and an absent id is the last one.
    text += SseText(event) + std::string(kSseKeepAlive);
    if (!event.id.empty()) last_id = event.id;
    event.id = last_id;
    events.push_back(event);
  }
  SseParser parser(kBytesMax);
  std::vector<SseEvent> read;
  RC_ASSERT(parser.Feed(text, &read));
  RC_ASSERT(read == events);
}

RC_GTEST_PROP(LinesProperty, PiecesGiveTheSameLinesAsTheWhole, ()) {
  const std::string text = AnyText("aab{} \r\n\n");
  const size_t bytes_max = *rc::gen::inRange<size_t>(1, 8);
  LineReader whole(bytes_max), cut(bytes_max);
  std::vector<Line> expected, lines;
  whole.Feed(text, &expected);
  for (const std::string& piece : Pieces(text)) cut.Feed(piece, &lines);
  RC_ASSERT(lines == expected);
  RC_ASSERT(cut.unfinished() == whole.unfinished());
  for (const Line& line : lines) RC_ASSERT(line.text.size() <= bytes_max);
}

RC_GTEST_PROP(LinesProperty, AJsonTextTravelsAsOneLineWithItsMeaning, ()) {
  const std::string text = AnyObject();
  const std::string line = JsonLine(text);
  RC_ASSERT(line.find('\n') == line.size() - 1);
  RC_ASSERT(Json::parse(line) == Json::parse(text));
}

RC_GTEST_PROP(RawProperty, JsonIsTakenExactlyIfAnotherReaderTakesIt, ()) {
  const std::string text = *rc::gen::inRange(0, 3) == 0 ? AnyJson(3) : Damaged(AnyJson(3));
  // The other reader stops at a NUL and passes over a byte order mark.
  RC_PRE(text.find('\0') == std::string::npos && !text.starts_with('\xEF'));
  RC_ASSERT(CheckJson(text).ok() == Json::accept(text));
}

RC_GTEST_PROP(RawProperty, WithMemberChangesOneMemberAndNoOtherByte, ()) {
  const std::string object = AnyObject();
  const std::string name = AnyName();
  const std::string value = AnyJson(1);
  const std::string changed = WithMember(object, name, value);
  const auto before = RawObject::Parse(object);
  const auto after = RawObject::Parse(changed);
  RC_ASSERT(before.ok() && after.ok());
  RC_ASSERT(*after->Find(name) == value);
  // Put back what was there, or take it out again: the text is what it was.
  const std::string_view* old = before->Find(name);
  RC_ASSERT((old != nullptr ? WithMember(changed, name, *old) : WithoutMember(changed, name)) == object);
  Json expected = Json::parse(object);
  expected[name] = Json::parse(value);
  RC_ASSERT(Json::parse(changed) == expected);
}

RC_GTEST_PROP(RawProperty, WithoutMemberLeavesAllOtherMembersAsTheyWere, ()) {
  const std::string object = AnyObject();
  const std::string name = AnyName();
  const std::string changed = WithoutMember(object, name);
  const auto before = RawObject::Parse(object);
  const auto after = RawObject::Parse(changed);
  RC_ASSERT(before.ok() && after.ok());
  RC_ASSERT(after->Find(name) == nullptr);
  std::vector<std::pair<std::string, std::string_view>> expected, left;
  for (const Member& member : before->members()) {
    if (member.name != name) expected.emplace_back(member.name, member.value);
  }
  for (const Member& member : after->members()) left.emplace_back(member.name, member.value);
  RC_ASSERT(left == expected);
  if (before->Find(name) == nullptr) RC_ASSERT(changed == object);
}

RC_GTEST_PROP(RawProperty, QuoteAndStringOfAreInverse, ()) {
  const std::string text =
      AnyText("a\"\\/\b\n\x01\x7f") + *rc::gen::element<std::string>("", "\u00e9", "\U0001F600", "\u2028");
  RC_ASSERT(StringOf(Quote(text)) == text);
  RC_ASSERT(Json::parse(Quote(text)).get<std::string>() == text);
}

RC_GTEST_PROP(RawProperty, QuoteOfAnyBytesIsJson, (const std::string& bytes)) { RC_ASSERT(Json::accept(Quote(bytes))); }

RC_GTEST_PROP(MessageProperty, WrittenMessagesAreReadAgainAsTheyWere, ()) {
  const std::string id = *rc::gen::element<std::string>("7", "-1", "\"x\"", "\"\\u0061\"");
  const std::string object = AnyObject();
  const std::string trimmed = object.substr(object.find('{'), object.rfind('}') - object.find('{') + 1);
  const auto request = ParseMessage(RequestText(id, "m", object), From::kClient, kBytesMax);
  RC_ASSERT(std::get<Message>(request).params == trimmed);
  RC_ASSERT(std::get<Message>(request).id == id);
  const auto result = ParseMessage(ResultText(id, object), From::kUpstream, kBytesMax);
  RC_ASSERT(std::get<Message>(result).result == trimmed);
  const auto error = ParseMessage(ErrorText(id, {-32000, AnyText("a\"\n"), trimmed}), From::kUpstream, kBytesMax);
  RC_ASSERT(std::get<Message>(error).error.data == trimmed);
}

RC_GTEST_PROP(MessageProperty, AClientsMessageIsNeverTakenMoreWidelyThanAnUpstreams, ()) {
  const std::string text = Damaged(RequestText("1", "tools/call", AnyObject()));
  const auto client = ParseMessage(text, From::kClient, kBytesMax);
  const auto upstream = ParseMessage(text, From::kUpstream, kBytesMax);
  if (std::holds_alternative<Message>(client)) {
    RC_ASSERT(std::get<Message>(client).params == std::get<Message>(upstream).params);
    RC_ASSERT(tally::json::Parse(text, {.bytes_max = kBytesMax}).ok());
  }
}

RC_GTEST_PROP(ModernProperty, HeaderValuesComeBackAndHoldNothingThatAHeaderMayNot, (const std::string& value)) {
  const std::string coded = EncodeHeaderValue(value);
  RC_ASSERT(DecodeHeaderValue(coded) == value);
  for (char c : coded) RC_ASSERT(c == '\t' || (c >= 0x20 && c < 0x7F));
}

RC_GTEST_PROP(GarbageProperty, NothingCrashesAndPromisesHold, ()) {
  const std::string text =
      *rc::gen::element<int>(0, 1, 2) == 0
          ? *rc::gen::arbitrary<std::string>()
          : Damaged(RequestText("1", "tools/call", R"({"name":"a__b","arguments":)" + AnyJson(2) + "}"));
  Probe(text);
}

RC_GTEST_PROP(JudgeProperty, NoReplyThatIsCutIsASuccess, ()) {
  const std::string result = R"({"content":[{"type":"text","text":"done"}],"isError":false})";
  const std::string cut = result.substr(0, *rc::gen::inRange<size_t>(0, result.size()));
  Reply reply;
  reply.how = Reply::How::kResult;
  reply.result = cut;
  RC_ASSERT(Judge(reply, {}) == Meaning::kUncertain);
}

}  // namespace
}  // namespace tally::mcp
