#include "gateway/mcp/lines.h"

#include <algorithm>
#include <utility>

namespace tally::mcp {

void LineReader::Feed(std::string_view bytes, std::vector<Line>* lines) {
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    // The \r of an \r\n does not count, though it may come in a piece of its own.
    const bool full = line_.size() + part.size() > line_bytes_max_ + 1;
    if (!skipping_ && !full) line_.append(part);
    const bool ended = end != std::string_view::npos;
    const bool over = full || (line_.size() > line_bytes_max_ && line_.back() != '\r');
    if (!skipping_ && over) {
      skipping_ = true;
      line_ = {};
      lines->push_back({"", true});
    }
    if (!ended) return;
    bytes.remove_prefix(end + 1);
    if (std::exchange(skipping_, false)) continue;
    if (line_.ends_with('\r')) line_.pop_back();
    if (line_.find_first_not_of(" \t\r") != std::string::npos) lines->push_back({std::move(line_), false});
    line_ = {};
  }
}

std::string JsonLine(std::string_view json) {
  std::string line;
  line.reserve(json.size() + 1);
  line.append(json);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  line.push_back('\n');
  return line;
}

}  // namespace tally::mcp
