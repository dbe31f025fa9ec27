#include "reconciler/serve.h"

#include <prometheus/text_serializer.h>
#include <signal.h>

#include <iostream>

#include "lib/keys/text.h"
#include "reconciler/config/secrets.h"
#include "reconciler/engine/engine.h"
#include "reconciler/lookup/make.h"
#include "server/ops/http.h"
#include "server/ops/log.h"

namespace tally::reconciler {
namespace {

int Failed(const absl::Status& status) {
  std::cerr << "tally-reconciler: " << status.message() << ". Nothing was started.\n";
  return 1;
}

absl::StatusOr<std::unique_ptr<ops::HttpServer>> Observe(const std::string& address, Metrics& metrics,
                                                         const Engine& engine) {
  ops::HttpServer::Handlers handlers;
  handlers["/metrics"] = [&metrics] {
    return ops::HttpAnswer{200, "text/plain; version=0.0.4; charset=utf-8",
                           prometheus::TextSerializer().Serialize(metrics.registry().Collect())};
  };
  handlers["/healthz"] = [&engine] {
    if (engine.Healthy()) return ops::HttpAnswer{200, "application/json", "{\"status\":\"ok\"}\n"};
    return ops::HttpAnswer{503, "application/json",
                           "{\"status\":\"unavailable\",\"reason\":\"tallyd does not answer\"}\n"};
  };
  return ops::HttpServer::Start(address, std::move(handlers));
}

}  // namespace

absl::StatusOr<std::unique_ptr<client::Client>> OpenTallyd(const Config& config) {
  auto credential = ReadCredential(config);
  if (!credential.ok()) return credential.status();
  return client::Client::Create({.server = config.tallyd.server,
                                 .ca_file = config.tallyd.ca_file,
                                 .certificate_file = config.tallyd.certificate_file,
                                 .key_file = config.tallyd.key_file},
                                *std::move(credential));
}

absl::StatusOr<Work::LookUps> MakeLookUps(const Config& config, client::Client& tallyd, gateway::AuditLog* audit) {
  Work::LookUps look_ups;
  const LookUpServices services{.tallyd = &tallyd, .folder = config.folder, .audit = audit};
  for (const ToolConfig& tool : config.tools) {
    auto look_up = MakeLookUp(tool, config.Provider(tool.provider), services);
    if (!look_up.ok()) {
      return absl::Status(look_up.status().code(),
                          keys::Cat("look-up of ", tool.tool, ": ", look_up.status().message()));
    }
    if (*look_up != nullptr) look_ups[tool.tool] = *std::move(look_up);
  }
  return look_ups;
}

int Serve(const Config& config) {
  // Blocked before any thread is started, so that they all leave them to sigwait below.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  if (const auto level = ops::SeverityOf(config.log_level)) ops::SetLogLevel(*level);

  const auto tallyd = OpenTallyd(config);
  if (!tallyd.ok()) return Failed(tallyd.status());
  const auto audit = OpenAudit(config);
  if (!audit.ok()) return Failed(audit.status());
  auto look_ups = MakeLookUps(config, **tallyd, audit->get());
  if (!look_ups.ok()) return Failed(look_ups.status());
  Metrics metrics;
  Work work(config, **tallyd, *std::move(look_ups), metrics);
  Engine engine(config, **tallyd, work, metrics);
  std::unique_ptr<ops::HttpServer> http;
  if (!config.reconciler.metrics.empty()) {
    auto server = Observe(config.reconciler.metrics, metrics, engine);
    if (!server.ok()) return Failed(server.status());
    http = *std::move(server);
    ops::LogInfo("listening", {{"metrics", http->address()}});
  }
  engine.Start();
  ops::LogInfo("started", {{"tools", config.tools.size()}, {"workers", config.reconciler.workers}});
  int signal = 0;
  while (sigwait(&ends, &signal) == 0 && signal == SIGHUP) {
    if (*audit != nullptr) (*audit)->Reopen();
  }
  ops::LogInfo("stopping");
  engine.Stop();
  ops::LogInfo("stopped");
  return 0;
}

}  // namespace tally::reconciler
