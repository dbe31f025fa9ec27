#ifndef TALLY_SERVER_RPC_PERMITS_H_
#define TALLY_SERVER_RPC_PERMITS_H_

#include "server/rpc/core.h"
#include "tally/v1/permits.grpc.pb.h"

namespace tally::rpc {

class Permits final : public v1::Permits::CallbackService {
 public:
  explicit Permits(Core& core) : core_(core) {}

  grpc::ServerUnaryReactor* Mint(grpc::CallbackServerContext* context, const v1::MintRequest* request,
                                 v1::MintResponse* response) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetPermitRequest* request,
                                v1::PermitInfo* response) override;
  grpc::ServerUnaryReactor* GetByToken(grpc::CallbackServerContext* context, const v1::GetPermitByTokenRequest* request,
                                       v1::PermitInfo* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListPermitsRequest* request,
                                 v1::ListPermitsResponse* response) override;
  grpc::ServerUnaryReactor* Revoke(grpc::CallbackServerContext* context, const v1::RevokePermitRequest* request,
                                   v1::PermitActionResponse* response) override;
  grpc::ServerUnaryReactor* Close(grpc::CallbackServerContext* context, const v1::ClosePermitRequest* request,
                                  v1::PermitActionResponse* response) override;

 private:
  Core& core_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_PERMITS_H_
