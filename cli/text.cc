#include "cli/text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "lib/json/utf8.h"

namespace tally::cli {
namespace {

bool Harmless(char32_t point) {
  if (point < 0x20 || (point >= 0x7f && point <= 0x9f)) return false;
  const bool turns_direction = point == 0x061c || point == 0x200e || point == 0x200f ||
                               (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
  const bool invisible = point == 0x200b || point == 0x2028 || point == 0x2029 || point == 0xfeff;
  return !turns_direction && !invisible;
}

size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void AppendPadded(std::string_view cell, size_t width, std::string* out) {
  out->append(cell);
  out->append(width - std::min(width, Width(cell)) + 2, ' ');
}

void TrimRight(std::string* line) { line->erase(line->find_last_not_of(' ') + 1); }

}  // namespace

std::string ForTerminal(std::string_view text, LineFeeds line_feeds) {
  std::string out;
  out.reserve(text.size());
  char escape[16];
  while (!text.empty()) {
    const size_t length = json::Utf8SequenceLength(text);
    if (length == 0) {
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned char>(text.front()));
      out += escape;
      text.remove_prefix(1);
      continue;
    }
    const std::string_view written = text.substr(0, length);
    const char32_t point = json::TakeCodePoint(&text);
    if (Harmless(point) || (point == '\n' && line_feeds == LineFeeds::kKeep)) {
      out += written;
    } else {
      std::snprintf(escape, sizeof escape, point < 0x80 ? "\\x%02x" : "\\u{%x}", static_cast<unsigned>(point));
      out += escape;
    }
  }
  return out;
}

std::string LocalTime(int64_t time_us) {
  if (time_us == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", absl::FromUnixMicros(time_us), absl::LocalTimeZone());
}

std::string DurationText(int64_t ms) {
  constexpr std::pair<int64_t, const char*> kUnits[] = {{3'600'000, " h"}, {60'000, " min"}, {1000, " s"}};
  for (const auto& [unit, name] : kUnits) {
    if (ms != 0 && ms % unit == 0) return absl::StrCat(ms / unit, name);
  }
  return absl::StrCat(ms, " ms");
}

std::string Table::Text() const {
  std::vector<std::vector<std::string>> rows = rows_;
  std::vector<size_t> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = ForTerminal(row[i]);
      widths[i] = std::max(widths[i], Width(row[i]));
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) AppendPadded(row[i], widths[i], &line);
    TrimRight(&line);
    out += line + "\n";
  }
  return out;
}

void Fields::Add(std::string name, std::string value) {
  if (!value.empty()) lines_.emplace_back(std::move(name), std::move(value));
}

std::string Fields::Text() const {
  size_t width = 0;
  for (const auto& [name, value] : lines_) width = std::max(width, Width(name));
  std::string out;
  for (const auto& [name, value] : lines_) {
    std::string line;
    AppendPadded(ForTerminal(name), width, &line);
    out += line + ForTerminal(value) + "\n";
  }
  return out;
}

}  // namespace tally::cli
