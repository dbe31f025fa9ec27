#include "gateway/upstream/http.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gateway/mcp/modern.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/sse.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using std::chrono::milliseconds;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr int kResumesMax = 200;  // of one request's stream
constexpr milliseconds kResumeFirst{500};
constexpr milliseconds kListenAgainFirst{1'000};
constexpr milliseconds kListenAgainMax{60'000};
constexpr milliseconds kListenedWell{10'000};  // what lasted so long may be begun again at once
constexpr milliseconds kGoodbye{2'000};

// A session id goes into a header again: only what may stand there.
bool FitForHeader(std::string_view text) {
  return text.size() <= 1024 && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

class HttpSession final : public UpstreamSession {
 public:
  HttpSession(const asio::any_io_executor& loop, std::string name, HttpUpstreamTarget target, UpstreamSink sink,
              const UpstreamLimits& limits)
      : loop_(loop), name_(std::move(name)), target_(std::move(target)), sink_(std::move(sink)), limits_(limits) {}

  SharedExchange Send(OutgoingRequest request) override {
    auto exchange = std::make_shared<Exchange>(loop_, request.gate);
    if (!alive_) {
      exchange->FinishWithNothing("the session was closed");
      return exchange;
    }
    if (open_.size() >= limits_.open_requests_max) {
      exchange->FinishWithNothing("too many requests are open at this upstream");
      return exchange;
    }
    auto open = std::make_shared<Open>();
    open->id = absl::StrCat(++last_id_);
    open->exchange = exchange;
    open->quick = request.quick;
    open->hangup = std::make_shared<Hangup>();
    open_.push_back(open);
    const bool modern = mcp::version::IsModern(version());
    if (modern) request.params = mcp::WithEraMeta(request.params, request.capabilities);
    HttpRequest post = Post_(mcp::RequestText(open->id, request.method, request.params));
    if (modern) AddEraHeaders(request, &post);
    for (const auto& header : request.headers) post.headers.emplace_back(header);
    Spawn([this, open, post = std::move(post)]() mutable { return Run(open, std::move(post)); });
    return exchange;
  }

  void Post(std::string message) override {
    // 2026-07-28: hanging up is what cancels, and nothing else is said unasked.
    if (!alive_ || posts_ >= limits_.open_requests_max || mcp::version::IsModern(version())) return;
    ++posts_;
    Spawn([this, post = Post_(std::move(message))]() mutable { return RunPost(std::move(post)); });
  }

  void Forget(const SharedExchange& exchange) override {
    exchange->Abandon();
    const auto found =
        std::find_if(open_.begin(), open_.end(), [&](const auto& open) { return open->exchange == exchange; });
    if (found == open_.end()) return;
    const SharedOpen open = *found;
    open_.erase(found);
    open->hangup->Now();
  }

  std::string IdOf(const SharedExchange& exchange) const override {
    for (const auto& open : open_) {
      if (open->exchange == exchange) return open->id;
    }
    return "";
  }

  void Listen(std::string filter) override {
    if (!alive_) return;
    if (mcp::version::IsModern(version())) return Subscribe(std::move(filter));
    if (listening_) return;
    listening_ = std::make_shared<Hangup>();
    Spawn([this] { return RunListen(); });
  }

  bool alive() const override { return alive_; }

  void Close() override {
    if (!alive_) return;
    alive_ = false;
    if (listening_) listening_->Now();
    const auto open = std::move(open_);
    open_.clear();
    for (const auto& request : open) {
      request->exchange->FinishWithNothing("the session was closed");
      request->hangup->Now();
    }
    if (!session_id_.empty()) Spawn([this] { return Goodbye(); });
  }

 private:
  struct Open {
    std::string id;
    SharedExchange exchange;
    bool quick = false;
    std::shared_ptr<Hangup> hangup;
  };
  using SharedOpen = std::shared_ptr<Open>;

  // How far a response has been read.
  struct Reading {
    HttpHead head;
    bool stream = false;  // SSE
    std::string body;     // otherwise
    bool too_long = false;
    std::string last_event_id;
    std::optional<milliseconds> retry;
  };

  template <typename Body>
  void Spawn(Body body) {
    auto self = shared_from_this();
    asio::co_spawn(
        loop_, [self, body = std::move(body)]() mutable -> asio::awaitable<void> { co_await body(); }, asio::detached);
  }

  HttpRequest Request(std::string method) const {
    HttpRequest request;
    request.method = std::move(method);
    for (const auto& header : target_.headers) request.headers.emplace_back(header);
    if (!session_id_.empty()) request.headers.emplace_back("Mcp-Session-Id", session_id_);
    if (!version().empty()) request.headers.emplace_back("MCP-Protocol-Version", version());
    return request;
  }

  HttpRequest Post_(std::string body) const {
    HttpRequest request = Request("POST");
    request.headers.emplace_back("Content-Type", "application/json");
    request.headers.emplace_back("Accept", "application/json, text/event-stream");
    request.body = std::move(body);
    return request;
  }

  // What the body says, for those who do not read bodies.
  static void AddEraHeaders(const OutgoingRequest& request, HttpRequest* post) {
    post->headers.emplace_back(std::string(mcp::header::kMethod), request.method);
    mcp::Message message;
    message.method = request.method;
    message.params = request.params;
    if (const auto name = mcp::NameInBody(message)) {
      post->headers.emplace_back(std::string(mcp::header::kName), mcp::EncodeHeaderValue(*name));
    }
  }

  HttpRequest Get(const std::string& last_event_id) const {
    HttpRequest request = Request("GET");
    request.headers.emplace_back("Accept", "text/event-stream");
    if (!last_event_id.empty()) request.headers.emplace_back("Last-Event-ID", last_event_id);
    return request;
  }

  // What reads a response into `reading`, handing on the messages of a stream. `open`: whose answer may be in it.
  HttpEvents ReadInto(Reading& reading, mcp::SseParser& parser, const SharedOpen& open) {
    HttpEvents events;
    events.head = [this, &reading](const HttpHead& head) {
      reading.head = head;
      reading.stream = head.status == 200 && head.content_type == "text/event-stream";
      if (head.status >= 200 && head.status < 300 && !head.session_id.empty() && session_id_.empty() &&
          FitForHeader(head.session_id)) {
        session_id_ = head.session_id;
      }
      return true;
    };
    events.body = [this, &reading, &parser, open](std::string_view bytes) {
      if (!reading.stream) {
        if (reading.body.size() + bytes.size() > limits_.message_bytes_max) {
          reading.too_long = true;
          return false;
        }
        reading.body.append(bytes);
        return true;
      }
      std::vector<mcp::SseEvent> arrived;
      const bool good = parser.Feed(bytes, &arrived);
      for (const mcp::SseEvent& event : arrived) TakeMessage(event.data, open);
      if (FitForHeader(parser.last_event_id())) reading.last_event_id = parser.last_event_id();
      if (parser.retry_ms()) reading.retry = milliseconds(std::clamp<int64_t>(*parser.retry_ms(), 0, 60'000));
      reading.too_long = !good;
      return good && !(open && open->exchange->done());
    };
    return events;
  }

  void TakeMessage(std::string_view text, const SharedOpen& open) {
    auto parsed = mcp::ParseMessage(text, mcp::From::kUpstream, limits_.message_bytes_max);
    if (const auto* malformed = std::get_if<mcp::Malformed>(&parsed)) {
      ops::LogWarning("upstream_event_is_no_message", {{"upstream", name_}, {"error", malformed->message}});
      if (open && malformed->id == open->id) Finish(open, Garbage(text, "its answer is no JSON-RPC message"));
      return;
    }
    mcp::Message& message = std::get<mcp::Message>(parsed);
    if (message.kind == mcp::Message::Kind::kRequest || message.kind == mcp::Message::Kind::kNotification) {
      sink_(message, open ? open->exchange : nullptr);
      return;
    }
    if (open && message.id == open->id) Finish(open, AnswerOf(std::move(message)));
  }

  static UpstreamAnswer Garbage(std::string_view what, std::string why) {
    UpstreamAnswer answer;
    answer.how = mcp::Reply::How::kGarbage;
    answer.partial = what.substr(0, kPartialBytesMax);
    answer.why = std::move(why);
    return answer;
  }

  void Finish(const SharedOpen& open, UpstreamAnswer answer) {
    open->exchange->Finish(std::move(answer));
    std::erase(open_, open);
  }

  asio::awaitable<void> Run(SharedOpen open, HttpRequest post) {
    Reading reading;
    mcp::SseParser parser(limits_.message_bytes_max);
    HttpEvents events = ReadInto(reading, parser, open);
    events.before_write = [open] { return open->exchange->OpenGate(); };
    events.nothing_written = [open] { open->exchange->NothingWritten(); };
    const bool in_session = !session_id_.empty();
    HttpEnd end = co_await Converse(target_.url, std::move(post), std::move(events), {}, open->hangup);
    for (int i = 0; MayResume(open, reading) && i < kResumesMax; ++i) {
      const std::string from = reading.last_event_id;
      co_await Sleep(reading.retry.value_or(kResumeFirst));
      if (!MayResume(open, reading)) break;
      // What a server says to this GET is no answer to the request: that stands on the stream, or nowhere.
      Reading resumed;
      resumed.last_event_id = from;
      mcp::SseParser next(limits_.message_bytes_max);
      co_await Converse(target_.url, Get(from), ReadInto(resumed, next, open), {}, open->hangup);
      reading.last_event_id = resumed.last_event_id;
      reading.too_long = resumed.too_long;
      if (resumed.retry) reading.retry = resumed.retry;
      if (!resumed.stream) break;
    }
    if (!open->exchange->done()) Finish(open, Judge(reading, end, open->id, in_session));
  }

  // Taking up a broken stream asks for nothing anew: only what was sent to it already comes again.
  bool MayResume(const SharedOpen& open, const Reading& reading) const {
    return alive_ && !open->exchange->done() && !open->quick && reading.stream && !reading.too_long &&
           !reading.last_event_id.empty() && !open->hangup->done();
  }

  UpstreamAnswer Judge(const Reading& reading, const HttpEnd& end, const std::string& id, bool in_session) const {
    UpstreamAnswer answer;
    if (reading.head.status == 0 || (reading.stream && !reading.too_long)) {
      answer.why = reading.stream ? "its stream ended before the answer" : end.why;
      return answer;
    }
    if (reading.too_long) return Garbage(reading.body, "its answer is larger than the gateway takes");
    if (reading.head.status < 200 || reading.head.status >= 300) {
      answer.how = mcp::Reply::How::kHttpStatus;
      answer.http_status = reading.head.status;
      answer.session_ended = reading.head.status == 404 && in_session;
      if (end.whole && !reading.body.empty()) {
        auto said = mcp::ParseMessage(reading.body, mcp::From::kUpstream, limits_.message_bytes_max);
        if (auto* error = std::get_if<mcp::Message>(&said); error && error->kind == mcp::Message::Kind::kError) {
          answer.error = std::move(error->error);
        }
      }
      answer.partial = reading.body.substr(0, kPartialBytesMax);
      answer.why = absl::StrCat("it answered HTTP status ", reading.head.status);
      return answer;
    }
    if (!end.whole) {
      answer.partial = reading.body.substr(0, kPartialBytesMax);
      answer.why = end.why;
      return answer;
    }
    auto parsed = mcp::ParseMessage(reading.body, mcp::From::kUpstream, limits_.message_bytes_max);
    auto* message = std::get_if<mcp::Message>(&parsed);
    if (message == nullptr || message->id != id) return Garbage(reading.body, "its answer is none to the request");
    if (message->kind == mcp::Message::Kind::kRequest) return Garbage(reading.body, "its answer is a request");
    return AnswerOf(std::move(*message));
  }

  asio::awaitable<void> RunPost(HttpRequest post) {
    HttpEvents events;
    events.head = [](const HttpHead&) { return false; };
    const HttpTimeouts timeouts{.silence = milliseconds(30'000)};
    const HttpEnd end = co_await Converse(target_.url, std::move(post), std::move(events), timeouts, nullptr);
    if (!end.whole) ops::LogWarning("upstream_message_lost", {{"upstream", name_}, {"why", end.why}});
    --posts_;
  }

  asio::awaitable<void> RunListen() {
    std::string last_event_id;
    milliseconds again = kListenAgainFirst;
    while (alive_) {
      Reading reading;
      mcp::SseParser parser(limits_.message_bytes_max);
      reading.last_event_id = last_event_id;
      co_await Converse(target_.url, Get(last_event_id), ReadInto(reading, parser, nullptr), {}, listening_);
      if (!alive_) co_return;
      // A server need not have such a stream (405), and one that no longer knows the session is asked no more.
      if (reading.head.status >= 400 && reading.head.status < 500) co_return;
      again = reading.stream ? kListenAgainFirst : std::min(again * 2, kListenAgainMax);
      last_event_id = reading.last_event_id;
      co_await Sleep(reading.retry.value_or(again));
    }
  }

  void Subscribe(std::string filter) {
    const auto before = std::exchange(listening_, nullptr);
    if (filter.empty()) {
      if (before) before->Now();
      return;
    }
    listening_ = std::make_shared<Hangup>();
    Spawn([this, hangup = listening_, before, filter = std::move(filter)] {
      return RunSubscription(hangup, before, filter);
    });
  }

  // The stream before it ends once this one is there: nothing is missed in between.
  asio::awaitable<void> RunSubscription(std::shared_ptr<Hangup> hangup, std::shared_ptr<Hangup> before,
                                        std::string filter) {
    milliseconds again = kListenAgainFirst;
    while (alive_ && !hangup->done()) {
      OutgoingRequest request;
      request.method = std::string(mcp::method::kListen);
      request.params = mcp::WithEraMeta(absl::StrCat(R"({"notifications":)", filter, "}"));
      HttpRequest post = Post_(mcp::RequestText(absl::StrCat(++last_id_), request.method, request.params));
      AddEraHeaders(request, &post);
      Reading reading;
      mcp::SseParser parser(limits_.message_bytes_max);
      HttpEvents events = ReadInto(reading, parser, nullptr);
      events.head = [head = events.head, before](const HttpHead& response) {
        if (before) before->Now();
        return head(response);
      };
      const auto began = std::chrono::steady_clock::now();
      Listened();
      co_await Converse(target_.url, std::move(post), std::move(events), {}, hangup);
      if (before) before->Now();
      if (!alive_ || hangup->done()) co_return;
      // It has no such stream, or none for this: it is asked no more.
      const int status = reading.head.status;
      if ((status >= 400 && status < 500) || (status == 200 && !reading.stream)) co_return;
      const bool well = std::chrono::steady_clock::now() - began >= kListenedWell;
      again = well ? kListenAgainFirst : std::min(again * 2, kListenAgainMax);
      co_await Sleep(again);
    }
  }

  asio::awaitable<void> Goodbye() {
    const HttpTimeouts timeouts{.connect = kGoodbye, .write = kGoodbye, .silence = kGoodbye};
    co_await Converse(target_.url, Request("DELETE"), {}, timeouts, nullptr);
  }

  asio::awaitable<void> Sleep(milliseconds time) {
    asio::steady_timer timer(loop_, time);
    co_await timer.async_wait(kTuple);
  }

  const asio::any_io_executor loop_;
  const std::string name_;
  const HttpUpstreamTarget target_;
  const UpstreamSink sink_;
  const UpstreamLimits limits_;

  bool alive_ = true;
  std::string session_id_;
  int64_t last_id_ = 0;
  std::list<SharedOpen> open_;
  size_t posts_ = 0;
  std::shared_ptr<Hangup> listening_;
};

}  // namespace

SharedUpstream OpenHttpUpstream(const asio::any_io_executor& loop, std::string name, HttpUpstreamTarget target,
                                UpstreamSink sink, const UpstreamLimits& limits) {
  return std::make_shared<HttpSession>(loop, std::move(name), std::move(target), std::move(sink), limits);
}

}  // namespace tally::gateway
