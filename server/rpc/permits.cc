#include "server/rpc/permits.h"

#include "lib/keys/hash.h"
#include "server/ledger/ids.h"
#include "server/ledger/permits.h"
#include "server/rpc/checks.h"
#include "server/rpc/decision.h"
#include "server/rpc/status.h"

namespace tally::rpc {

grpc::ServerUnaryReactor* Permits::Mint(grpc::CallbackServerContext* context, const v1::MintRequest* request,
                                        v1::MintResponse* response) {
  return OnWorker(core_, "tally.v1.Permits.Mint", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    if (request->tenant() != caller.tenant) {
                      return PermissionDenied("an operator mints for its own tenant only");
                    }
                    if (!IsLine(request->subject(), 255)) {
                      return Malformed("subject must be 1 to 255 bytes without control characters");
                    }
                    auto minted =
                        ledger::MintPermit(connection, core_.signer, core_.terms, *request, caller.principal_id);
                    if (!minted.ok()) return FromLedger(minted.status());
                    *response = *std::move(minted);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Permits::Get(grpc::CallbackServerContext* context, const v1::GetPermitRequest* request,
                                       v1::PermitInfo* response) {
  return OnWorker(core_, "tally.v1.Permits.Get", context,
                  [request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    decide::Id id;
                    if (grpc::Status status = ReadId(request->permit_id(), id); !status.ok()) return status;
                    auto info = ledger::GetPermit(connection, caller.tenant, id);
                    if (!info.ok()) return FromLedger(info.status());
                    *response = *std::move(info);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Permits::GetByToken(grpc::CallbackServerContext* context,
                                              const v1::GetPermitByTokenRequest* request, v1::PermitInfo* response) {
  return OnWorker(core_, "tally.v1.Permits.GetByToken", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    const decide::Hash token = ledger::ToHash(keys::Sha256(request->permit_token()));
                    std::shared_ptr<const decide::PermitTerms> terms = core_.terms.ByToken(token);
                    if (terms == nullptr) {
                      auto loaded = ledger::LoadTerms(connection, core_.terms, token);
                      if (absl::IsNotFound(loaded.status())) return Unauthenticated("the permit token is unknown");
                      if (!loaded.ok()) return FromLedger(loaded.status());
                      terms = *std::move(loaded);
                    }
                    // A token is as good as none where the permit is another tenant's.
                    if (terms->tenant != caller.tenant) return Unauthenticated("the permit token is unknown");
                    auto info = ledger::GetPermit(connection, caller.tenant, terms->permit_id);
                    if (!info.ok()) return FromLedger(info.status());
                    *response = *std::move(info);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Permits::List(grpc::CallbackServerContext* context, const v1::ListPermitsRequest* request,
                                        v1::ListPermitsResponse* response) {
  return OnWorker(core_, "tally.v1.Permits.List", context,
                  [request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    int size = 0;
                    decide::Id after;
                    grpc::Status status = ReadPageSize(request->page_size(), size);
                    if (status.ok()) status = ReadPageToken(request->page_token(), after);
                    if (!status.ok()) return status;
                    if (!request->subject().empty() && !IsLine(request->subject(), 255)) {
                      return Malformed("subject must be 1 to 255 bytes without control characters");
                    }
                    auto list = ledger::ListPermits(connection, caller.tenant, request->subject(), after, size);
                    if (!list.ok()) return FromLedger(list.status());
                    if (static_cast<int>(list->size()) == size) {
                      response->set_next_page_token(list->back().permit_id());
                    }
                    for (v1::PermitInfo& info : *list) *response->add_permits() = std::move(info);
                    return grpc::Status::OK;
                  });
}

namespace {

// Revoke and Close are decisions like any other: the permit's lane orders them among its calls.
template <typename Action>
void Act(const SharedExchange& exchange, const std::string& permit_id, v1::PermitActionResponse& response) {
  Action action;
  if (grpc::Status status = ReadId(permit_id, action.permit_id); !status.ok()) return exchange->Finish(status);
  action.principal.id = exchange->caller().principal_id;
  const decide::Id id = action.permit_id;
  DecideAndRead(
      exchange, ledger::ShardOf(id), std::move(action), {},
      [&response](ledger::Reply& reply) { MoveReceipts(reply, response); },
      [&response, id, tenant = exchange->caller().tenant](ledger::Connection& connection) {
        auto info = ledger::GetPermit(connection, tenant, id);
        if (info.ok()) *response.mutable_permit() = *std::move(info);
      });
}

}  // namespace

grpc::ServerUnaryReactor* Permits::Revoke(grpc::CallbackServerContext* context, const v1::RevokePermitRequest* request,
                                          v1::PermitActionResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(UnaryExchange(core_, "tally.v1.Permits.Revoke", context, reactor), std::nullopt,
            [request, response](const SharedExchange& exchange, const Ready&) {
              Act<ledger::RevokeRequest>(exchange, request->permit_id(), *response);
            });
  return reactor;
}

grpc::ServerUnaryReactor* Permits::Close(grpc::CallbackServerContext* context, const v1::ClosePermitRequest* request,
                                         v1::PermitActionResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(UnaryExchange(core_, "tally.v1.Permits.Close", context, reactor), std::nullopt,
            [request, response](const SharedExchange& exchange, const Ready&) {
              Act<ledger::CloseRequest>(exchange, request->permit_id(), *response);
            });
  return reactor;
}

}  // namespace tally::rpc
