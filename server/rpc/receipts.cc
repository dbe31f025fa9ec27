#include "server/rpc/receipts.h"

#include "lib/keys/published.h"
#include "lib/receipt/jws.h"
#include "server/ledger/keystore.h"
#include "server/ledger/receipt_reads.h"
#include "server/rpc/checks.h"
#include "server/rpc/exchange.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

grpc::Status Read(const v1::GetReceiptRequest& request, const Caller& caller, ledger::Connection& connection,
                  v1::Receipt& receipt) {
  if (request.receipt_id().size() != 32) return Malformed("receipt_id must be 32 bytes");
  auto found = ledger::GetReceipt(connection, caller.tenant, request.receipt_id());
  if (!found.ok()) return FromLedger(found.status());
  receipt = *std::move(found);
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* Receipts::Get(grpc::CallbackServerContext* context, const v1::GetReceiptRequest* request,
                                        v1::Receipt* response) {
  return OnWorker(core_, "tally.v1.Receipts.Get", context,
                  [request, response](const Caller& caller, ledger::Connection& connection) {
                    return Read(*request, caller, connection, *response);
                  });
}

grpc::ServerUnaryReactor* Receipts::Jws(grpc::CallbackServerContext* context, const v1::GetReceiptRequest* request,
                                        v1::JwsResponse* response) {
  return OnWorker(core_, "tally.v1.Receipts.Jws", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    v1::Receipt receipt;
                    grpc::Status status = Read(*request, caller, connection, receipt);
                    if (!status.ok()) return status;
                    auto jws = receipt::ToJws(receipt, core_.signer);
                    if (!jws.ok()) return FromLedger(absl::InternalError(jws.status().message()));
                    response->set_jws(*std::move(jws));
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Receipts::Head(grpc::CallbackServerContext* context, const v1::HeadRequest* request,
                                         v1::Receipt* response) {
  return OnWorker(core_, "tally.v1.Receipts.Head", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    decide::Id id;
                    if (grpc::Status status = ReadId(request->permit_id(), id); !status.ok()) return status;
                    auto head =
                        ledger::SignHead(connection, core_.signer, caller.tenant, id, caller.principal_id, caller.role);
                    if (!head.ok()) return FromLedger(head.status());
                    *response = *std::move(head);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Receipts::Keys(grpc::CallbackServerContext* context, const v1::KeysRequest*,
                                         v1::KeysResponse* response) {
  return OnWorker(core_, "tally.v1.Receipts.Keys", context,
                  [response](const Caller&, ledger::Connection& connection) -> grpc::Status {
                    auto list = ledger::ListSigningKeys(connection);
                    if (!list.ok()) return FromLedger(list.status());
                    for (const ledger::SigningKey& key : *list) {
                      const auto named = keys::PublicKey::Create(key.name, key.public_key);
                      if (!named.ok()) return FromLedger(absl::InternalError(named.status().message()));
                      v1::PublishedKey& out = *response->add_keys();
                      out.set_key_id(key.key_id);
                      out.set_name(key.name);
                      out.set_public_key(key.public_key);
                      out.set_vkey(keys::ToVkey(*named));
                      out.set_pem(keys::ToPem(*named));
                      out.set_not_before_us(key.not_before_us);
                      out.set_not_after_us(key.not_after_us.value_or(0));
                    }
                    return grpc::Status::OK;
                  });
}

}  // namespace tally::rpc
