// Server-sent events, as the HTML standard has them (section 9.2), read in pieces and written whole.
#ifndef TALLY_GATEWAY_MCP_SSE_H_
#define TALLY_GATEWAY_MCP_SSE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally::mcp {

struct SseEvent {
  std::string id;     // the stream's last event id when it was dispatched: to resume after this event
  std::string event;  // empty: "message"
  std::string data;   // lines joined by \n

  friend bool operator==(const SseEvent&, const SseEvent&) = default;
};

// Give it what came, in whatever pieces; the events are the same. What a stream leaves unfinished at its end is no
// event.
class SseParser {
 public:
  // What one event may hold, its unfinished line included. Memory stays below some four times that.
  explicit SseParser(size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  // False for good once an event is over the limit: the stream cannot be trusted to say what came after. Events before
  // that are appended all the same. Events without data are not dispatched, but their id counts.
  bool Feed(std::string_view bytes, std::vector<SseEvent>* events);

  const std::string& last_event_id() const { return last_id_; }
  // What the stream last asked for between a cut and the next try, in milliseconds.
  std::optional<int64_t> retry_ms() const { return retry_ms_; }

 private:
  void Line(std::string_view line, std::vector<SseEvent>* events);
  void Field(std::string_view name, std::string_view value);

  size_t event_bytes_max_;
  bool over_ = false;
  bool begun_ = false;     // a byte order mark may stand at the start
  bool after_cr_ = false;  // a \n that follows ends nothing more
  std::string line_;       // the line so far
  std::string event_;
  std::string data_;
  bool has_data_ = false;
  std::string last_id_;
  std::optional<int64_t> retry_ms_;
};

// One event's text, its blank line included. Line breaks in `data` (\n, \r, \r\n) come out as \n at the reader; id and
// event must have none. An empty id or event is left out.
std::string SseText(const SseEvent& event);
// Names an id with no data: the point to resume from before anything was said (2025-11-25).
std::string SsePriming(std::string_view id);
// Keeps a connection from looking dead; no reader sees it.
inline constexpr std::string_view kSseKeepAlive = ":\n\n";

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_SSE_H_
