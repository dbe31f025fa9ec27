#include "gateway/serve.h"

#include <absl/status/status.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "gateway/call/caller.h"
#include "gateway/config/secrets.h"
#include "gateway/front/endpoint.h"
#include "gateway/front/http_server.h"
#include "gateway/front/stdio_front.h"
#include "lib/process/child.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds kSweep{5};
constexpr std::chrono::milliseconds kGoodbye{3'000};  // for upstreams to go

int Failed(const absl::Status& status) {
  std::cerr << "tally-gateway: " << status.message() << " Nothing was started.\n";
  return 1;
}

// A loop that can let go of all that waits on it while what that refers to is still there.
class Loop : public asio::io_context {
 public:
  using asio::io_context::io_context;
  void DropAll() { shutdown(); }
};

// Members in the order in which they depend on each other.
class Gateway {
 public:
  explicit Gateway(const Config& config) : config_(config) {}
  // The loop has stopped. First what has threads of its own, which hand what they held to the loop; then the calls that
  // still wait there, for a late answer for instance, which refer to the caller as long as they live.
  ~Gateway() {
    authority_.reset();
    journal_.reset();
    pins_.reset();
    audit_.reset();
    io_.DropAll();
  }
  Gateway(const Gateway&) = delete;

  absl::Status Open() {
    process::RaiseDescriptorLimit();
    if (const auto level = ops::SeverityOf(config_.log_level)) ops::SetLogLevel(*level);
    auto credential = ReadCredential(config_);
    if (!credential.ok()) return credential.status();
    auto journal = Journal::Open({.path = config_.journal.path, .bytes_max = config_.journal.bytes_max}, loop());
    if (!journal.ok()) return journal.status();
    journal_ = *std::move(journal);
    if (!journal_->notice().empty()) ops::LogWarning("journal", {{"notice", journal_->notice()}});
    auto audit = AuditLog::Open({.path = config_.audit.path,
                                 .file_bytes_max = config_.audit.file_bytes_max,
                                 .files_max = config_.audit.files_max,
                                 .queue_max = static_cast<size_t>(config_.audit.queue_max)});
    if (!audit.ok()) return audit.status();
    audit_ = *std::move(audit);
    if (absl::Status pinned = OpenPins(); !pinned.ok()) return pinned;
    AuthorityOptions options;
    options.endpoint = {config_.tallyd.server, config_.tallyd.ca_file, config_.tallyd.certificate_file,
                        config_.tallyd.key_file};
    options.call = {config_.tallyd.timeout, config_.tallyd.try_timeout};
    options.permit_view_ttl = config_.permit.view_ttl;
    auto authority = Authority::Create(std::move(options), *std::move(credential), loop());
    if (!authority.ok()) return authority.status();
    authority_ = *std::move(authority);
    shared_ = std::make_unique<SharedLinks>(loop(), config_, audit_.get(), pins_.get());
    caller_ = std::make_unique<Caller>(loop(), config_, *authority_, *journal_, *audit_);
    caller_->Recover();
    return absl::OkStatus();
  }

  asio::any_io_executor loop() { return io_.get_executor(); }
  FrontServices services() {
    return {loop(), &config_, caller_.get(), authority_.get(), audit_.get(), pins_.get(), shared_.get()};
  }

  // Until `stop` was called, by a signal or otherwise. `close_front` ends what agents are connected to.
  void Run(std::function<void()> sweep, std::function<void()> stop_taking, std::function<void()> close_front) {
    asio::co_spawn(io_, Signals(), asio::detached);
    asio::co_spawn(io_, Every(std::move(sweep)), asio::detached);
    asio::co_spawn(io_, End(std::move(stop_taking), std::move(close_front)), asio::detached);
    io_.run();
  }
  void Stop() {
    stopping_ = true;
    stop_.cancel();
  }

 private:
  absl::Status OpenPins() {
    const auto& upstreams = config_.upstreams;
    const bool any = std::any_of(upstreams.begin(), upstreams.end(),
                                 [](const auto& upstream) { return upstream.second.pin != Pin::kOff; });
    if (!any) return absl::OkStatus();
    auto pins = PinKeeper::Open(config_.pin_file, audit_.get());
    if (!pins.ok()) return pins.status();
    pins_ = *std::move(pins);
    return absl::OkStatus();
  }

  asio::awaitable<void> Signals() {
    asio::signal_set signals(io_, SIGTERM, SIGINT, SIGHUP);
    while (!stopping_) {
      const auto [error, number] = co_await signals.async_wait(kTuple);
      if (error) co_return;
      if (number == SIGHUP) {
        audit_->Reopen();
        if (pins_) co_await pins_->Refresh();
      } else {
        Stop();
      }
    }
  }

  asio::awaitable<void> Every(std::function<void()> sweep) {
    asio::steady_timer timer(io_);
    while (true) {
      timer.expires_after(kSweep);
      co_await timer.async_wait(kTuple);
      sweep();
    }
  }

  // Calls under way are answered and committed as long as the grace lasts; what is not is in the journal.
  asio::awaitable<void> End(std::function<void()> stop_taking, std::function<void()> close_front) {
    while (!stopping_) co_await stop_.async_wait(kTuple);
    ops::LogInfo("stopping", {{"calls", caller_->open()}});
    caller_->StopTaking();
    stop_taking();
    asio::steady_timer timer(io_);
    const auto until = std::chrono::steady_clock::now() + config_.shutdown_grace;
    while ((caller_->unanswered() > 0 || caller_->unsettled() > 0) && std::chrono::steady_clock::now() < until) {
      timer.expires_after(std::chrono::milliseconds(50));
      co_await timer.async_wait(kTuple);
    }
    close_front();
    shared_->CloseAll();
    timer.expires_after(std::min(kGoodbye, config_.shutdown_grace));
    co_await timer.async_wait(kTuple);
    io_.stop();
  }

  const Config& config_;
  Loop io_{1};
  asio::steady_timer stop_{io_, asio::steady_timer::time_point::max()};
  bool stopping_ = false;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<PinKeeper> pins_;
  std::unique_ptr<Authority> authority_;
  std::unique_ptr<SharedLinks> shared_;
  std::unique_ptr<Caller> caller_;
};

}  // namespace

int ServeHttp(const Config& config) {
  Gateway gateway(config);
  if (const absl::Status opened = gateway.Open(); !opened.ok()) return Failed(opened);
  std::unique_ptr<Endpoint> endpoint;
  auto server = HttpServer::Listen(gateway.loop(), config,
                                   [&endpoint](ClientRequest request) { return endpoint->Handle(std::move(request)); });
  if (!server.ok()) return Failed(server.status());
  endpoint = std::make_unique<Endpoint>(gateway.services(), (*server)->port());
  ops::LogInfo("listening", {{"port", (*server)->port()}, {"path", config.listen.path}});
  gateway.Run([&] { endpoint->Sweep(); }, [&] { (*server)->Stop(); }, [&] { endpoint->CloseAll(); });
  ops::LogInfo("stopped");
  return 0;
}

int ServeStdio(const Config& config) {
  const auto token = ReadStdioPermitToken(config);
  if (!token.ok()) return Failed(token.status());
  Gateway gateway(config);
  if (const absl::Status opened = gateway.Open(); !opened.ok()) return Failed(opened);
  StdioFront front(gateway.services(), token->Expose(), dup(STDIN_FILENO), dup(STDOUT_FILENO),
                   [&gateway] { gateway.Stop(); });
  front.Start();
  gateway.Run([&] { front.Sweep(); }, [] {}, [&] { front.Close(); });
  return 0;
}

}  // namespace tally::gateway
