#include "gateway/front/http_server.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "gateway/mcp/sse.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;
using tcp = asio::ip::tcp;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr milliseconds kKeepAlive{15'000};
constexpr milliseconds kSlowReader{30'000};
constexpr size_t kFirstBytes = 4096;
constexpr milliseconds kIdleConnection{120'000};

// Whether the other side has closed its end.
bool GoneAway(tcp::socket& socket) {
  char byte;
  const ssize_t got = recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// RFC 9112 6.3: where a body ends that is coded otherwise, or twice, nobody can tell, and so not what stands behind it.
template <typename Message>
bool LengthIsCertain(const Message& message) {
  const auto [begin, end] = message.equal_range(http::field::transfer_encoding);
  return begin == end || (std::next(begin) == end && beast::iequals(begin->value(), "chunked"));
}

ClientRequest RequestOf(http::request<http::string_body> message) {
  ClientRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  request.path = target.substr(0, target.find('?'));
  for (const auto& field : message) {
    request.headers.emplace(absl::AsciiStrToLower(std::string(field.name_string())), std::string(field.value()));
  }
  request.body = std::move(message.body());
  return request;
}

struct Shared {
  asio::any_io_executor loop;
  const Config& config;
  ClientHandler handler;
  bool stopping = false;
  int connections = 0;
};

constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 70\r\n\r\n"
    "The gateway has as many connections as it may have. Nothing was done.\n";

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Shared> shared, tcp::socket socket)
      : shared_(std::move(shared)), stream_(std::move(socket)) {
    ++shared_->connections;
  }
  ~Connection() { --shared_->connections; }

  asio::awaitable<void> Run() {
    const auto& limits = shared_->config.limits;
    beast::flat_buffer buffer(static_cast<size_t>(limits.header_bytes_max) + 64 * 1024);
    while (!shared_->stopping) {
      // A kept connection may idle; once its first byte is there, the whole request must come in time.
      if (buffer.size() == 0) {
        stream_.expires_after(kIdleConnection);
        const auto [ended, begun] = co_await stream_.async_read_some(buffer.prepare(kFirstBytes), kTuple);
        if (ended) co_return;
        buffer.commit(begun);
      }
      http::request_parser<http::string_body> parser;
      parser.header_limit(static_cast<uint32_t>(limits.header_bytes_max));
      parser.body_limit(static_cast<uint64_t>(limits.message_bytes_max));
      stream_.expires_after(limits.request_timeout);
      const auto [error, got] = co_await http::async_read_header(stream_, buffer, parser, kTuple);
      if (error) {
        co_await RefuseHeader(error);
        co_return;
      }
      if (!LengthIsCertain(parser.get())) {
        co_await RefuseHeader(http::error::bad_transfer_encoding);
        co_return;
      }
      if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        co_await asio::async_write(stream_, asio::buffer(kContinue), kTuple);
      }
      if (const auto [cut, more] = co_await http::async_read(stream_, buffer, parser, kTuple); cut) {
        co_await RefuseBody(cut);
        co_return;
      }
      keep_alive_ = parser.get().keep_alive();
      head_only_ = parser.get().method() == http::verb::head;
      ClientRequest request = RequestOf(parser.release());
      ClientReply reply = co_await shared_->handler(std::move(request));
      bool whole = false;
      if (reply.stream) {
        whole = co_await WriteStream(reply);
      } else {
        whole = co_await WriteReply(reply);
      }
      if (!whole || !keep_alive_) break;
    }
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

 private:
  asio::awaitable<void> RefuseHeader(error_code error) {
    if (error == http::error::end_of_stream || error == beast::error::timeout) co_return;
    if (error == http::error::body_limit) {
      co_await RefuseBody(error);
      co_return;
    }
    keep_alive_ = false;
    ClientReply reply;
    reply.status = error == http::error::header_limit || error == http::error::buffer_overflow ? 431 : 400;
    reply.content_type = "text/plain";
    reply.body = "This is no HTTP request that the gateway takes. Nothing was done.\n";
    co_await WriteReply(reply);
  }

  asio::awaitable<void> RefuseBody(error_code error) {
    if (error != http::error::body_limit) co_return;
    keep_alive_ = false;
    ClientReply reply;
    reply.status = 413;
    reply.content_type = "text/plain";
    reply.body = "The message is larger than the gateway takes. Nothing was done.\n";
    co_await WriteReply(reply);
  }

  std::string Head(const ClientReply& reply, int status, std::string_view rest) const {
    std::string head = absl::StrCat("HTTP/1.1 ", status, " ",
                                    std::string(http::obsolete_reason(static_cast<http::status>(status))), "\r\n");
    for (const auto& [name, value] : reply.headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
    if (!keep_alive_) absl::StrAppend(&head, "Connection: close\r\n");
    absl::StrAppend(&head, std::string(rest), "\r\n");
    return head;
  }

  asio::awaitable<bool> Write(std::string text) {
    stream_.expires_after(kSlowReader);
    const auto [error, written] = co_await asio::async_write(stream_, asio::buffer(text), kTuple);
    co_return !error;
  }

  asio::awaitable<bool> WriteReply(const ClientReply& reply) {
    std::string rest;
    if (!reply.body.empty()) absl::StrAppend(&rest, "Content-Type: ", reply.content_type, "\r\n");
    absl::StrAppend(&rest, "Content-Length: ", reply.body.size(), "\r\n");
    // g++ 12 destroys a conditional's temporary twice inside co_await; so texts are whole before it, here and below.
    std::string text = Head(reply, reply.status, rest);
    if (!head_only_) text += reply.body;
    co_return co_await Write(std::move(text));
  }

  // The stream's answer as one JSON body.
  asio::awaitable<bool> WriteJson(const ClientReply& reply, uint64_t reader, const EventStream::Event* answer) {
    if (answer == nullptr) {
      // Nothing will come: the request was cancelled.
      ClientReply nothing;
      nothing.status = 202;
      nothing.headers = reply.headers;
      reply.stream->Detach(reader);
      co_return co_await WriteReply(nothing);
    }
    const std::string rest =
        absl::StrCat("Content-Type: application/json\r\nContent-Length: ", answer->message.size(), "\r\n");
    std::string text = Head(reply, reply.stream->status(), rest) + answer->message;
    bool whole = !GoneAway(stream_.socket());
    if (whole) whole = co_await Write(std::move(text));
    if (whole) reply.stream->DeliveredForGood();
    reply.stream->Detach(reader);
    co_return whole;
  }

  static std::string Chunk(std::string_view text) {
    return absl::StrCat(absl::Hex(text.size()), "\r\n", std::string(text), "\r\n");
  }

  // Wakes the stream's reader when the client has gone.
  void Watch(const std::shared_ptr<EventStream>& events, std::function<void()> hung_up) {
    watching_ = true;
    const uint64_t watch = ++watch_;
    stream_.socket().async_wait(tcp::socket::wait_read,
                                [self = shared_from_this(), watch, events, hung_up](error_code error) {
                                  if (watch != self->watch_) return;
                                  self->watching_ = false;
                                  if (error || !GoneAway(self->stream_.socket())) return;
                                  self->gone_ = true;
                                  events->Wake();
                                  if (hung_up && !events->ended()) hung_up();
                                });
  }

  asio::awaitable<bool> WriteStream(const ClientReply& reply) {
    const std::shared_ptr<EventStream> events = reply.stream;
    const uint64_t reader = events->Attach();
    stream_.expires_never();
    gone_ = false;
    // With the client gone there is nobody to answer, and in the newer era that is its way to cancel.
    if (reply.hung_up || !reply.json) Watch(events, reply.hung_up);
    const auto quick_until = std::chrono::steady_clock::now() + (reply.events ? reply.quick : milliseconds(86'400'000));
    while (reply.json && !events->ended() && !gone_ && events->Attached(reader) &&
           (!reply.events || events->After(reply.after) == nullptr)) {
      const auto left = std::chrono::duration_cast<milliseconds>(quick_until - std::chrono::steady_clock::now());
      if (left.count() <= 0) break;
      co_await events->Wait(left);
    }
    if (reply.json && events->ended() && !gone_) {
      const EventStream::Event* answer = events->Answer();
      const EventStream::Event* first = events->After(reply.after);
      if (!reply.events || first == answer) {
        StopWatching();
        co_return co_await WriteJson(reply, reader, answer);
      }
    }
    bool whole = !gone_;
    if (whole) whole = co_await WriteEvents(reply, reader);
    events->Detach(reader);
    StopWatching();
    co_return whole;
  }

  void StopWatching() {
    error_code ignored;
    if (watching_) stream_.socket().cancel(ignored);
    watching_ = false;
    ++watch_;
  }

  asio::awaitable<bool> WriteEvents(const ClientReply& reply, uint64_t reader) {
    const std::shared_ptr<EventStream> events = reply.stream;
    static constexpr std::string_view kHead =
        "Content-Type: text/event-stream\r\nCache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n"
        "Transfer-Encoding: chunked\r\n";
    std::string begin = Head(reply, 200, kHead);
    if (reply.priming) begin += Chunk(mcp::SsePriming(absl::StrCat(reply.event_prefix, reply.after)));
    if (!co_await Write(std::move(begin))) co_return false;
    stream_.expires_never();
    if (!watching_) Watch(events, reply.hung_up);
    uint64_t after = reply.after;
    while (events->Attached(reader) && !gone_ && !(shared_->stopping && events->general())) {
      const EventStream::Event* event = events->After(after);
      if (event == nullptr) {
        if (events->ended()) break;
        const auto before = std::chrono::steady_clock::now();
        co_await events->Wait(kKeepAlive);
        const bool silent = std::chrono::steady_clock::now() - before >= kKeepAlive;
        if (!silent || gone_) continue;
        std::string alive = Chunk(mcp::kSseKeepAlive);
        if (!co_await Write(std::move(alive))) co_return false;
        stream_.expires_never();
        continue;
      }
      after = event->number;
      const std::string id = reply.event_prefix.empty() ? "" : absl::StrCat(reply.event_prefix, after);
      const bool answer = events->ended() && event == events->Answer();
      std::string text = Chunk(mcp::SseText({id, "message", event->message}));
      if (!co_await Write(std::move(text))) co_return false;
      stream_.expires_never();
      if (answer && !GoneAway(stream_.socket())) events->Delivered();
    }
    if (gone_) co_return false;
    std::string end = "0\r\n\r\n";
    co_return co_await Write(std::move(end));
  }

  const std::shared_ptr<Shared> shared_;
  beast::tcp_stream stream_;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool watching_ = false;
  uint64_t watch_ = 0;
  bool gone_ = false;
};

class Server final : public HttpServer {
 public:
  Server(std::shared_ptr<Shared> shared, tcp::acceptor acceptor)
      : shared_(std::move(shared)), acceptor_(std::make_shared<tcp::acceptor>(std::move(acceptor))) {}
  ~Server() override { Stop(); }

  uint16_t port() const override { return acceptor_->local_endpoint().port(); }

  void Start() { asio::co_spawn(shared_->loop, Accept(shared_, acceptor_), asio::detached); }

  void Stop() override {
    shared_->stopping = true;
    error_code ignored;
    acceptor_->close(ignored);
  }

 private:
  static asio::awaitable<void> Accept(std::shared_ptr<Shared> shared, std::shared_ptr<tcp::acceptor> acceptor) {
    asio::steady_timer timer(shared->loop);
    while (!shared->stopping) {
      auto [error, socket] = co_await acceptor->async_accept(kTuple);
      if (shared->stopping) co_return;
      if (error) {
        // Out of descriptors: those who are served leave some free in time.
        ops::LogWarning("accept_failed", {{"why", error.message()}});
        timer.expires_after(milliseconds(100));
        co_await timer.async_wait(kTuple);
        continue;
      }
      error_code ignored;
      if (shared->connections >= shared->config.limits.connections_max) {
        // As much as the socket takes at once: whoever is one too many is not waited for.
        socket.non_blocking(true, ignored);
        socket.write_some(asio::buffer(kTooMany), ignored);
        socket.shutdown(tcp::socket::shutdown_send, ignored);
        continue;
      }
      socket.set_option(tcp::no_delay(true), ignored);
      auto connection = std::make_shared<Connection>(shared, std::move(socket));
      asio::co_spawn(
          shared->loop, [connection]() -> asio::awaitable<void> { co_await connection->Run(); }, asio::detached);
    }
  }

  const std::shared_ptr<Shared> shared_;
  const std::shared_ptr<tcp::acceptor> acceptor_;
};

}  // namespace

std::optional<std::string> ClientRequest::Header(std::string_view lower_case_name) const {
  const auto [begin, end] = headers.equal_range(std::string(lower_case_name));
  if (begin == end || std::next(begin) != end) return std::nullopt;
  return begin->second;
}

std::vector<std::string> ClientRequest::Headers(std::string_view lower_case_name) const {
  std::vector<std::string> values;
  const auto [begin, end] = headers.equal_range(std::string(lower_case_name));
  for (auto header = begin; header != end; ++header) values.push_back(header->second);
  return values;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Listen(asio::any_io_executor loop, const Config& config,
                                                               ClientHandler handler) {
  const auto address = ParseListenAddress(config.listen.address);
  if (!address.ok()) return address.status();
  error_code error;
  const auto ip = asio::ip::make_address(address->host, error);
  if (error) return absl::InvalidArgumentError(absl::StrCat("listen.address: ", error.message()));
  const tcp::endpoint endpoint(ip, address->port);
  tcp::acceptor acceptor(loop);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", config.listen.address, ": ", error.message(), ". Nothing was started."));
  }
  auto shared = std::make_shared<Shared>(Shared{std::move(loop), config, std::move(handler)});
  auto server = std::make_unique<Server>(std::move(shared), std::move(acceptor));
  server->Start();
  return server;
}

}  // namespace tally::gateway
