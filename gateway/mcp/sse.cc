#include "gateway/mcp/sse.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tally::mcp {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

void AppendField(std::string_view name, std::string_view value, std::string* out) {
  out->append(name).append(": ").append(value).push_back('\n');
}

}  // namespace

bool SseParser::Feed(std::string_view bytes, std::vector<SseEvent>* events) {
  while (!over_ && !bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes[0] == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() + data_.size() > event_bytes_max_) {
      over_ = true;
      // What it holds is no use to anyone.
      line_ = {};
      data_ = {};
      break;
    }
    line_.append(part);
    if (end == std::string_view::npos) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    Line(line, events);
  }
  return !over_;
}

void SseParser::Line(std::string_view line, std::vector<SseEvent>* events) {
  if (!std::exchange(begun_, true) && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (!line.empty()) {
    const size_t colon = line.find(':');
    if (colon == 0) return;  // a comment
    std::string_view value = colon == std::string_view::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    Field(line.substr(0, colon), value);
    return;
  }
  if (has_data_) {
    data_.pop_back();
    events->push_back({last_id_, event_, std::move(data_)});
  }
  has_data_ = false;
  data_.clear();
  event_.clear();
}

void SseParser::Field(std::string_view name, std::string_view value) {
  if (name == "data") {
    has_data_ = true;
    data_.append(value).push_back('\n');
  } else if (name == "event") {
    event_ = value;
  } else if (name == "id") {
    if (value.find('\0') == std::string_view::npos) last_id_ = value;
  } else if (name == "retry") {
    int64_t ms = 0;
    const bool digits = std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), ms);
    if (digits && !value.empty() && error == std::errc()) retry_ms_ = ms;
  }
}

std::string SseText(const SseEvent& event) {
  std::string text;
  text.reserve(event.data.size() + event.id.size() + event.event.size() + 32);
  if (!event.id.empty()) AppendField("id", event.id, &text);
  if (!event.event.empty()) AppendField("event", event.event, &text);
  std::string_view rest = event.data;
  for (;;) {
    const size_t end = rest.find_first_of("\r\n");
    AppendField("data", rest.substr(0, end), &text);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + (rest.substr(end).starts_with("\r\n") ? 2 : 1));
  }
  text.push_back('\n');
  return text;
}

std::string SsePriming(std::string_view id) {
  std::string text;
  AppendField("id", id, &text);
  AppendField("data", "", &text);
  text.push_back('\n');
  return text;
}

}  // namespace tally::mcp
