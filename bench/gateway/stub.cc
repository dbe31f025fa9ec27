// An MCP server that does next to nothing, so that what stands before it is measured: revision 2025-11-25, one tool and
// one prompt, both named refund, which say whom they heard of. On stdin and stdout, or over HTTP without sessions.
#include <CLI/CLI.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <iostream>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gateway/mcp/message.h"
#include "gateway/mcp/raw.h"

namespace tally::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kBytesMax = 1 << 20;

constexpr char kInitialized[] =
    R"({"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"stub","version":"1"}})";
constexpr char kTools[] =
    R"({"tools":[{"name":"refund","description":"Pays money back.","inputSchema":{"type":"object","properties":{)"
    R"("customer":{"type":"string"},"amount":{"type":"integer"},"reason":{"type":"string"}}}}]})";
constexpr char kPrompts[] = R"({"prompts":[{"name":"refund","arguments":[{"name":"customer"}]}]})";

// params.arguments.customer, raw.
std::string CustomerOf(const std::string& params) {
  const auto outer = mcp::RawObject::Parse(params);
  const std::string_view* arguments = outer.ok() ? outer->Find("arguments") : nullptr;
  if (arguments == nullptr) return "nobody";
  const auto inner = mcp::RawObject::Parse(*arguments);
  const std::string_view* customer = inner.ok() ? inner->Find("customer") : nullptr;
  return customer != nullptr ? mcp::StringOf(*customer).value_or("nobody") : "nobody";
}

// Empty: nothing is to be answered.
std::string Answer(std::string_view text) {
  const auto parsed = mcp::ParseMessage(text, mcp::From::kUpstream, kBytesMax);
  if (const auto* malformed = std::get_if<mcp::Malformed>(&parsed)) {
    return mcp::ErrorText(malformed->id, {malformed->code, malformed->message, ""});
  }
  const auto& message = std::get<mcp::Message>(parsed);
  if (message.kind != mcp::Message::Kind::kRequest) return "";
  if (message.method == "initialize") return mcp::ResultText(message.id, kInitialized);
  if (message.method == "ping") return mcp::ResultText(message.id, "{}");
  if (message.method == "tools/list") return mcp::ResultText(message.id, kTools);
  if (message.method == "prompts/list") return mcp::ResultText(message.id, kPrompts);
  if (message.method != "tools/call" && message.method != "prompts/get") {
    return mcp::ErrorText(message.id, {-32601, "no such method", ""});
  }
  const std::string content =
      absl::StrCat(R"({"type":"text","text":)", mcp::Quote(absl::StrCat("refunded ", CustomerOf(message.params))), "}");
  return mcp::ResultText(message.id, message.method == "tools/call"
                                         ? absl::StrCat(R"({"content":[)", content, "]}")
                                         : absl::StrCat(R"({"messages":[{"role":"user","content":)", content, "}]}"));
}

int ServeStdio() {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    if (const std::string answer = Answer(line); !answer.empty()) std::cout << answer << '\n' << std::flush;
  }
  return 0;
}

asio::awaitable<void> Serve(tcp::socket socket) {
  boost::beast::tcp_stream stream(std::move(socket));
  boost::beast::flat_buffer buffer;
  while (true) {
    http::request<http::string_body> request;
    const auto [unread, got] = co_await http::async_read(stream, buffer, request, kTuple);
    if (unread) co_return;
    http::response<http::string_body> response(http::status::ok, 11);
    response.keep_alive(request.keep_alive());
    if (request.method() != http::verb::post) {
      response.result(http::status::method_not_allowed);
    } else {
      response.body() = Answer(request.body());
      response.result(response.body().empty() ? http::status::accepted : http::status::ok);
      response.set(http::field::content_type, "application/json");
    }
    response.prepare_payload();
    const auto [unwritten, put] = co_await http::async_write(stream, response, kTuple);
    if (unwritten || !request.keep_alive()) co_return;
  }
}

asio::awaitable<void> Accept(tcp::acceptor& acceptor) {
  while (true) {
    auto [error, socket] = co_await acceptor.async_accept(kTuple);
    if (error) continue;
    socket.set_option(tcp::no_delay(true));
    asio::co_spawn(acceptor.get_executor(), Serve(std::move(socket)), asio::detached);
  }
}

int ServeHttp() {
  asio::io_context loop(1);
  tcp::acceptor acceptor(loop, {asio::ip::address_v4::loopback(), 0});
  std::cout << "http://127.0.0.1:" << acceptor.local_endpoint().port() << "/mcp" << std::endl;
  asio::co_spawn(loop, Accept(acceptor), asio::detached);
  loop.run();
  return 0;
}

}  // namespace
}  // namespace tally::bench

int main(int argc, char** argv) {
  CLI::App app("An MCP server that does next to nothing, for measuring what stands before it.");
  bool over_http = false;
  app.add_flag("--http", over_http, "serve on a free loopback port, and print its url");
  CLI11_PARSE(app, argc, argv);
  return over_http ? tally::bench::ServeHttp() : tally::bench::ServeStdio();
}
