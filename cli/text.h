// Text for people: what strangers wrote is made harmless, times are local, columns line up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally::cli {

// Terminals obey what they print: control characters, invalid UTF-8 and the characters that turn the direction of
// writing are shown as \xNN or \u{…}. A line feed too, unless it is let through.
enum class LineFeeds { kEscape, kKeep };
std::string ForTerminal(std::string_view text, LineFeeds line_feeds = LineFeeds::kEscape);

// 2027-01-31 12:00:00 CET; "-" for 0.
std::string LocalTime(int64_t time_us);

// 90 s, 10 min, 24 h: the largest unit that divides.
std::string DurationText(int64_t ms);

// Columns, each as wide as its widest cell. Cells are made harmless here.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// `name  value` lines. An empty value leaves its line out.
class Fields {
 public:
  void Add(std::string name, std::string value);
  std::string Text() const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace tally::cli
