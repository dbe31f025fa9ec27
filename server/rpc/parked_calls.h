#ifndef TALLY_SERVER_RPC_PARKED_CALLS_H_
#define TALLY_SERVER_RPC_PARKED_CALLS_H_

#include "server/rpc/core.h"
#include "tally/v1/parked.grpc.pb.h"

namespace tally::rpc {

class ParkedCalls final : public v1::ParkedCalls::CallbackService {
 public:
  explicit ParkedCalls(Core& core) : core_(core) {}

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListParkedRequest* request,
                                 v1::ListParkedResponse* response) override;
  grpc::ServerUnaryReactor* Claim(grpc::CallbackServerContext* context, const v1::ClaimRequest* request,
                                  v1::ClaimResponse* response) override;
  grpc::ServerUnaryReactor* Resolve(grpc::CallbackServerContext* context, const v1::ResolveRequest* request,
                                    v1::ResolveResponse* response) override;
  grpc::ServerUnaryReactor* NoteLookUp(grpc::CallbackServerContext* context, const v1::NoteLookUpRequest* request,
                                       v1::NoteLookUpResponse* response) override;
  grpc::ServerUnaryReactor* BeginReplay(grpc::CallbackServerContext* context, const v1::BeginReplayRequest* request,
                                        v1::BeginReplayResponse* response) override;

 private:
  Core& core_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_PARKED_CALLS_H_
