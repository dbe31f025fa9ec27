#include "server/ops/http.h"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "lib/keys/text.h"

namespace tally::ops {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;

constexpr int kConnectionsMax = 256;
constexpr size_t kHeaderBytesMax = 8192;
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::seconds kBodyPatience{30};

absl::StatusOr<tcp::endpoint> Endpoint(const std::string& address) {
  const absl::Status wrong =
      absl::FailedPreconditionError(keys::Cat("listen.http: \"", address, "\" is not ADDRESS:PORT"));
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return wrong;
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  uint16_t port = 0;
  const char* const end = address.data() + address.size();
  const auto [stopped, error] = std::from_chars(address.data() + colon + 1, end, port);
  boost::system::error_code ec;
  const auto ip = asio::ip::make_address(host, ec);
  if (ec || error != std::errc() || stopped != end) return wrong;
  return tcp::endpoint(ip, port);
}

using Parser = http::request_parser<http::string_body>;

std::string PathOf(const Parser& parser) {
  const std::string_view target(parser.get().target().data(), parser.get().target().size());
  return std::string(target.substr(0, target.find('?')));
}

// Of a body whose length was told beforehand; 0 of any other.
uint64_t DeclaredLength(const Parser& parser) {
  const auto text = parser.get()[http::field::content_length];
  uint64_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  return length;
}

HttpAnswer Fetched(const HttpServer::Handlers& handlers, const Parser& parser) {
  if (parser.get().method() != http::verb::get && parser.get().method() != http::verb::head) {
    return {405, "text/plain; charset=utf-8", "This is not answered here.\n"};
  }
  const auto handler = handlers.find(PathOf(parser));
  if (handler == handlers.end()) return {404, "text/plain; charset=utf-8", "There is nothing here.\n"};
  return handler->second();
}

}  // namespace

struct HttpServer::Running : std::enable_shared_from_this<HttpServer::Running> {
  Running(Handlers wanted, Posts taken, Slow awaited)
      : handlers(std::move(wanted)), posts(std::move(taken)), slow(std::move(awaited)) {}

  asio::awaitable<void> Accept() {
    while (true) {
      tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
      if (connections >= kConnectionsMax) continue;  // closed at once
      ++connections;
      asio::co_spawn(context, Serve(std::move(socket)), asio::detached);
    }
  }

  using Time = asio::steady_timer::time_point;

  // Asks, and waits for the answer, at most until then. It may come on another thread, or when this server is gone: it
  // finds the waiting coroutine only through what both hold.
  asio::awaitable<std::optional<HttpAnswer>> Awaited(std::function<void(Answer)> ask, Time until) {
    struct Waiting {
      Waiting(asio::io_context& context, Time end) : timer(context, end) {}
      asio::steady_timer timer;
      std::optional<HttpAnswer> answer;
    };
    auto waiting = std::make_shared<Waiting>(context, until);
    std::weak_ptr<Running> server = weak_from_this();
    ask([server, weak = std::weak_ptr(waiting)](HttpAnswer answer) {
      const std::shared_ptr<Running> alive = server.lock();
      if (alive == nullptr) return;
      asio::post(alive->context, [weak, answer = std::move(answer)]() mutable {
        const auto there = weak.lock();
        if (there == nullptr) return;
        there->answer = std::move(answer);
        there->timer.cancel();
      });
    });
    boost::system::error_code ended;
    while (!waiting->answer && Time::clock::now() < until) {
      co_await waiting->timer.async_wait(asio::redirect_error(asio::use_awaitable, ended));
    }
    co_return std::move(waiting->answer);
  }

  asio::awaitable<HttpAnswer> FetchedSlowly(const HttpSlow& get) {
    std::optional<HttpAnswer> answer = co_await Awaited(get.handler, Time::clock::now() + get.patience);
    co_return answer ? *std::move(answer) : get.too_late();
  }

  asio::awaitable<HttpAnswer> AnswerTo(beast::tcp_stream& stream, beast::flat_buffer& buffer, Parser& parser) {
    if (parser.get().method() != http::verb::post || posts.handler == nullptr) {
      // A body that nobody asked for is not read; the connection ends after the answer.
      if (!parser.is_done()) parser.get().keep_alive(false);
      const http::verb verb = parser.get().method();
      const auto found = slow.find(PathOf(parser));
      if (found == slow.end() || (verb != http::verb::get && verb != http::verb::head)) {
        co_return Fetched(handlers, parser);
      }
      stream.expires_never();
      co_return co_await FetchedSlowly(found->second);
    }
    if (DeclaredLength(parser) > posts.body_max) {
      parser.get().keep_alive(false);
      co_return posts.too_large;
    }
    parser.body_limit(posts.body_max);
    stream.expires_after(kBodyPatience);
    beast::error_code error;
    co_await http::async_read(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, error));
    if (error == http::error::body_limit) {
      parser.get().keep_alive(false);
      co_return posts.too_large;
    }
    if (error) throw boost::system::system_error(error);
    stream.expires_never();
    http::request<http::string_body>& request = parser.get();
    const auto header = [&request](auto name) {
      const auto value = request[name];
      return std::string(value.data(), value.size());
    };
    // Made apart: g++ 12 destroys a temporary aggregate inside a co_await twice.
    HttpPost post{.path = PathOf(parser),
                  .content_type = header(http::field::content_type),
                  .content_encoding = header(http::field::content_encoding),
                  .authorization = header(http::field::authorization),
                  .timeout = header("Connect-Timeout-Ms"),
                  .body = std::move(request.body())};
    std::function<void(Answer)> ask = [this, &post](const Answer& answer) { posts.handler(std::move(post), answer); };
    std::optional<HttpAnswer> answer = co_await Awaited(std::move(ask), Time::max());
    co_return *std::move(answer);
  }

  asio::awaitable<void> Serve(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    try {
      bool keep = true;
      while (keep) {
        Parser parser;
        parser.header_limit(kHeaderBytesMax);
        parser.body_limit(boost::none);  // judged once it is known what is asked for
        stream.expires_after(kPatience);
        co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
        HttpAnswer answer = co_await AnswerTo(stream, buffer, parser);
        const http::request<http::string_body>& request = parser.get();
        http::response<http::string_body> response(static_cast<http::status>(answer.status), request.version());
        response.set(http::field::content_type, answer.content_type);
        response.set(http::field::cache_control, "no-store");
        response.keep_alive(request.keep_alive());
        response.content_length(answer.body.size());
        if (request.method() != http::verb::head) response.body() = std::move(answer.body);
        keep = request.keep_alive();
        stream.expires_after(kPatience);
        http::response_serializer<http::string_body> serializer(response);
        if (request.method() == http::verb::head) {
          co_await http::async_write_header(stream, serializer, asio::use_awaitable);
        } else {
          co_await http::async_write(stream, serializer, asio::use_awaitable);
        }
      }
    } catch (const boost::system::system_error&) {
      // Gone, too slow, or not HTTP: whoever it was hears no more.
    }
    beast::error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
    --connections;
  }

  const Handlers handlers;
  const Posts posts;
  const Slow slow;
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  int connections = 0;  // the server's thread only
  std::string address;
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Handlers handlers,
                                                              Posts posts, Slow slow) {
  const absl::StatusOr<tcp::endpoint> endpoint = Endpoint(address);
  if (!endpoint.ok()) return endpoint.status();
  auto running = std::make_shared<Running>(std::move(handlers), std::move(posts), std::move(slow));
  try {
    running->acceptor.open(endpoint->protocol());
    running->acceptor.set_option(tcp::acceptor::reuse_address(true));
    running->acceptor.bind(*endpoint);
    running->acceptor.listen();
  } catch (const boost::system::system_error& error) {
    return absl::FailedPreconditionError(
        keys::Cat("listen.http: ", address, " cannot be listened on: ", error.code().message()));
  }
  running->address = keys::Cat(address.substr(0, address.rfind(':')), ":", running->acceptor.local_endpoint().port());
  asio::co_spawn(running->context, running->Accept(), asio::detached);
  running->thread = std::thread([raw = running.get()] { raw->context.run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(running)));
}

bool HttpServer::IsLoopback(const std::string& address) {
  const absl::StatusOr<tcp::endpoint> endpoint = Endpoint(address);
  return endpoint.ok() && endpoint->address().is_loopback();
}

HttpServer::HttpServer(std::shared_ptr<Running> running) : running_(std::move(running)) {}

HttpServer::~HttpServer() {
  running_->context.stop();
  running_->thread.join();
}

const std::string& HttpServer::address() const { return running_->address; }

}  // namespace tally::ops
