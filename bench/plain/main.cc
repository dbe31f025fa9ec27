#include <prometheus/registry.h>
#include <pthread.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "bench/plain/pool.h"
#include "lib/keys/sealed.h"
#include "server/ledger/keystore.h"
#include "server/ops/config.h"
#include "server/ops/log.h"
#include "server/rpc/server.h"

// tally-plain: what tallyd would be without lanes and batches. The same RPC layer, decisions, tables and receipts; each
// Authorize and Commit is an interactive transaction of its own on one of `--pool` connections.
namespace tally::plain {
namespace {

constexpr size_t kTermsMax = 16384;
constexpr size_t kWorkerQueueMax = 1024;

absl::Status Serve(const std::string& data_dir, int connections) {
  const auto config = ops::LoadConfig(std::filesystem::absolute(data_dir).string());
  if (!config.ok()) return config.status();
  ops::SetLogLevel(config->log_level);
  if (config->database_url.empty()) return absl::InvalidArgumentError("TALLY_DATABASE_URL is not set");
  auto kek = ops::ReadKeyEncryptionKey(*config);
  if (!kek.ok()) return kek.status();
  const auto sealer = keys::Sealer::FromKey(*std::move(kek));
  if (!sealer.ok()) return sealer.status();

  // Before any thread is started, so that all of them inherit it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  const std::string conninfo(config->database_url.Expose());
  const auto loaded = ledger::OpenSigner(conninfo, *sealer);
  if (!loaded.ok()) return loaded.status();
  const keys::Signer& signer = **loaded;
  ledger::TermsCache terms(kTermsMax);
  ledger::TenantSecrets secrets(*sealer);
  prometheus::Registry registry;
  rpc::Metrics metrics(registry);
  Pool pool(connections, conninfo, signer, terms, [](const ledger::TxResult& result) {
    ops::LogError("request_failed", {{"sqlstate", result.sqlstate}, {"constraint", result.constraint}});
  });
  rpc::Workers workers(config->control_workers, kWorkerQueueMax, conninfo);
  rpc::Core core{signer, pool, workers, terms, secrets, metrics, {}, {}};
  rpc::ServerOptions options;
  options.socket = config->listen.socket;
  options.conninfo = conninfo;
  const auto server = rpc::Server::Start(core, options);
  if (!server.ok()) return server.status();
  std::cout << "listening on unix:" << options.socket << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  (*server)->Shutdown(std::chrono::steady_clock::now() + config->shutdown_grace);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tally::plain

int main(int argc, char** argv) {
  tally::keys::EnsureSodium();
  std::string data_dir;
  int connections = 8;
  CLI::App app("tallyd's work done the plain way, to be compared with it.", "tally-plain");
  app.add_option("--data-dir", data_dir, "tallyd's data directory")->required();
  app.add_option("--pool", connections, "connections to the database")->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = tally::plain::Serve(data_dir, connections);
  if (status.ok()) return 0;
  std::cerr << "tally-plain: " << status.message() << "\n";
  return 1;
}
