#include "server/ops/http.h"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
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

HttpAnswer Answer(const HttpServer::Handlers& handlers, const http::request<http::empty_body>& request) {
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    return {405, "text/plain; charset=utf-8", "Only GET and HEAD are answered here.\n"};
  }
  const std::string_view target(request.target().data(), request.target().size());
  const auto handler = handlers.find(std::string(target.substr(0, target.find('?'))));
  if (handler == handlers.end()) return {404, "text/plain; charset=utf-8", "There is nothing here.\n"};
  return handler->second();
}

}  // namespace

struct HttpServer::Running {
  explicit Running(Handlers wanted) : handlers(std::move(wanted)) {}

  asio::awaitable<void> Accept() {
    while (true) {
      tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
      if (connections >= kConnectionsMax) continue;  // closed at once
      ++connections;
      asio::co_spawn(context, Serve(std::move(socket)), asio::detached);
    }
  }

  asio::awaitable<void> Serve(tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer;
    try {
      bool keep = true;
      while (keep) {
        http::request_parser<http::empty_body> parser;
        parser.header_limit(kHeaderBytesMax);
        stream.expires_after(kPatience);
        co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
        const http::request<http::empty_body>& request = parser.get();
        HttpAnswer answer = Answer(handlers, request);
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
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  int connections = 0;  // the server's thread only
  std::string address;
  std::thread thread;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, Handlers handlers) {
  const absl::StatusOr<tcp::endpoint> endpoint = Endpoint(address);
  if (!endpoint.ok()) return endpoint.status();
  auto running = std::make_unique<Running>(std::move(handlers));
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

HttpServer::HttpServer(std::unique_ptr<Running> running) : running_(std::move(running)) {}

HttpServer::~HttpServer() {
  running_->context.stop();
  running_->thread.join();
}

const std::string& HttpServer::address() const { return running_->address; }

}  // namespace tally::ops
