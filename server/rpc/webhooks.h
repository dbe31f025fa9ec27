#ifndef TALLY_SERVER_RPC_WEBHOOKS_H_
#define TALLY_SERVER_RPC_WEBHOOKS_H_

#include "server/rpc/core.h"
#include "server/webhook/delivery.h"
#include "tally/v1/webhooks.grpc.pb.h"

namespace tally::rpc {

class Webhooks final : public v1::Webhooks::CallbackService {
 public:
  Webhooks(Core& core, webhook::Delivery& delivery) : core_(core), delivery_(delivery) {}

  grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context, const v1::CreateWebhookRequest* request,
                                   v1::CreateWebhookResponse* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListWebhooksRequest* request,
                                 v1::ListWebhooksResponse* response) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context, const v1::DeleteWebhookRequest* request,
                                   v1::DeleteWebhookResponse* response) override;
  grpc::ServerUnaryReactor* Rotate(grpc::CallbackServerContext* context, const v1::RotateWebhookRequest* request,
                                   v1::RotateWebhookResponse* response) override;
  grpc::ServerUnaryReactor* Test(grpc::CallbackServerContext* context, const v1::TestWebhookRequest* request,
                                 v1::TestWebhookResponse* response) override;

 private:
  Core& core_;
  webhook::Delivery& delivery_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_WEBHOOKS_H_
