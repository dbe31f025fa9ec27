// The whole service in this process, on a database of its own: real lanes, real PostgreSQL, a real socket.
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/registry.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "lib/keys/sealed.h"
#include "server/lane/router.h"
#include "server/rpc/server.h"
#include "server/webhook/delivery.h"
#include "tally/v1/calls.grpc.pb.h"
#include "tally/v1/parked.grpc.pb.h"
#include "tally/v1/permits.grpc.pb.h"
#include "tally/v1/receipts.grpc.pb.h"
#include "tally/v1/tenants.grpc.pb.h"
#include "tally/v1/webhooks.grpc.pb.h"
#include "tests/support/postgres/postgres.h"

namespace tally::test {

struct Settings {
  int workers = 2;
  size_t worker_queue_max = 256;
  size_t lane_queue_max = 1024;
  std::string tcp = {};
  rpc::TlsFiles tls = {};
  std::string conninfo = {};  // empty: a new database
};

// Who a client is.
struct Principal {
  std::string id;
  std::string credential;
};

// What a client got.
struct Outcome {
  grpc::Status status;
  bool ok() const { return status.ok(); }
  std::string code() const;  // ErrorInfo.reason
};

class Service {
 public:
  explicit Service(Settings settings = {});
  ~Service();

  const std::string& conninfo() const { return conninfo_; }
  rpc::Server& server() { return *server_; }
  rpc::Core& core() { return *core_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }

  Principal admin;
  // Makes tenant and principals of every role on first use.
  const Principal& Of(const std::string& tenant, v1::Role role);
  Principal NewPrincipal(const std::string& tenant, v1::Role role, const std::string& certificate_sha256 = "");

  // Every call as `who`, ended by a deadline.
  static std::unique_ptr<grpc::ClientContext> Context(const std::string& credential);

  Outcome Authorize(const Principal& who, const v1::AuthorizeRequest& request, v1::AuthorizeResponse& response);
  Outcome Commit(const Principal& who, const v1::CommitRequest& request, v1::CommitResponse& response);

  // A permit of one grant on tool `refund`, cost by the caller's /amount.
  v1::MintRequest Terms(const std::string& tenant) const;
  v1::MintResponse Mint(const v1::MintRequest& request);

  // A request that will be granted, with a new attempt id.
  static v1::AuthorizeRequest Asking(const v1::MintResponse& permit, const std::string& key);
  // Grants, and returns the call.
  v1::AuthorizeResponse Granted(const v1::MintResponse& permit, const std::string& key,
                                const std::string& tenant = "acme");

  std::unique_ptr<v1::Tenants::Stub> tenants;
  std::unique_ptr<v1::Permits::Stub> permits;
  std::unique_ptr<v1::Calls::Stub> calls;
  std::unique_ptr<v1::ParkedCalls::Stub> parked;
  std::unique_ptr<v1::Receipts::Stub> receipts;
  std::unique_ptr<v1::Webhooks::Stub> webhooks;

 private:
  std::filesystem::path folder_;
  std::string conninfo_;
  std::unique_ptr<keys::Sealer> sealer_;
  std::unique_ptr<keys::Signer> signer_;
  std::unique_ptr<ledger::TermsCache> terms_;
  std::unique_ptr<ledger::TenantSecrets> secrets_;
  prometheus::Registry registry_;
  std::unique_ptr<rpc::Metrics> metrics_;
  std::unique_ptr<lane::Router> router_;
  std::unique_ptr<rpc::Workers> workers_;
  std::unique_ptr<webhook::Delivery> delivery_;
  std::unique_ptr<rpc::Core> core_;
  std::unique_ptr<rpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::map<std::pair<std::string, v1::Role>, Principal> principals_;
};

// Of one call, as a stub's method: Call(&v1::Permits::Stub::Get, *stub, who, request, response).
template <typename Stub, typename Request, typename Response>
Outcome Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*), Stub& stub,
             const Principal& who, const Request& request, Response& response) {
  const auto context = Service::Context(who.credential);
  return {(stub.*method)(context.get(), request, &response)};
}

}  // namespace tally::test
