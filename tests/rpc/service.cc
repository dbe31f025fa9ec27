#include "tests/rpc/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "lib/keys/hash.h"
#include "server/ledger/calls.h"
#include "server/ledger/migrate.h"
#include "server/ledger/principals.h"
#include "server/rpc/status.h"

namespace tally::test {
namespace {

constexpr std::chrono::seconds kPatience{20};

std::filesystem::path NewFolder() {
  std::string name = "/tmp/tally_rpc_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

std::string NewDatabase() {
  Postgres& postgres = Postgres::Shared();
  postgres.MakeTemplate("tally_rpc", [](const std::string& conninfo) {
    ledger::Connection connection(conninfo);
    if (!ledger::Migrate(connection).ok()) std::abort();
  });
  return postgres.CreateDatabase("tally_rpc");
}

// The same for every service of a program, so that several can share a database.
keys::Sealer TestSealer() { return *keys::Sealer::FromKey(keys::Secret::Copy(std::string(32, 'k'))); }

}  // namespace

std::string Outcome::code() const { return rpc::CodeOf(status); }

Service::Service(Settings settings) : folder_(NewFolder()) {
  conninfo_ = settings.conninfo.empty() ? NewDatabase() : settings.conninfo;
  sealer_ = std::make_unique<keys::Sealer>(TestSealer());
  {
    ledger::Connection connection(conninfo_);
    if (!ledger::EnsureSigningKey(connection, *sealer_, "test.example").ok()) std::abort();
    signer_ = *ledger::LoadSigner(connection, *sealer_);
    admin.credential = ledger::NewApiKey();
    if (settings.conninfo.empty()) {
      if (!*ledger::CreateFirstAdmin(connection, admin.credential)) std::abort();
    } else {
      v1::CreatePrincipalRequest request;
      request.set_role(v1::ADMIN);
      admin.credential = ledger::CreatePrincipal(connection, *signer_, request, "")->credential;
    }
  }
  terms_ = std::make_unique<ledger::TermsCache>(1024);
  secrets_ = std::make_unique<ledger::TenantSecrets>(*sealer_);
  metrics_ = std::make_unique<rpc::Metrics>(registry_);
  lane::LaneOptions lanes;
  lanes.queue_max = settings.lane_queue_max;
  router_ = std::make_unique<lane::Router>(
      2, lanes, [&](int) { return std::make_unique<ledger::CallStore>(conninfo_, *signer_, *terms_); });
  workers_ = std::make_unique<rpc::Workers>(settings.workers, settings.worker_queue_max, conninfo_);
  delivery_ = std::make_unique<webhook::Delivery>(conninfo_, *sealer_, webhook::DeliveryOptions{});
  core_.reset(new rpc::Core{*signer_, *router_, *workers_, *terms_, *secrets_, *metrics_, {}, {}});
  rpc::ServerOptions options;
  options.socket = folder_ / "s";
  options.tcp = settings.tcp;
  options.tls = settings.tls;
  options.conninfo = conninfo_;
  options.webhooks = delivery_.get();
  auto server = rpc::Server::Start(*core_, options);
  if (!server.ok()) {
    ADD_FAILURE() << server.status();
    std::abort();
  }
  server_ = *std::move(server);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetMaxReceiveMessageSize(-1);
  channel_ = grpc::CreateCustomChannel(server_->addresses()[0], grpc::InsecureChannelCredentials(), arguments);
  tenants = v1::Tenants::NewStub(channel_);
  permits = v1::Permits::NewStub(channel_);
  calls = v1::Calls::NewStub(channel_);
  parked = v1::ParkedCalls::NewStub(channel_);
  receipts = v1::Receipts::NewStub(channel_);
  webhooks = v1::Webhooks::NewStub(channel_);
}

Service::~Service() {
  server_.reset();
  delivery_.reset();
  std::filesystem::remove_all(folder_);
}

std::unique_ptr<grpc::ClientContext> Service::Context(const std::string& credential) {
  auto context = std::make_unique<grpc::ClientContext>();
  if (!credential.empty()) context->AddMetadata("authorization", "Bearer " + credential);
  context->set_deadline(std::chrono::system_clock::now() + kPatience);
  context->set_wait_for_ready(true);
  return context;
}

Principal Service::NewPrincipal(const std::string& tenant, v1::Role role, const std::string& certificate_sha256) {
  v1::CreatePrincipalRequest request;
  request.set_tenant(tenant);
  request.set_role(role);
  request.set_certificate_sha256(certificate_sha256);
  v1::CreatePrincipalResponse response;
  const Outcome made = Call(&v1::Tenants::Stub::CreatePrincipal, *tenants, admin, request, response);
  EXPECT_TRUE(made.ok()) << made.status.error_message();
  return {response.principal().principal_id(), response.credential()};
}

const Principal& Service::Of(const std::string& tenant, v1::Role role) {
  if (role == v1::ADMIN) return admin;
  if (!principals_.contains({tenant, role})) {
    v1::CreateTenantRequest request;
    request.set_name(tenant);
    v1::CreateTenantResponse response;
    Call(&v1::Tenants::Stub::CreateTenant, *tenants, admin, request, response);  // may exist
    principals_[{tenant, role}] = NewPrincipal(tenant, role);
  }
  return principals_[{tenant, role}];
}

Outcome Service::Authorize(const Principal& who, const v1::AuthorizeRequest& request, v1::AuthorizeResponse& response) {
  return Call(&v1::Calls::Stub::Authorize, *calls, who, request, response);
}

Outcome Service::Commit(const Principal& who, const v1::CommitRequest& request, v1::CommitResponse& response) {
  return Call(&v1::Calls::Stub::Commit, *calls, who, request, response);
}

v1::MintRequest Service::Terms(const std::string& tenant) const {
  v1::MintRequest request;
  request.set_tenant(tenant);
  request.set_subject("agent-7");
  request.set_unit("USD/2");
  request.mutable_budget()->set_unlimited(true);
  request.set_expires_in_ms(3'600'000);
  v1::GrantTerms& grant = *request.add_grants();
  grant.set_tool("refund");
  grant.mutable_cap()->set_unlimited(true);
  grant.mutable_budget()->set_at_most(1'000'000);
  grant.mutable_cost()->set_pointer("/amount");
  return request;
}

v1::MintResponse Service::Mint(const v1::MintRequest& request) {
  v1::MintResponse response;
  const Outcome minted =
      Call(&v1::Permits::Stub::Mint, *permits, Of(request.tenant(), v1::OPERATOR), request, response);
  EXPECT_TRUE(minted.ok()) << minted.status.error_message();
  return response;
}

v1::AuthorizeRequest Service::Asking(const v1::MintResponse& permit, const std::string& key) {
  v1::AuthorizeRequest request;
  request.set_permit_token(permit.permit_token());
  request.set_key(key);
  request.set_attempt_id(keys::RandomBytes(16));
  request.set_tool("refund");
  request.set_arguments("{\"amount\":5,\"order\":\"" + key + "\"}");
  return request;
}

v1::AuthorizeResponse Service::Granted(const v1::MintResponse& permit, const std::string& key,
                                       const std::string& tenant) {
  v1::AuthorizeResponse response;
  const Outcome outcome = Authorize(Of(tenant, v1::GATEWAY), Asking(permit, key), response);
  EXPECT_TRUE(outcome.ok()) << outcome.status.error_message();
  EXPECT_EQ(response.disposition(), v1::DISPATCH) << response.ShortDebugString();
  return response;
}

}  // namespace tally::test
