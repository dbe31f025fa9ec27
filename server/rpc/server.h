#ifndef TALLY_SERVER_RPC_SERVER_H_
#define TALLY_SERVER_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/rpc/core.h"

namespace tally::webhook {
class Delivery;
}

namespace tally::rpc {

struct TlsFiles {
  std::string certificate;  // PEM texts, not paths
  std::string key;
  std::string client_ca;  // empty: no client certificates
};

struct ServerOptions {
  std::string socket;  // absolute path; empty: none
  std::string tcp;     // "ADDRESS:PORT", port 0: any that is free; empty: none
  TlsFiles tls;        // needed where tcp is given
  int message_bytes_max = 4 << 20;
  std::string conninfo;  // of the database, for the health check's own connection
  webhook::Delivery* webhooks = nullptr;  // outlives the server; null: there is no service Webhooks
};

// The gRPC service with health and reflection.
class Server {
 public:
  // Serves when it returns. The socket is the owner's alone (0600).
  static absl::StatusOr<std::unique_ptr<Server>> Start(Core& core, const ServerOptions& options);
  ~Server();  // Shutdown(now)

  // As clients name them: "unix:PATH", "ADDRESS:PORT".
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Leads into this server without a socket: its requests are served like any other.
  std::shared_ptr<grpc::Channel> InProcess() { return server_->InProcessChannel({}); }

  // Whether the database answered the last health check.
  bool healthy() const { return healthy_; }

  // Refuses what is new (UNAVAILABLE), finishes what was accepted, and cuts off what is left at `until`. Lanes and
  // workers are drained too: nothing of an RPC runs any more when it returns.
  void Shutdown(std::chrono::steady_clock::time_point until);

 private:
  explicit Server(Core& core) : core_(core) {}
  void WatchHealth(const std::string& conninfo);

  Core& core_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
  std::string socket_;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> healthy_ = false;
  std::thread health_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_SERVER_H_
