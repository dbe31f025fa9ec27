#include "gateway/mcp/sse.h"

#include <algorithm>
#include <vector>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/targets.h"

namespace tally::fuzz {
namespace {

constexpr size_t kEventBytesMax = 200;

struct Heard {
  std::vector<mcp::SseEvent> events;
  bool good = true;
  std::string last_id;
  std::optional<int64_t> retry;

  friend bool operator==(const Heard&, const Heard&) = default;
};

Heard Hear(std::string_view bytes, size_t piece) {
  mcp::SseParser parser(kEventBytesMax);
  Heard heard;
  while (!bytes.empty()) {
    const size_t size = std::min(piece, bytes.size());
    heard.good = parser.Feed(bytes.substr(0, size), &heard.events);
    bytes.remove_prefix(size);
  }
  heard.last_id = parser.last_event_id();
  heard.retry = parser.retry_ms();
  return heard;
}

}  // namespace

void FuzzSse(std::string_view bytes) {
  if (bytes.empty()) return;
  const size_t piece = static_cast<unsigned char>(bytes[0]) % 16 + 1;
  bytes.remove_prefix(1);
  const Heard whole = Hear(bytes, bytes.size());
  const Heard pieces = Hear(bytes, piece);
  Promise(whole.events == pieces.events && whole.good == pieces.good, "pieces make no difference");
  if (whole.good) Promise(whole == pieces, "to id and retry neither");
  std::string again;
  for (const mcp::SseEvent& event : whole.events) {
    Promise(event.id.size() + event.event.size() + event.data.size() <= 3 * kEventBytesMax, "an event is bounded");
    Promise(event.id.find_first_of(std::string_view("\0\r\n", 3)) == std::string::npos, "an id is one line");
    again += mcp::SseText(event);
  }
  // Written anew, it is heard as before; an id that is empty cannot be said, and stays what it was.
  const Heard second = Hear(again, again.size());
  Promise(!second.good || second.events.size() == whole.events.size(), "what is written is heard");
  for (size_t i = 0; second.good && i < second.events.size(); ++i) {
    Promise(second.events[i].data == whole.events[i].data, "with its data");
  }
}

}  // namespace tally::fuzz
