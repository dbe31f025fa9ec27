#include "gateway/mcp/lines.h"

#include <algorithm>
#include <vector>

#include "gateway/mcp/raw.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/targets.h"

namespace tally::fuzz {
namespace {

constexpr size_t kLineBytesMax = 50;

std::vector<mcp::Line> Read(std::string_view bytes, size_t piece, bool* unfinished) {
  mcp::LineReader reader(kLineBytesMax);
  std::vector<mcp::Line> lines;
  while (!bytes.empty()) {
    const size_t size = std::min(piece, bytes.size());
    reader.Feed(bytes.substr(0, size), &lines);
    bytes.remove_prefix(size);
  }
  *unfinished = reader.unfinished();
  return lines;
}

}  // namespace

void FuzzLines(std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t piece = static_cast<unsigned char>(bytes[0]) % 16 + 1;
  bytes.remove_prefix(1);
  bool one = false;
  bool other = false;
  const auto whole = Read(bytes, std::max<size_t>(bytes.size(), 1), &one);
  Promise(whole == Read(bytes, piece, &other) && one == other, "pieces make no difference");
  for (const mcp::Line& line : whole) {
    Promise(line.text.size() <= kLineBytesMax && line.text.find('\n') == std::string::npos,
            "a line is one, and bounded");
    Promise(line.too_long ? line.text.empty() : !line.text.empty(), "a line has a text, or is too long");
  }
  Promise(static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1 >= whole.size(),
          "no line from nowhere");
  if (!mcp::CheckJson(bytes).ok()) return;
  // Any JSON goes on one line, and comes off it as the same JSON.
  const std::string line = mcp::JsonLine(bytes);
  Promise(line.ends_with('\n') && line.find('\n') + 1 == line.size(), "JSON on one line");
  Promise(mcp::CheckJson(line).ok(), "is JSON");
}

}  // namespace tally::fuzz
