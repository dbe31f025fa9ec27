// stdio framing: one JSON text a line, each ended by \n.
#ifndef TALLY_GATEWAY_MCP_LINES_H_
#define TALLY_GATEWAY_MCP_LINES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tally::mcp {

struct Line {
  std::string text;       // without its end, \n or \r\n
  bool too_long = false;  // over the limit; `text` is empty, and the line is skipped to its end

  friend bool operator==(const Line&, const Line&) = default;
};

// Give it what came, in whatever pieces; the lines are the same. Blank lines are left out.
class LineReader {
 public:
  explicit LineReader(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // A line that is too long is reported once, as soon as that is certain.
  void Feed(std::string_view bytes, std::vector<Line>* lines);

  // Whether something stands after the last line's end: at the end of a stream, a message that was cut.
  bool unfinished() const { return skipping_ || !line_.empty(); }

 private:
  size_t line_bytes_max_;
  bool skipping_ = false;
  std::string line_;
};

// A JSON text as one line, its \n included. Line breaks stand only between the tokens of JSON, so that a space is as
// good. Precondition: `json` is valid.
std::string JsonLine(std::string_view json);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_LINES_H_
