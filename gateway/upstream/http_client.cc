#include "gateway/upstream/http_client.h"

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tally::gateway {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kHeaderBytesMax = 64 * 1024;
constexpr size_t kReadBytes = 16 * 1024;

http::request<http::string_body> MessageOf(const Url& url, HttpRequest request) {
  http::request<http::string_body> message(http::string_to_verb(request.method), url.target, 11);
  for (const auto& [name, value] : request.headers) message.set(name, value);
  message.set(http::field::host, url.HostHeader());
  message.set(http::field::connection, "close");
  message.body() = std::move(request.body);
  if (message.method() == http::verb::post) message.prepare_payload();
  return message;
}

HttpHead HeadOf(const http::response<http::buffer_body>& response) {
  HttpHead head;
  head.status = static_cast<int>(response.result_int());
  const auto type = response[http::field::content_type];
  head.content_type = absl::AsciiStrToLower(std::string(type.substr(0, type.find(';'))));
  head.content_type = std::string(absl::StripAsciiWhitespace(head.content_type));
  head.session_id = std::string(response["Mcp-Session-Id"]);
  return head;
}

// From the first byte written to the last one read.
template <typename Stream>
asio::awaitable<HttpEnd> Speak(Stream& stream, http::request<http::string_body>& message, const HttpEvents& events,
                               const HttpTimeouts& timeouts) {
  auto& lowest = beast::get_lowest_layer(stream);
  lowest.expires_after(timeouts.write);
  if (events.before_write && !events.before_write()) co_return HttpEnd{false, "not sent"};
  const auto [failed, written] = co_await http::async_write(stream, message, kTuple);
  if (failed) {
    // Under TLS the count says nothing of what went out.
    if (written == 0 && std::is_same_v<Stream, beast::tcp_stream> && events.nothing_written) events.nothing_written();
    co_return HttpEnd{false, absl::StrCat("the request could not be written: ", failed.message())};
  }

  beast::flat_buffer buffer(kHeaderBytesMax + kReadBytes);
  http::response_parser<http::buffer_body> parser;
  parser.header_limit(kHeaderBytesMax);
  parser.body_limit(boost::none);
  lowest.expires_after(timeouts.silence);
  if (const auto [error, n] = co_await http::async_read_header(stream, buffer, parser, kTuple); error) {
    co_return HttpEnd{false, absl::StrCat("no response: ", error.message())};
  }
  if (events.head && !events.head(HeadOf(parser.get()))) co_return HttpEnd{true, ""};

  std::array<char, kReadBytes> piece;
  while (!parser.is_done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    lowest.expires_after(timeouts.silence);
    const auto [error, n] = co_await http::async_read_some(stream, buffer, parser, kTuple);
    const size_t got = piece.size() - parser.get().body().size;
    if (got > 0 && events.body && !events.body(std::string_view(piece.data(), got))) co_return HttpEnd{true, ""};
    if (error && error != http::error::need_buffer) {
      co_return HttpEnd{false, absl::StrCat("the response was cut: ", error.message())};
    }
  }
  co_return HttpEnd{true, ""};
}

std::unique_ptr<asio::ssl::context> MakeTlsContext(const std::string& ca_file) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  error_code failed;
  if (ca_file.empty()) {
    context->set_default_verify_paths(failed);
  } else {
    context->load_verify_file(ca_file, failed);
  }
  if (failed) return nullptr;
  context->set_verify_mode(asio::ssl::verify_peer);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  return context;
}

// Made once for each file; null if it cannot be read. As many as there are upstreams.
asio::ssl::context* TlsContext(const std::string& ca_file) {
  static std::map<std::string, std::unique_ptr<asio::ssl::context>> contexts;
  auto& context = contexts[ca_file];
  if (!context) context = MakeTlsContext(ca_file);
  return context.get();
}

}  // namespace

void Hangup::Now() {
  done_ = true;
  if (close_) close_();
}

// Lets a hang-up reach the socket while there is one.
class HangupScope {
 public:
  HangupScope(std::shared_ptr<Hangup> hangup, std::function<void()> close) : hangup_(std::move(hangup)) {
    if (hangup_) hangup_->close_ = std::move(close);
  }
  ~HangupScope() {
    if (hangup_) hangup_->close_ = nullptr;
  }
  HangupScope(const HangupScope&) = delete;

 private:
  const std::shared_ptr<Hangup> hangup_;
};

asio::awaitable<HttpEnd> Converse(const Url& url, HttpRequest request, HttpEvents events, HttpTimeouts timeouts,
                                  std::shared_ptr<Hangup> hangup) {
  const auto loop = co_await asio::this_coro::executor;
  if (hangup && hangup->done()) co_return HttpEnd{false, "given up"};
  http::request<http::string_body> message = MessageOf(url, std::move(request));
  tcp::resolver resolver(loop);
  beast::tcp_stream plain(loop);
  const HangupScope scope(hangup, [&] {
    resolver.cancel();
    plain.close();
  });

  std::vector<tcp::endpoint> endpoints;
  error_code not_literal;
  if (const auto address = asio::ip::make_address(url.host, not_literal); !not_literal) {
    endpoints.emplace_back(address, static_cast<uint16_t>(std::stoi(url.port)));
  } else {
    const auto [unresolved, found] = co_await resolver.async_resolve(url.host, url.port, kTuple);
    if (unresolved) co_return HttpEnd{false, absl::StrCat("the host has no address: ", unresolved.message())};
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  if (hangup && hangup->done()) co_return HttpEnd{false, "given up"};
  plain.expires_after(timeouts.connect);
  const auto [unconnected, endpoint] = co_await plain.async_connect(endpoints, kTuple);
  if (unconnected) co_return HttpEnd{false, absl::StrCat("no connection: ", unconnected.message())};
  error_code ignored;
  plain.socket().set_option(tcp::no_delay(true), ignored);
  if (!url.tls) co_return co_await Speak(plain, message, events, timeouts);

  asio::ssl::context* const context = TlsContext(url.ca_file);
  if (context == nullptr) co_return HttpEnd{false, "TLS: the authorities' certificates cannot be read"};
  beast::ssl_stream<beast::tcp_stream&> secure(plain, *context);
  secure.set_verify_callback(asio::ssl::host_name_verification(url.host));
  if (!SSL_set_tlsext_host_name(secure.native_handle(), url.host.c_str())) co_return HttpEnd{false, "TLS: no memory"};
  if (const auto [error] = co_await secure.async_handshake(asio::ssl::stream_base::client, kTuple); error) {
    co_return HttpEnd{false, absl::StrCat("TLS: ", error.message())};
  }
  co_return co_await Speak(secure, message, events, timeouts);
}

}  // namespace tally::gateway
