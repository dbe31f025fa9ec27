#ifndef TALLY_SERVER_RPC_TENANTS_H_
#define TALLY_SERVER_RPC_TENANTS_H_

#include "server/rpc/core.h"
#include "tally/v1/tenants.grpc.pb.h"

namespace tally::rpc {

class Tenants final : public v1::Tenants::CallbackService {
 public:
  explicit Tenants(Core& core) : core_(core) {}

  grpc::ServerUnaryReactor* CreateTenant(grpc::CallbackServerContext* context, const v1::CreateTenantRequest* request,
                                         v1::CreateTenantResponse* response) override;
  grpc::ServerUnaryReactor* ListTenants(grpc::CallbackServerContext* context, const v1::ListTenantsRequest* request,
                                        v1::ListTenantsResponse* response) override;
  grpc::ServerUnaryReactor* CreatePrincipal(grpc::CallbackServerContext* context,
                                            const v1::CreatePrincipalRequest* request,
                                            v1::CreatePrincipalResponse* response) override;
  grpc::ServerUnaryReactor* ListPrincipals(grpc::CallbackServerContext* context,
                                           const v1::ListPrincipalsRequest* request,
                                           v1::ListPrincipalsResponse* response) override;
  grpc::ServerUnaryReactor* DisablePrincipal(grpc::CallbackServerContext* context,
                                             const v1::DisablePrincipalRequest* request,
                                             v1::DisablePrincipalResponse* response) override;

 private:
  Core& core_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_TENANTS_H_
