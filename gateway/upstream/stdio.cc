#include "gateway/upstream/stdio.h"

#include <signal.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <unordered_map>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gateway/mcp/lines.h"
#include "gateway/mcp/modern.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using std::chrono::milliseconds;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr milliseconds kPatience{2'000};         // after closing stdin, and again after SIGTERM
constexpr milliseconds kLastWordsPatience{500};  // what a dead process had written may still be on the way
constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kStderrBytesMax = 256 * 1024;  // of one process, in the log
constexpr size_t kStderrLineMax = 1024;

class StdioSession final : public UpstreamSession {
 public:
  StdioSession(const asio::any_io_executor& loop, std::string name, const process::Child& child, UpstreamSink sink,
               const UpstreamLimits& limits)
      : loop_(loop),
        name_(std::move(name)),
        limits_(limits),
        sink_(std::move(sink)),
        pid_(child.pid),
        in_(loop, child.stdin_fd),
        out_(loop, child.stdout_fd),
        err_(loop, child.stderr_fd),
        ended_(loop, child.pid_fd),
        to_write_(loop),
        read_all_(loop),
        lines_(limits.message_bytes_max) {
    boost::system::error_code ignored;
    in_.non_blocking(true, ignored);
    to_write_.expires_at(asio::steady_timer::time_point::max());
    read_all_.expires_at(asio::steady_timer::time_point::max());
  }

  // At the gateway's own end there is no time left to ask again; nobody's process stays behind.
  ~StdioSession() override {
    if (!reaped_) process::SignalGroup(pid_, SIGKILL);
  }

  void Start() {
    Spawn(&StdioSession::Write);
    Spawn(&StdioSession::Read);
    Spawn(&StdioSession::ReadErrors);
    Spawn(&StdioSession::Watch);
  }

  SharedExchange Send(OutgoingRequest request) override {
    auto exchange = std::make_shared<Exchange>(loop_, std::move(request.gate));
    if (!alive_) {
      exchange->FinishWithNothing("the upstream's process has ended");
      return exchange;
    }
    const int64_t id = ++last_id_;
    if (mcp::version::IsModern(version())) request.params = mcp::WithEraMeta(request.params, request.capabilities);
    std::string line = mcp::JsonLine(mcp::RequestText(absl::StrCat(id), request.method, request.params));
    if (open_.size() >= limits_.open_requests_max || waiting_bytes_ + line.size() > limits_.waiting_bytes_max) {
      exchange->FinishWithNothing("the upstream takes nothing more");
      return exchange;
    }
    open_.emplace(id, exchange);
    Queue(std::move(line), exchange);
    return exchange;
  }

  void Post(std::string message) override {
    if (alive_ && waiting_bytes_ + message.size() <= limits_.waiting_bytes_max) Queue(mcp::JsonLine(message), nullptr);
  }

  std::string IdOf(const SharedExchange& exchange) const override {
    for (const auto& [id, open] : open_) {
      if (open == exchange) return absl::StrCat(id);
    }
    return "";
  }

  void Forget(const SharedExchange& exchange) override {
    exchange->Abandon();
    std::erase_if(open_, [&](const auto& entry) { return entry.second == exchange; });
  }

  void Listen(std::string filter) override {
    if (!alive_ || !mcp::version::IsModern(version())) return;
    const int64_t before = std::exchange(subscription_, 0);
    if (!filter.empty()) {
      subscription_ = ++last_id_;
      const std::string params = mcp::WithEraMeta(absl::StrCat(R"({"notifications":)", filter, "}"));
      Post(mcp::RequestText(absl::StrCat(subscription_), mcp::method::kListen, params));
      Listened();
    }
    if (before == 0) return;
    Post(mcp::NotificationText(mcp::notification::kCancelled, absl::StrCat(R"({"requestId":)", before, "}")));
  }
  bool alive() const override { return alive_; }

  void Close() override {
    if (closing_) return;
    closing_ = true;
    Die("the session was closed");
    Spawn(&StdioSession::Stop);
  }

 private:
  struct Outgoing {
    std::string line;
    SharedExchange exchange;  // null: a message that nobody waits for
  };

  // The coroutine keeps this session.
  void Spawn(asio::awaitable<void> (StdioSession::*body)()) {
    auto self = std::static_pointer_cast<StdioSession>(shared_from_this());
    asio::co_spawn(
        loop_, [self, body]() -> asio::awaitable<void> { co_await ((*self).*body)(); }, asio::detached);
  }

  void Queue(std::string line, SharedExchange exchange) {
    waiting_bytes_ += line.size();
    outgoing_.push_back({std::move(line), std::move(exchange)});
    to_write_.cancel();
  }

  asio::awaitable<void> Write() {
    while (alive_) {
      if (outgoing_.empty()) {
        co_await to_write_.async_wait(kTuple);
        continue;
      }
      // Room first. A full pipe may stay so for longer than a send window lasts, and after the gate there must be no
      // wait.
      co_await in_.async_wait(asio::posix::stream_descriptor::wait_write, kTuple);
      if (!alive_ || outgoing_.empty()) continue;
      const Outgoing next = std::move(outgoing_.front());
      outgoing_.pop_front();
      waiting_bytes_ -= next.line.size();
      if (next.exchange && !next.exchange->OpenGate()) {
        Forget(next.exchange);
        continue;
      }
      boost::system::error_code error;
      size_t written = in_.write_some(asio::buffer(next.line), error);
      const bool no_room = error == asio::error::would_block;
      if (!error && written < next.line.size()) {
        const asio::const_buffer rest = asio::buffer(next.line) + written;
        const auto [failed, more] = co_await asio::async_write(in_, rest, kTuple);
        error = failed;
        written += more;
      }
      if (!error) continue;
      if (next.exchange && written == 0) next.exchange->NothingWritten();
      if (next.exchange) next.exchange->FinishWithNothing("the request could not be written");
      if (!no_room) Die("the upstream's process takes no input");
    }
    boost::system::error_code ignored;
    in_.close(ignored);
  }

  asio::awaitable<void> Read() {
    std::string buffer(kReadBytes, '\0');
    while (true) {
      const auto [error, got] = co_await out_.async_read_some(asio::buffer(buffer), kTuple);
      if (error) break;
      std::vector<mcp::Line> lines;
      lines_.Feed(std::string_view(buffer.data(), got), &lines);
      for (const mcp::Line& line : lines) line.too_long ? TakeTooLong() : TakeLine(line.text);
    }
    read_ = true;
    read_all_.cancel();
    Die("the upstream's process closed its output");
    Close();
  }

  void TakeLine(std::string_view line) {
    if (!alive_) return;
    auto parsed = mcp::ParseMessage(line, mcp::From::kUpstream, limits_.message_bytes_max);
    if (const auto* malformed = std::get_if<mcp::Malformed>(&parsed)) {
      ops::LogWarning("upstream_line_is_no_message", {{"upstream", name_}, {"error", malformed->message}});
      UpstreamAnswer garbage;
      garbage.how = mcp::Reply::How::kGarbage;
      garbage.partial = line.substr(0, kPartialBytesMax);
      garbage.why = "its answer is no JSON-RPC message";
      if (const auto id = mcp::IntegerOf(malformed->id)) Answer(*id, std::move(garbage));
      return;
    }
    mcp::Message& message = std::get<mcp::Message>(parsed);
    using Kind = mcp::Message::Kind;
    if (message.kind == Kind::kRequest || message.kind == Kind::kNotification) {
      sink_(message, nullptr);
      return;
    }
    const auto id = mcp::IntegerOf(message.id);
    if (id) Answer(*id, AnswerOf(std::move(message)));
  }

  // A line over the limit was skipped. Whose answer it was is known only where one alone is awaited.
  void TakeTooLong() {
    ops::LogWarning("upstream_line_is_too_long", {{"upstream", name_}, {"bytes_max", limits_.message_bytes_max}});
    if (open_.size() != 1) return;
    UpstreamAnswer garbage;
    garbage.how = mcp::Reply::How::kGarbage;
    garbage.why = "its answer is larger than the gateway takes";
    Answer(open_.begin()->first, std::move(garbage));
  }

  void Answer(int64_t id, UpstreamAnswer answer) {
    const auto found = open_.find(id);
    if (found == open_.end()) return;
    const SharedExchange exchange = found->second;
    // An answer to what was never written is a guess at ids by the upstream.
    if (!exchange->written()) return;
    open_.erase(found);
    exchange->Finish(std::move(answer));
  }

  asio::awaitable<void> ReadErrors() {
    mcp::LineReader reader(kStderrLineMax);
    std::array<char, 4096> buffer;
    size_t logged = 0;
    while (true) {
      const auto [error, got] = co_await err_.async_read_some(asio::buffer(buffer), kTuple);
      if (error) co_return;
      // It is read to the end even when no more is logged: a full pipe would stop the process.
      if (logged > kStderrBytesMax) continue;
      logged += got;
      std::vector<mcp::Line> lines;
      reader.Feed(std::string_view(buffer.data(), got), &lines);
      for (const mcp::Line& line : lines) ops::LogInfo("upstream_stderr", {{"upstream", name_}, {"line", line.text}});
      if (logged > kStderrBytesMax) ops::LogWarning("upstream_stderr_no_longer_logged", {{"upstream", name_}});
    }
  }

  asio::awaitable<void> Watch() {
    co_await ended_.async_wait(asio::posix::stream_descriptor::wait_read, kTuple);
    if (!read_) {
      read_all_.expires_after(kLastWordsPatience);
      co_await read_all_.async_wait(kTuple);
    }
    reaped_ = process::Reap(pid_);
    Die("the upstream's process has ended");
    Close();
    boost::system::error_code ignored;
    out_.close(ignored);
    err_.close(ignored);
    ended_.close(ignored);
  }

  asio::awaitable<void> Stop() {
    boost::system::error_code ignored;
    if (outgoing_.empty()) in_.close(ignored);
    asio::steady_timer timer(loop_);
    for (const int signal : {SIGTERM, SIGKILL}) {
      for (int i = 0; i < 20 && !reaped_; ++i) {
        timer.expires_after(kPatience / 20);
        co_await timer.async_wait(kTuple);
      }
      if (reaped_) co_return;
      process::SignalGroup(pid_, signal);
      in_.close(ignored);
    }
  }

  void Die(const std::string& why) {
    if (!alive_) return;
    alive_ = false;
    if (!closing_) ops::LogWarning("upstream_ended", {{"upstream", name_}, {"why", why}});
    to_write_.cancel();
    outgoing_.clear();
    waiting_bytes_ = 0;
    const auto open = std::move(open_);
    open_.clear();
    for (const auto& [id, exchange] : open) exchange->FinishWithNothing(why);
  }

  const asio::any_io_executor loop_;
  const std::string name_;
  const UpstreamLimits limits_;
  const UpstreamSink sink_;

  const pid_t pid_;
  asio::posix::stream_descriptor in_;
  asio::posix::stream_descriptor out_;
  asio::posix::stream_descriptor err_;
  asio::posix::stream_descriptor ended_;
  bool alive_ = true;
  bool closing_ = false;
  bool reaped_ = false;

  asio::steady_timer to_write_;
  std::deque<Outgoing> outgoing_;
  size_t waiting_bytes_ = 0;

  asio::steady_timer read_all_;
  bool read_ = false;
  mcp::LineReader lines_;

  int64_t last_id_ = 0;
  int64_t subscription_ = 0;  // 2026-07-28: the id of the subscriptions/listen that stands; 0: none
  std::unordered_map<int64_t, SharedExchange> open_;
};

}  // namespace

absl::StatusOr<SharedUpstream> StartStdioUpstream(const asio::any_io_executor& loop, std::string name,
                                                  const process::Command& command, UpstreamSink sink,
                                                  const UpstreamLimits& limits) {
  absl::StatusOr<process::Child> child = process::StartChild(command);
  if (!child.ok()) return child.status();
  auto session = std::make_shared<StdioSession>(loop, std::move(name), *child, std::move(sink), limits);
  session->Start();
  return session;
}

}  // namespace tally::gateway
