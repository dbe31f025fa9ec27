#include <fcntl.h>
#include <prometheus/registry.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "lib/keys/private_file.h"
#include "lib/keys/sealed.h"
#include "lib/keys/text.h"
#include "server/connect/connect.h"
#include "server/lane/router.h"
#include "server/lane/sweeper.h"
#include "server/ledger/calls.h"
#include "server/ledger/keystore.h"
#include "server/ops/config.h"
#include "server/ops/log.h"
#include "server/rpc/server.h"
#include "server/tallyd/commands.h"
#include "server/tallyd/database.h"
#include "server/tallyd/figure_families.h"
#include "server/tallyd/observe.h"
#include "server/webhook/delivery.h"

namespace tally::tallyd {
namespace {

constexpr size_t kTermsMax = 16384;
constexpr size_t kWorkerQueueMax = 1024;
constexpr int kSweepMax = 256;
constexpr std::chrono::seconds kSweepPatience{30};

// Two tallyd on one data directory would take each other's socket. Held until this process ends.
absl::Status LockFolder(const std::string& data_dir) {
  const std::string path = data_dir + "/tallyd.lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return absl::FailedPreconditionError(keys::Cat(path, ": ", std::strerror(errno)));
  if (flock(file, LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  close(file);
  return absl::FailedPreconditionError(keys::Cat(
      "another tallyd serves ", data_dir, " already. Nothing was done; stop it, or use another data directory."));
}

absl::Status ReadTls(const ops::Config& config, rpc::TlsFiles& tls) {
  if (config.listen.tcp.empty()) return absl::OkStatus();
  auto text = [](const std::string& path, std::string& into) {
    if (path.empty()) return absl::OkStatus();
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    const int file = error ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return absl::FailedPreconditionError(keys::Cat(path, " cannot be read"));
    into.resize(std::min<size_t>(size, 1 << 20));
    const ssize_t got = read(file, into.data(), into.size());
    close(file);
    if (got < 0) return absl::FailedPreconditionError(keys::Cat(path, " cannot be read"));
    into.resize(static_cast<size_t>(got));
    return absl::OkStatus();
  };
  absl::Status status = text(config.tls.certificate, tls.certificate);
  if (status.ok()) status = text(config.tls.client_ca, tls.client_ca);
  if (!status.ok()) return status;
  const auto key = keys::ReadPrivateFile(config.tls.key);
  if (!key.ok()) return key.status();
  tls.key = std::string(key->Expose());
  return absl::OkStatus();
}

// What the database says may quote values, so only the names of things are logged.
void LogFailure(std::string_view event, const ledger::TxResult& result) {
  ops::LogError(event, {{"sqlstate", result.sqlstate}, {"constraint", result.constraint}});
}

lane::Sweeper::Find FindLapsed(ledger::Connection& connection) {
  return [&connection] {
    std::vector<decide::Id> calls;
    const ledger::TxResult result = ledger::FindLapsed(connection, kSweepMax, &calls);
    if (!result.ok()) throw std::runtime_error("the database did not answer the sweeper");
    std::vector<std::unique_ptr<lane::Job>> jobs;
    for (const decide::Id& call : calls) {
      jobs.push_back(std::make_unique<ledger::CallJob>(
          ledger::ShardOf(call), lane::Priority::kReport, lane::Job::Clock::now() + kSweepPatience,
          decide::SweepRequest{call}, ledger::Bodies{}, [](lane::Fate, ledger::Reply&) {}));
    }
    return jobs;
  };
}

// Credentials come in plain text there, so only from this machine.
ops::HttpServer::Posts RpcsByHttp(const ops::Config& config, connect::Connect& connect) {
  ops::HttpServer::Posts posts;
  posts.body_max = static_cast<size_t>(config.message_bytes_max);
  posts.too_large = connect::TooLarge(posts.body_max);
  if (ops::HttpServer::IsLoopback(config.listen.http)) {
    posts.handler = [&connect](ops::HttpPost post, const ops::HttpServer::Answer& answer) {
      connect.Handle(std::move(post), answer);
    };
  } else {
    posts.handler = [](const ops::HttpPost&, const ops::HttpServer::Answer& answer) {
      answer(connect::OnlyOnLoopback());
    };
  }
  return posts;
}

webhook::DeliveryOptions DeliveryOptionsOf(const ops::Config::Webhooks& config) {
  return {.send = {.timeout = config.timeout, .allow_private = config.allow_private, .allow_http = config.allow_http},
          .retry_first = config.retry_first,
          .retry_longest = config.retry_longest,
          .give_up_after = config.give_up_after};
}

// Waits for SIGTERM or SIGINT, which every thread blocks, and meanwhile keeps a private database running.
void AwaitSignal(const sigset_t& signals, Database& database) {
  const timespec second{1, 0};
  bool down = false;
  while (sigtimedwait(&signals, nullptr, &second) < 0) {
    const absl::Status running = database.KeepRunning();
    if (!running.ok() && !down) ops::LogError("private_postgres_down", {{"why", std::string(running.message())}});
    down = !running.ok();
  }
}

// A second signal does not wait for anything.
void ExitOnNextSignal(sigset_t signals) {
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    ops::LogWarning("killed",
                    {{"note", "a second signal: calls under way were cut off, their attempts keep their leases"}});
    _exit(1);
  }).detach();
}

}  // namespace

absl::Status Serve(const std::string& data_dir) {
  std::error_code error;
  const std::string folder = std::filesystem::absolute(data_dir, error).string();
  if (error) return absl::InvalidArgumentError(keys::Cat(data_dir, ": ", error.message()));
  auto config = ops::LoadConfig(folder);
  if (!config.ok()) return config.status();
  ops::SetLogLevel(config->log_level);
  auto kek = ops::ReadKeyEncryptionKey(*config);
  if (!kek.ok()) return kek.status();
  auto sealer = keys::Sealer::FromKey(*std::move(kek));
  if (!sealer.ok()) return sealer.status();
  rpc::ServerOptions options{.socket = config->listen.socket,
                             .tcp = config->listen.tcp,
                             .tls = {},
                             .message_bytes_max = config->message_bytes_max,
                             .conninfo = {},
                             .webhooks = nullptr};
  if (absl::Status status = ReadTls(*config, options.tls); !status.ok()) return status;
  if (absl::Status status = LockFolder(folder); !status.ok()) return status;

  // Before any thread is started, so that all of them inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  auto database = Database::Open(*config, folder);
  if (!database.ok()) return database.status();
  const std::string& conninfo = options.conninfo = database->conninfo();
  const auto loaded = ledger::OpenSigner(conninfo, *sealer);
  if (!loaded.ok()) return loaded.status();
  const keys::Signer& signer = **loaded;

  ledger::TermsCache terms(kTermsMax);
  ledger::TenantSecrets secrets(*sealer);
  prometheus::Registry registry;
  rpc::Metrics metrics(registry);
  const lane::LaneOptions lanes{.batch_max = static_cast<size_t>(config->lanes.batch_max),
                                .queue_max = static_cast<size_t>(config->lanes.queue_max)};
  lane::Router router(config->lanes.count, lanes, [&](int) {
    return std::make_unique<ledger::CallStore>(
        conninfo, signer, terms, [](const ledger::TxResult& result) { LogFailure("batch_failed", result); });
  });
  rpc::Workers workers(config->control_workers, kWorkerQueueMax, conninfo);
  rpc::Core core{signer, router, workers, terms, secrets, metrics, {}, {}};
  webhook::Delivery delivery(conninfo, *sealer, DeliveryOptionsOf(config->webhooks));
  options.webhooks = &delivery;
  auto server = rpc::Server::Start(core, options);
  if (!server.ok()) return server.status();
  ledger::Connection sweeping(conninfo);
  lane::Sweeper sweeper(config->sweep_interval, FindLapsed(sweeping),
                        [&](std::unique_ptr<lane::Job> job) { router.Submit(std::move(job)); });

  connect::Connect connect((*server)->InProcess());
  ledger::Connection counting(conninfo);
  std::unique_ptr<Figures> figures;
  std::unique_ptr<ops::HttpServer> http;
  if (!config->listen.http.empty()) {
    figures = std::make_unique<Figures>([&counting] { return ledger::ReadFigures(counting, kFigureTenantsMax); });
    auto observing = Observe(
        config->listen.http, registry, router, *figures, [raw = server->get()] { return raw->healthy(); },
        RpcsByHttp(*config, connect));
    if (!observing.ok()) return observing.status();
    http = *std::move(observing);
    ops::LogInfo("listening", {{"address", "http://" + http->address()}});
    std::cout << "metrics on http://" << http->address() << "/metrics" << std::endl;
  }
  for (const std::string& address : (*server)->addresses()) {
    ops::LogInfo("listening", {{"address", address}});
    std::cout << "listening on " << address << std::endl;
  }
  AwaitSignal(signals, *database);
  ExitOnNextSignal(signals);
  ops::LogInfo("stopping", {{"grace_ms", static_cast<int64_t>(config->shutdown_grace.count())}});
  sweeper.Stop();
  (*server)->Shutdown(std::chrono::steady_clock::now() + config->shutdown_grace);
  delivery.Stop();
  ops::LogInfo("stopped");
  return database->Stop();
}

}  // namespace tally::tallyd
