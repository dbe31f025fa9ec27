#include "bench/gateway/load.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cmath>
#include <memory>

#include "absl/strings/str_cat.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"

namespace tally::bench {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kAnswerMax{30};
constexpr std::chrono::seconds kReadyMax{120};
constexpr int64_t kFailedMax = 100;  // then the run is given up
constexpr size_t kFailureBytesMax = 500;

struct Run {
  explicit Run(const McpLoadOptions& o) : options(o), timer(loop), run_id(keys::HexEncode(keys::RandomBytes(6))) {}

  const McpLoadOptions& options;
  asio::io_context loop{1};
  asio::steady_timer timer;
  const std::string run_id;  // no argument of another run is met again
  int ready = 0;
  int64_t begun = 0;
  bool going = false, stopping = false;
  Clock::time_point from, until;
  std::vector<float> latencies_ms;
  int64_t failed = 0;
  std::string first_failure;

  void Fail(std::string why) {
    if (failed++ == 0) first_failure = why.substr(0, kFailureBytesMax);
    if (failed >= kFailedMax) stopping = true;
  }
};

class Caller {
 public:
  Caller(Run& run, std::string token) : run_(run), token_(std::move(token)), stream_(run.loop) {}

  asio::awaitable<void> Live() {
    const bool begun = co_await Begin();
    ++run_.ready;
    if (!begun) co_return;
    asio::steady_timer timer(run_.loop);
    while (!run_.going && !run_.stopping) {
      timer.expires_after(std::chrono::milliseconds(1));
      co_await timer.async_wait(kTuple);
    }
    while (!run_.stopping) co_await Call();
    if (!session_.empty()) co_await Exchange(http::verb::delete_, "");
  }

 private:
  asio::awaitable<bool> Begin() {
    static const std::string kInitialize =
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},)"
        R"("clientInfo":{"name":"mcp-load","version":"1"}}})";
    const bool initialized = co_await Exchange(http::verb::post, kInitialize);
    if (!initialized || status_ != 200 || body_.find("serverInfo") == body_.npos) {
      run_.Fail(absl::StrCat("initialize: ", error_, " ", status_, " ", body_));
      co_return false;
    }
    static const std::string kInitialized = R"({"jsonrpc":"2.0","method":"notifications/initialized"})";
    const bool told = co_await Exchange(http::verb::post, kInitialized);
    if (!told) run_.Fail(absl::StrCat("notifications/initialized: ", error_));
    co_return told;
  }

  asio::awaitable<void> Call() {
    const std::string customer = absl::StrCat("cus-", run_.run_id, "-", ++run_.begun);
    const bool tool = run_.options.method == "tools/call";
    const std::string request =
        absl::StrCat(R"({"jsonrpc":"2.0","id":)", run_.begun, R"(,"method":")", run_.options.method,
                     R"(","params":{"name":")", run_.options.name, R"(","arguments":{"customer":")", customer,
                     tool ? R"(","amount":100,"reason":"duplicate"}}})" : R"("}}})");
    const Clock::time_point began = Clock::now();
    const bool answered = co_await Exchange(http::verb::post, request);
    const Clock::time_point ended = Clock::now();
    // The quote after the name: cus-1 is not cus-12.
    if (!answered || status_ != 200 || body_.find(absl::StrCat("refunded ", customer, "\"")) == body_.npos) {
      run_.Fail(absl::StrCat(error_, " ", status_, " ", body_));
    } else if (ended >= run_.from && ended < run_.until) {
      run_.latencies_ms.push_back(std::chrono::duration<float, std::milli>(ended - began).count());
    }
  }

  // False where there was no whole response; the connection is then made anew next time.
  asio::awaitable<bool> Exchange(http::verb verb, const std::string& body) {
    status_ = 0;
    body_.clear();
    error_.clear();
    stream_.expires_after(kAnswerMax);
    if (!stream_.socket().is_open()) {
      const tcp::endpoint server(asio::ip::address_v4::loopback(), run_.options.port);
      const auto [unconnected] = co_await stream_.async_connect(server, kTuple);
      if (unconnected) co_return Cut(unconnected.message());
      stream_.socket().set_option(tcp::no_delay(true));
      buffer_.clear();
    }
    http::request<http::string_body> request(verb, run_.options.path, 11);
    request.set(http::field::host, absl::StrCat("127.0.0.1:", run_.options.port));
    request.set(http::field::content_type, "application/json");
    request.set(http::field::accept, "application/json, text/event-stream");
    if (!token_.empty()) request.set(http::field::authorization, absl::StrCat("Bearer ", token_));
    if (!session_.empty()) request.set("Mcp-Session-Id", session_);
    if (initialized_) request.set("MCP-Protocol-Version", "2025-11-25");
    request.body() = body;
    request.prepare_payload();
    const auto [unwritten, put] = co_await http::async_write(stream_, request, kTuple);
    if (unwritten) co_return Cut(unwritten.message());
    http::response<http::string_body> response;
    const auto [unread, got] = co_await http::async_read(stream_, buffer_, response, kTuple);
    if (unread) co_return Cut(unread.message());
    if (const auto id = response["Mcp-Session-Id"]; !id.empty()) session_ = std::string(id);
    initialized_ = true;
    status_ = response.result_int();
    body_ = std::move(response.body());
    if (!response.keep_alive()) stream_.close();
    co_return true;
  }

  bool Cut(std::string why) {
    error_ = std::move(why);
    stream_.close();
    return false;
  }

  Run& run_;
  const std::string token_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::string session_;
  bool initialized_ = false;
  unsigned status_ = 0;  // of the last response, with its body; or why there was none
  std::string body_, error_;
};

asio::awaitable<void> Conduct(Run& run) {
  const Clock::time_point give_up = Clock::now() + kReadyMax;
  while (run.ready < run.options.callers && Clock::now() < give_up) {
    run.timer.expires_after(std::chrono::milliseconds(5));
    co_await run.timer.async_wait(kTuple);
  }
  if (run.ready < run.options.callers) run.Fail("not all sessions could be opened");
  run.from = Clock::now() + run.options.warm_up;
  run.until = run.from + run.options.window;
  run.going = true;
  while (!run.stopping && Clock::now() < run.until) {
    run.timer.expires_after(std::chrono::milliseconds(20));
    co_await run.timer.async_wait(kTuple);
  }
  run.stopping = true;
}

double Percentile(std::vector<float>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::min(sorted.size(), std::max<size_t>(rank, 1)) - 1];
}

}  // namespace

McpLoadResult RunMcpLoad(const McpLoadOptions& options) {
  Run run(options);
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < options.callers; ++i) {
    const size_t count = options.tokens.size();
    callers.push_back(std::make_unique<Caller>(run, count == 0 ? "" : options.tokens[static_cast<size_t>(i) % count]));
    asio::co_spawn(run.loop, callers.back()->Live(), asio::detached);
  }
  asio::co_spawn(run.loop, Conduct(run), asio::detached);
  run.loop.run();
  McpLoadResult result;
  std::sort(run.latencies_ms.begin(), run.latencies_ms.end());
  result.calls = static_cast<int64_t>(run.latencies_ms.size());
  result.calls_per_s = static_cast<double>(result.calls) / std::chrono::duration<double>(options.window).count();
  result.p50_ms = Percentile(run.latencies_ms, 0.5);
  result.p99_ms = Percentile(run.latencies_ms, 0.99);
  result.failed = run.failed;
  result.first_failure = run.first_failure;
  return result;
}

}  // namespace tally::bench
