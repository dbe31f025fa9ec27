#ifndef TALLY_SERVER_RPC_RECEIPTS_H_
#define TALLY_SERVER_RPC_RECEIPTS_H_

#include "server/rpc/core.h"
#include "tally/v1/receipts.grpc.pb.h"

namespace tally::rpc {

class Receipts final : public v1::Receipts::CallbackService {
 public:
  explicit Receipts(Core& core) : core_(core) {}

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetReceiptRequest* request,
                                v1::Receipt* response) override;
  grpc::ServerUnaryReactor* Head(grpc::CallbackServerContext* context, const v1::HeadRequest* request,
                                 v1::Receipt* response) override;
  grpc::ServerWriteReactor<v1::Receipt>* List(grpc::CallbackServerContext* context,
                                              const v1::ListReceiptsRequest* request) override;
  grpc::ServerUnaryReactor* Keys(grpc::CallbackServerContext* context, const v1::KeysRequest* request,
                                 v1::KeysResponse* response) override;
  grpc::ServerUnaryReactor* Jws(grpc::CallbackServerContext* context, const v1::GetReceiptRequest* request,
                                v1::JwsResponse* response) override;

 private:
  Core& core_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_RECEIPTS_H_
