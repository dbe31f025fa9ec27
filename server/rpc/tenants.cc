#include "server/rpc/tenants.h"

#include "absl/strings/ascii.h"
#include "server/ledger/ids.h"
#include "server/ledger/principals.h"
#include "server/ledger/tenants.h"
#include "server/rpc/checks.h"
#include "server/rpc/exchange.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

constexpr size_t kTenantBytesMax = 63;
constexpr size_t kNameBytesMax = 128;

bool IsTenantName(std::string_view name) {
  auto plain = [](unsigned char c) { return absl::ascii_islower(c) || absl::ascii_isdigit(c); };
  if (name.empty() || name.size() > kTenantBytesMax || !plain(static_cast<unsigned char>(name[0]))) return false;
  for (char c : name) {
    if (!plain(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

grpc::Status CheckTenant(std::string_view name) {
  return IsTenantName(name) ? grpc::Status::OK : Malformed("a tenant's name must be [a-z0-9][a-z0-9._-]{0,62}");
}

grpc::Status CheckPrincipal(const v1::CreatePrincipalRequest& request) {
  if (request.role() < v1::ADMIN || request.role() > v1::AUDITOR) {
    return Malformed("role must be ADMIN, OPERATOR, GATEWAY, RECONCILER or AUDITOR");
  }
  if (request.role() == v1::ADMIN) {
    if (!request.tenant().empty()) return Malformed("an admin belongs to no tenant; leave tenant empty");
  } else if (grpc::Status status = CheckTenant(request.tenant()); !status.ok()) {
    return status;
  }
  if (!request.name().empty() && !IsLine(request.name(), kNameBytesMax)) {
    return Malformed("name must be at most 128 bytes without control characters");
  }
  if (!request.certificate_sha256().empty() && request.certificate_sha256().size() != 32) {
    return Malformed("certificate_sha256 must be the 32 bytes of the SHA-256 of the certificate's DER");
  }
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* Tenants::CreateTenant(grpc::CallbackServerContext* context,
                                                const v1::CreateTenantRequest* request,
                                                v1::CreateTenantResponse* response) {
  return OnWorker(core_, "tally.v1.Tenants.CreateTenant", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    if (grpc::Status status = CheckTenant(request->name()); !status.ok()) return status;
                    auto created = ledger::CreateTenant(connection, core_.signer, core_.secrets, request->name(),
                                                        caller.principal_id);
                    if (!created.ok()) return FromLedger(created.status());
                    *response->mutable_tenant() = std::move(created->tenant);
                    for (v1::Receipt& receipt : created->receipts) *response->add_receipts() = std::move(receipt);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Tenants::ListTenants(grpc::CallbackServerContext* context,
                                               const v1::ListTenantsRequest* request,
                                               v1::ListTenantsResponse* response) {
  return OnWorker(core_, "tally.v1.Tenants.ListTenants", context,
                  [request, response](const Caller&, ledger::Connection& connection) -> grpc::Status {
                    int size = 0;
                    if (grpc::Status status = ReadPageSize(request->page_size(), size); !status.ok()) return status;
                    if (!request->page_token().empty() && !IsTenantName(request->page_token())) {
                      return Malformed("page_token is not one that this service gave");
                    }
                    auto list = ledger::ListTenants(connection, request->page_token(), size);
                    if (!list.ok()) return FromLedger(list.status());
                    if (static_cast<int>(list->size()) == size) response->set_next_page_token(list->back().name());
                    for (v1::Tenant& tenant : *list) *response->add_tenants() = std::move(tenant);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Tenants::CreatePrincipal(grpc::CallbackServerContext* context,
                                                   const v1::CreatePrincipalRequest* request,
                                                   v1::CreatePrincipalResponse* response) {
  return OnWorker(core_, "tally.v1.Tenants.CreatePrincipal", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    if (grpc::Status status = CheckPrincipal(*request); !status.ok()) return status;
                    auto created = ledger::CreatePrincipal(connection, core_.signer, *request, caller.principal_id);
                    if (!created.ok()) return FromLedger(created.status());
                    *response->mutable_principal() = std::move(created->info);
                    response->set_credential(std::move(created->credential));
                    for (v1::Receipt& receipt : created->receipts) *response->add_receipts() = std::move(receipt);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Tenants::ListPrincipals(grpc::CallbackServerContext* context,
                                                  const v1::ListPrincipalsRequest* request,
                                                  v1::ListPrincipalsResponse* response) {
  return OnWorker(core_, "tally.v1.Tenants.ListPrincipals", context,
                  [request, response](const Caller&, ledger::Connection& connection) -> grpc::Status {
                    int size = 0;
                    decide::Id after;
                    grpc::Status status = ReadPageSize(request->page_size(), size);
                    if (status.ok()) status = ReadPageToken(request->page_token(), after);
                    if (status.ok() && !request->tenant().empty()) status = CheckTenant(request->tenant());
                    if (!status.ok()) return status;
                    auto list = ledger::ListPrincipals(connection, request->tenant(), ledger::IdText(after), size);
                    if (!list.ok()) return FromLedger(list.status());
                    if (static_cast<int>(list->size()) == size) {
                      response->set_next_page_token(list->back().principal_id());
                    }
                    for (v1::PrincipalInfo& info : *list) *response->add_principals() = std::move(info);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Tenants::DisablePrincipal(grpc::CallbackServerContext* context,
                                                    const v1::DisablePrincipalRequest* request,
                                                    v1::DisablePrincipalResponse* response) {
  return OnWorker(core_, "tally.v1.Tenants.DisablePrincipal", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    decide::Id id;
                    if (grpc::Status status = ReadId(request->principal_id(), id); !status.ok()) return status;
                    auto disabled = ledger::DisablePrincipal(connection, core_.signer, ledger::IdText(id),
                                                             request->hard(), caller.principal_id);
                    if (!disabled.ok()) return FromLedger(disabled.status());
                    *response->mutable_principal() = std::move(disabled->info);
                    for (v1::Receipt& receipt : disabled->receipts) *response->add_receipts() = std::move(receipt);
                    return grpc::Status::OK;
                  });
}

}  // namespace tally::rpc
