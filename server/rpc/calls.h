#ifndef TALLY_SERVER_RPC_CALLS_H_
#define TALLY_SERVER_RPC_CALLS_H_

#include "server/rpc/core.h"
#include "tally/v1/calls.grpc.pb.h"

namespace tally::rpc {

// An Authorize is read in calls_authorize.cc → server/ledger/calls.cc → lib/decide/authorize.cc → lib/receipt/chain.cc.
class Calls final : public v1::Calls::CallbackService {
 public:
  explicit Calls(Core& core) : core_(core) {}

  grpc::ServerUnaryReactor* Authorize(grpc::CallbackServerContext* context, const v1::AuthorizeRequest* request,
                                      v1::AuthorizeResponse* response) override;
  grpc::ServerUnaryReactor* Commit(grpc::CallbackServerContext* context, const v1::CommitRequest* request,
                                   v1::CommitResponse* response) override;
  grpc::ServerUnaryReactor* Extend(grpc::CallbackServerContext* context, const v1::ExtendRequest* request,
                                   v1::ExtendResponse* response) override;
  grpc::ServerUnaryReactor* GetCall(grpc::CallbackServerContext* context, const v1::GetCallRequest* request,
                                    v1::CallInfo* response) override;
  grpc::ServerUnaryReactor* ListCalls(grpc::CallbackServerContext* context, const v1::ListCallsRequest* request,
                                      v1::ListCallsResponse* response) override;
  grpc::ServerUnaryReactor* Correct(grpc::CallbackServerContext* context, const v1::CorrectRequest* request,
                                    v1::CorrectResponse* response) override;

 private:
  Core& core_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_CALLS_H_
