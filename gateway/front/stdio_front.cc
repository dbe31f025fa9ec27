#include "gateway/front/stdio_front.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <map>
#include <utility>
#include <variant>

#include "gateway/front/modern.h"
#include "gateway/front/modern_outlet.h"
#include "gateway/mcp/lines.h"
#include "gateway/mcp/modern.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kReadBytes = 64 * 1024;

}  // namespace

class StdioFront::Channel : public std::enable_shared_from_this<Channel> {
 public:
  Channel(FrontServices services, std::string_view permit_token, int in_fd, int out_fd, std::function<void()> ended)
      : services_(services),
        token_(std::make_shared<const keys::Secret>(keys::Secret::Copy(permit_token))),
        session_(std::make_shared<Session>(services, permit_token)),
        modern_(services),
        in_(services.loop, in_fd),
        out_(services.loop, out_fd),
        to_write_(services.loop, asio::steady_timer::time_point::max()),
        written_(services.loop, asio::steady_timer::time_point::max()),
        ended_(std::move(ended)),
        reader_(static_cast<size_t>(services.config->limits.message_bytes_max)) {}

  void Start() {
    session_->SetGeneral(std::make_shared<LineOutlet>(weak_from_this()));
    auto self = shared_from_this();
    asio::co_spawn(
        services_.loop, [self]() -> asio::awaitable<void> { co_await self->Read(); }, asio::detached);
    asio::co_spawn(
        services_.loop, [self]() -> asio::awaitable<void> { co_await self->Write(); }, asio::detached);
  }

  void Sweep() { modern_.Sweep(); }

  void Close() {
    if (closed_) return;
    closed_ = true;
    session_->Close();
    modern_.CloseAll();
    boost::system::error_code ignored;
    in_.cancel(ignored);
    to_write_.cancel();
    written_.cancel();
    for (Line& line : lines_) {
      if (line.undelivered) line.undelivered();
    }
    lines_.clear();
    if (const auto ended = std::exchange(ended_, nullptr)) ended();
  }

 private:
  struct Line {
    std::string text;
    std::function<void()> undelivered;
  };

  class LineOutlet final : public Outlet {
   public:
    // `finished`: called when the answer is there.
    explicit LineOutlet(std::weak_ptr<Channel> channel, std::function<void()> finished = nullptr)
        : channel_(std::move(channel)), finished_(std::move(finished)) {}
    void Send(std::string message) override {
      if (const auto channel = channel_.lock(); channel && channel->HasRoom()) channel->Queue(message, nullptr);
    }
    void Finish(std::string message, std::function<void()> undelivered) override {
      const auto channel = channel_.lock();
      if (const auto finished = std::exchange(finished_, nullptr)) finished();
      if (channel && !channel->closed_) {
        channel->Queue(message, std::move(undelivered));
      } else if (undelivered) {
        undelivered();
      }
    }
    void End() override {}
    bool read() const override { return !channel_.expired(); }

   private:
    const std::weak_ptr<Channel> channel_;
    std::function<void()> finished_;
  };

  // Without room notifications are left out, and no more is read: a client that does not take its answers gets to say
  // nothing more until it does. Answers are never left out.
  bool HasRoom() const { return waiting_bytes_ <= static_cast<size_t>(services_.config->limits.stream_bytes_max); }

  void Queue(const std::string& message, std::function<void()> undelivered) {
    if (closed_) return;
    lines_.push_back({mcp::JsonLine(message), std::move(undelivered)});
    waiting_bytes_ += lines_.back().text.size();
    to_write_.cancel();
  }

  asio::awaitable<void> Write() {
    while (!closed_) {
      if (lines_.empty()) {
        co_await to_write_.async_wait(kTuple);
        continue;
      }
      const Line line = std::move(lines_.front());
      lines_.pop_front();
      waiting_bytes_ -= line.text.size();
      const auto [error, written] = co_await asio::async_write(out_, asio::buffer(line.text), kTuple);
      written_.cancel();
      if (!error) continue;
      if (line.undelivered) line.undelivered();
      Close();
    }
  }

  asio::awaitable<void> Read() {
    std::string buffer(kReadBytes, '\0');
    while (!closed_) {
      if (!HasRoom()) {
        co_await written_.async_wait(kTuple);
        continue;
      }
      const auto [error, got] = co_await in_.async_read_some(asio::buffer(buffer), kTuple);
      if (error) break;
      std::vector<mcp::Line> lines;
      reader_.Feed(std::string_view(buffer.data(), got), &lines);
      for (const mcp::Line& line : lines) Take(line);
    }
    Close();
  }

  void Take(const mcp::Line& line) {
    auto outlet = std::make_shared<LineOutlet>(weak_from_this());
    if (line.too_long) {
      return outlet->Finish(
          mcp::ErrorText("null", {-32600, "The message is larger than the gateway takes. Nothing was done.", ""}),
          nullptr);
    }
    auto parsed = mcp::ParseMessage(line.text, mcp::From::kClient,
                                    static_cast<size_t>(services_.config->limits.message_bytes_max));
    if (const auto* malformed = std::get_if<mcp::Malformed>(&parsed)) {
      return outlet->Finish(mcp::ErrorText(malformed->id, {malformed->code, malformed->message, ""}), nullptr);
    }
    mcp::Message message = std::get<mcp::Message>(std::move(parsed));
    // Each message says which era it is of; a client may speak both.
    if (mcp::IsModern(message, {}) && message.kind == mcp::Message::Kind::kRequest) return TakeModern(message);
    if (message.method == mcp::notification::kCancelled && CancelModern(message)) return;
    switch (message.kind) {
      case mcp::Message::Kind::kRequest:
        session_->TakeRequest(std::move(message), {}, std::move(outlet));
        return;
      case mcp::Message::Kind::kNotification:
        return session_->TakeNotification(message);
      case mcp::Message::Kind::kResult:
      case mcp::Message::Kind::kError:
        return session_->TakeAnswer(std::move(message));
    }
  }

  // `message` is taken over.
  void TakeModern(mcp::Message& message) {
    if (const auto wrong = mcp::CheckModernBody(message)) return Queue(mcp::ErrorText(message.id, *wrong), nullptr);
    const std::string key = mcp::IdKey(message.id);
    if (modern_open_.contains(key)) {
      return Queue(mcp::ErrorText(message.id, {mcp::code::kInvalidRequest,
                                               "A request with this id is still open. Nothing was done.", ""}),
                   nullptr);
    }
    modern_open_[key] = nullptr;
    auto self = shared_from_this();
    asio::co_spawn(
        services_.loop,
        [self, key, request = std::move(message)]() mutable -> asio::awaitable<void> {
          co_await self->AnswerModern(std::move(key), std::move(request));
        },
        asio::detached);
  }

  asio::awaitable<void> AnswerModern(std::string key, mcp::Message message) {
    auto line = std::make_shared<LineOutlet>(weak_from_this(), [weak = weak_from_this(), key] {
      if (const auto channel = weak.lock()) channel->modern_open_.erase(key);
    });
    SharedOutlet outlet = std::make_shared<ModernOutlet>(line, message);
    std::vector<std::string> no_headers;
    std::string token(token_->Expose());
    ModernAnswer answer =
        co_await modern_.Take(std::move(token), std::move(message), std::move(no_headers), std::move(outlet));
    if (!answer.body.empty()) line->Finish(std::move(answer.body), nullptr);
    const auto open = modern_open_.find(key);
    if (open == modern_open_.end()) {
      // Answered, or cancelled before there was anything to cancel.
      if (answer.cancel) answer.cancel();
    } else {
      open->second = std::move(answer.cancel);
    }
  }

  // False: it is for the older era's session.
  bool CancelModern(const mcp::Message& notification) {
    const auto params = mcp::RawObject::Parse(notification.params);
    const std::string_view* id = params.ok() ? params->Find("requestId") : nullptr;
    if (id == nullptr || !(mcp::StringOf(*id) || mcp::IntegerOf(*id))) return false;
    const auto found = modern_open_.find(mcp::IdKey(*id));
    if (found == modern_open_.end()) return false;
    const std::function<void()> cancel = std::move(found->second);
    modern_open_.erase(found);
    if (cancel) cancel();
    return true;
  }

  const FrontServices services_;
  const std::shared_ptr<const keys::Secret> token_;
  const SharedSession session_;
  Modern modern_;
  std::map<std::string, std::function<void()>> modern_open_;  // what cancels it, by id
  asio::posix::stream_descriptor in_;
  asio::posix::stream_descriptor out_;
  asio::steady_timer to_write_;
  asio::steady_timer written_;
  std::function<void()> ended_;
  mcp::LineReader reader_;
  std::deque<Line> lines_;
  size_t waiting_bytes_ = 0;
  bool closed_ = false;
};

StdioFront::StdioFront(FrontServices services, std::string_view permit_token, int in_fd, int out_fd,
                       std::function<void()> ended)
    : channel_(std::make_shared<Channel>(std::move(services), permit_token, in_fd, out_fd, std::move(ended))) {}
StdioFront::~StdioFront() { channel_->Close(); }

void StdioFront::Start() { channel_->Start(); }
void StdioFront::Sweep() { channel_->Sweep(); }
void StdioFront::Close() { channel_->Close(); }

}  // namespace tally::gateway
