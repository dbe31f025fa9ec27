#include "server/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/keys/text.h"
#include "server/ledger/control.h"
#include "server/ops/log.h"
#include "server/rpc/calls.h"
#include "server/rpc/parked_calls.h"
#include "server/rpc/permits.h"
#include "server/rpc/receipts.h"
#include "server/rpc/reports.h"
#include "server/rpc/tenants.h"
#include "server/rpc/webhooks.h"

namespace tally::rpc {
namespace {

constexpr absl::Duration kHealthInterval = absl::Seconds(1);
constexpr size_t kMemoryMax = size_t{512} << 20;  // for messages on their way in
constexpr int kStreamsMax = 4096;                 // RPCs at once on one connection

std::shared_ptr<grpc::ServerCredentials> TlsCredentials(const TlsFiles& tls) {
  grpc::SslServerCredentialsOptions options(tls.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                                  : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
  options.pem_root_certs = tls.client_ca;
  return grpc::SslServerCredentials(options);
}

absl::Status CheckOptions(const ServerOptions& options) {
  if (options.socket.empty() && options.tcp.empty()) {
    return absl::InvalidArgumentError("neither a unix socket nor a TCP address is configured");
  }
  if (!options.tcp.empty() && (options.tls.certificate.empty() || options.tls.key.empty())) {
    return absl::InvalidArgumentError(
        "listening on TCP needs a certificate and its key (tls.certificate, tls.key); plain text is for unix sockets "
        "only");
  }
  if (options.socket.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(keys::Cat("the socket's path has ", options.socket.size(), " bytes; at most ",
                                                sizeof(sockaddr_un::sun_path) - 1, " are possible: ", options.socket));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Core& core, const ServerOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  static const bool once = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)once;

  std::unique_ptr<Server> server(new Server(core));
  grpc::ServerBuilder builder;
  grpc::ResourceQuota quota("tallyd");
  quota.Resize(kMemoryMax);
  builder.SetResourceQuota(quota);
  builder.SetMaxReceiveMessageSize(options.message_bytes_max);
  builder.SetMaxSendMessageSize(-1);  // what is stored can always be read
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsMax);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int tcp_port = 0;
  if (!options.socket.empty()) {
    builder.AddListeningPort("unix:" + options.socket, grpc::InsecureServerCredentials());
  }
  if (!options.tcp.empty()) builder.AddListeningPort(options.tcp, TlsCredentials(options.tls), &tcp_port);
  server->services_.push_back(std::make_unique<Tenants>(core));
  server->services_.push_back(std::make_unique<Permits>(core));
  server->services_.push_back(std::make_unique<Calls>(core));
  server->services_.push_back(std::make_unique<ParkedCalls>(core));
  server->services_.push_back(std::make_unique<Receipts>(core));
  server->services_.push_back(std::make_unique<Reports>(core));
  if (options.webhooks != nullptr) server->services_.push_back(std::make_unique<Webhooks>(core, *options.webhooks));
  for (const auto& service : server->services_) builder.RegisterService(service.get());

  // The socket must not be open to others for a moment either.
  const mode_t mask = umask(0177);
  server->server_ = builder.BuildAndStart();
  umask(mask);
  if (server->server_ == nullptr) {
    return absl::FailedPreconditionError(
        keys::Cat("cannot listen on ", options.socket.empty() ? options.tcp : options.socket,
                  options.tcp.empty() || options.socket.empty() ? "" : keys::Cat(" and ", options.tcp),
                  "; is the address in use, or the certificate unreadable?"));
  }
  if (!options.socket.empty()) {
    chmod(options.socket.c_str(), 0600);
    server->socket_ = options.socket;
    server->addresses_.push_back("unix:" + options.socket);
  }
  if (!options.tcp.empty()) {
    const std::string host = options.tcp.substr(0, options.tcp.rfind(':'));
    server->addresses_.push_back(keys::Cat(host, ":", tcp_port));
  }
  server->health_ = std::thread([raw = server.get(), conninfo = options.conninfo] { raw->WatchHealth(conninfo); });
  return server;
}

Server::~Server() { Shutdown(std::chrono::steady_clock::now()); }

void Server::WatchHealth(const std::string& conninfo) {
  ledger::Connection connection(conninfo);
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  bool known = false;
  while (true) {
    const absl::Status answered = ledger::Read(connection, [](ledger::Tx&) { return absl::OkStatus(); });
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    if (!known || healthy_ != answered.ok()) {
      known = true;
      healthy_ = answered.ok();
      health->SetServingStatus(answered.ok());
      for (const char* name : {"tally.v1.Tenants", "tally.v1.Permits", "tally.v1.Calls", "tally.v1.ParkedCalls",
                               "tally.v1.Receipts", "tally.v1.Reports", "tally.v1.Webhooks"}) {
        health->SetServingStatus(name, answered.ok());
      }
      if (answered.ok()) {
        ops::LogInfo("database_reachable");
      } else {
        ops::LogWarning("database_unreachable");
      }
    }
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kHealthInterval);
    if (stopping_) return;
  }
}

void Server::Shutdown(std::chrono::steady_clock::time_point until) {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  core_.closing = true;
  if (server_ == nullptr) return;
  server_->GetHealthCheckService()->Shutdown();
  // While gRPC waits for the RPCs under way, lanes and workers finish them.
  std::thread drain([this, until] {
    core_.router.Drain(until);
    core_.workers.Drain(until);
  });
  const auto left = until - std::chrono::steady_clock::now();
  server_->Shutdown(std::chrono::system_clock::now() +
                    std::chrono::duration_cast<std::chrono::system_clock::duration>(left));
  server_->Wait();
  drain.join();
  if (health_.joinable()) health_.join();
  if (!socket_.empty()) unlink(socket_.c_str());
}

}  // namespace tally::rpc
