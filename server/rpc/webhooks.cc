#include "server/rpc/webhooks.h"

#include "lib/keys/text.h"
#include "lib/outbound/url.h"
#include "lib/webhook/format.h"
#include "server/ledger/ids.h"
#include "server/ledger/webhooks.h"
#include "server/rpc/checks.h"
#include "server/rpc/exchange.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

// What is known to fail at every try is refused here; what a name resolves to is looked at when it is sent to.
grpc::Status CheckWebhookUrl(const std::string& url, const webhook::SendOptions& options) {
  if (url.size() > outbound::kUrlBytesMax) {
    return OverLimit(keys::Cat("url has ", url.size(), " bytes; at most ", outbound::kUrlBytesMax, " are possible"));
  }
  if (absl::Status form = outbound::CheckUrl(url, options.allow_http); !form.ok()) return FromLedger(form);
  if (!options.allow_private && !outbound::MayBePublic(url)) {
    return Malformed(
        "the URL cannot be used: its host is not of the public internet, and tallyd's setting webhooks.allow_private "
        "is off");
  }
  return grpc::Status::OK;
}

absl::StatusOr<std::string> Seal(const webhook::Delivery& delivery, const keys::Secret& secret, const decide::Id& id) {
  return delivery.sealer().Seal(secret, ledger::WebhookContext(id));
}

}  // namespace

grpc::ServerUnaryReactor* Webhooks::Create(grpc::CallbackServerContext* context,
                                           const v1::CreateWebhookRequest* request,
                                           v1::CreateWebhookResponse* response) {
  return OnWorker(core_, "tally.v1.Webhooks.Create", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    grpc::Status form = CheckWebhookUrl(request->url(), delivery_.send_options());
                    if (!form.ok()) return form;
                    const keys::Secret secret = keys::Secret::Random(webhook::kSecretBytes);
                    const auto id =
                        ledger::CreateWebhook(connection, caller.tenant, request->url(),
                                              [&](const decide::Id& made) { return Seal(delivery_, secret, made); });
                    if (absl::IsResourceExhausted(id.status())) {
                      return OverLimit(keys::Cat("a tenant may have ", ledger::kWebhooksMax,
                                                 " webhooks, and this one has; delete one first"));
                    }
                    if (!id.ok()) return FromLedger(id.status());
                    response->set_webhook_id(ledger::IdText(*id));
                    response->set_secret(webhook::SecretText(secret));
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Webhooks::List(grpc::CallbackServerContext* context, const v1::ListWebhooksRequest*,
                                         v1::ListWebhooksResponse* response) {
  return OnWorker(core_, "tally.v1.Webhooks.List", context,
                  [response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    auto list = ledger::ListWebhooks(connection, caller.tenant);
                    if (!list.ok()) return FromLedger(list.status());
                    for (v1::WebhookInfo& info : *list) *response->add_webhooks() = std::move(info);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Webhooks::Delete(grpc::CallbackServerContext* context,
                                           const v1::DeleteWebhookRequest* request, v1::DeleteWebhookResponse*) {
  return OnWorker(core_, "tally.v1.Webhooks.Delete", context,
                  [request](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    decide::Id id;
                    if (grpc::Status status = ReadId(request->webhook_id(), id); !status.ok()) return status;
                    return FromLedger(ledger::DeleteWebhook(connection, caller.tenant, id));
                  });
}

grpc::ServerUnaryReactor* Webhooks::Rotate(grpc::CallbackServerContext* context,
                                           const v1::RotateWebhookRequest* request,
                                           v1::RotateWebhookResponse* response) {
  return OnWorker(core_, "tally.v1.Webhooks.Rotate", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    decide::Id id;
                    if (grpc::Status status = ReadId(request->webhook_id(), id); !status.ok()) return status;
                    const keys::Secret secret = keys::Secret::Random(webhook::kSecretBytes);
                    const absl::Status rotated =
                        ledger::RotateWebhook(connection, caller.tenant, id,
                                              [&](const decide::Id& same) { return Seal(delivery_, secret, same); });
                    if (!rotated.ok()) return FromLedger(rotated);
                    response->set_secret(webhook::SecretText(secret));
                    return grpc::Status::OK;
                  });
}

// No worker waits for the receiver: a sender of the delivery does, and finishes the RPC.
grpc::ServerUnaryReactor* Webhooks::Test(grpc::CallbackServerContext* context, const v1::TestWebhookRequest* request,
                                         v1::TestWebhookResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const SharedExchange exchange = UnaryExchange(core_, "tally.v1.Webhooks.Test", context, reactor);
  Submit(exchange, [this, exchange, request, response](ledger::Connection& connection) {
    if (grpc::Status admitted = exchange->Admit(connection); !admitted.ok()) return exchange->Finish(admitted);
    decide::Id id;
    if (grpc::Status status = ReadId(request->webhook_id(), id); !status.ok()) return exchange->Finish(status);
    int64_t now_us = 0;
    auto target = ledger::FindWebhook(connection, exchange->caller().tenant, id, &now_us);
    if (!target.ok()) return exchange->Finish(FromLedger(target.status()));
    json::Object data;
    data.Set("webhook_id", json::Value(ledger::IdText(id)));
    const bool begun = delivery_.SendNow(*std::move(target), webhook::Body(webhook::kTest, now_us, std::move(data)),
                                         now_us, [exchange, response](const webhook::Sent& sent) {
                                           response->set_delivered(sent.taken());
                                           response->set_http_status(sent.http_status);
                                           response->set_error(sent.error);
                                           exchange->Finish(grpc::Status::OK);
                                         });
    if (!begun) exchange->Finish(Overloaded());
  });
  return reactor;
}

}  // namespace tally::rpc
