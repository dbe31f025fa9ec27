#include "tests/mcp/probe.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gateway/mcp/judge.h"
#include "gateway/mcp/lines.h"
#include "gateway/mcp/message.h"
#include "gateway/mcp/modern.h"
#include "gateway/mcp/names.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"
#include "gateway/mcp/sse.h"
#include "gateway/mcp/tool_call.h"

namespace tally::mcp {
namespace {

constexpr size_t kBytesMax = 1 << 20;

void Promise(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

bool IsMessage(const std::variant<Message, Malformed>& parsed) { return std::holds_alternative<Message>(parsed); }

std::string Again(const Message& message) {
  switch (message.kind) {
    case Message::Kind::kRequest:
      return RequestText(message.id, message.method, message.params);
    case Message::Kind::kNotification:
      return NotificationText(message.method, message.params);
    case Message::Kind::kResult:
      return ResultText(message.id, message.result);
    case Message::Kind::kError:
      return ErrorText(message.id, message.error);
  }
  return "";
}

void ProbeMessage(std::string_view bytes, From from) {
  const auto parsed = ParseMessage(bytes, from, kBytesMax);
  if (const auto* bad = std::get_if<Malformed>(&parsed)) {
    Promise(CheckJson(ErrorText(bad->id, {bad->code, bad->message, ""})).ok(), "a refusal is valid JSON");
    return;
  }
  const Message& message = std::get<Message>(parsed);
  const auto again = ParseMessage(Again(message), from, 2 * kBytesMax);
  Promise(IsMessage(again), "a message that was taken is taken again as it is passed on");
  const Message& second = std::get<Message>(again);
  Promise(second.kind == message.kind && second.params == message.params && second.result == message.result &&
              second.method == message.method && second.id == message.id && second.error.data == message.error.data,
          "and means the same");
  CheckModernRequest(message, {std::string(bytes), message.method, std::string(bytes)});
  IsModern(message, {});
  const auto call = ParseToolCall(message.params, std::vector<std::string>{std::string(bytes.substr(0, 50))});
  if (const auto* good = std::get_if<ToolCall>(&call)) {
    Promise(good->meta.empty() || RawObject::Parse(good->meta).ok(), "what is left of _meta is an object");
    Promise(good->arguments.empty() || RawObject::Parse(good->arguments).ok(), "arguments are an object");
    SplitName(good->name);
  }
}

void ProbeReply(std::string_view bytes) {
  Reply reply;
  reply.how = Reply::How::kResult;
  reply.result = bytes;
  const Meaning meaning = Judge(reply, {});
  Promise(meaning == Meaning::kUncertain || RawObject::Parse(bytes).ok(), "what is no object is uncertain");
  const std::string with = WithCallMeta(bytes, "id", {"aa"});
  Promise(with == bytes || RawObject::Parse(with).ok(), "what is added keeps the result whole");
}

}  // namespace

bool Probe(std::string_view bytes) {
  const auto object = RawObject::Parse(bytes);
  Promise(!object.ok() || CheckJson(bytes).ok(), "an object is JSON");
  if (CheckJson(bytes).ok()) Promise(CheckJson(JsonLine(bytes)).ok(), "and stays so on one line");
  for (From from : {From::kClient, From::kUpstream}) ProbeMessage(bytes, from);
  ProbeReply(bytes);
  StringOf(bytes);
  IntegerOf(bytes);
  ElementsOf(bytes);
  SplitName(bytes);
  JoinName("up", bytes);
  DecodeHeaderValue(bytes);
  MetaToForward(bytes);
  Promise(CheckJson(Quote(bytes)).ok(), "a quoted text is JSON");
  std::vector<SseEvent> events;
  SseParser(100).Feed(bytes, &events);
  std::vector<Line> lines;
  LineReader(100).Feed(bytes, &lines);
  return IsMessage(ParseMessage(bytes, From::kClient, kBytesMax));
}

}  // namespace tally::mcp
