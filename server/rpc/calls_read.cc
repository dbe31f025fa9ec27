#include "server/ledger/call_reads.h"
#include "server/ledger/ids.h"
#include "server/ledger/permits.h"
#include "server/rpc/calls.h"
#include "server/rpc/checks.h"
#include "server/rpc/decision.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

// A gateway sees the calls it made, and of their bodies only the answer.
ledger::Reader ReaderOf(const Caller& caller) {
  return {caller.tenant, caller.role == v1::GATEWAY ? caller.principal_id : ""};
}

ledger::CallShown ShownTo(const Caller& caller) {
  return {.bodies = caller.role == v1::OPERATOR, .result = true, .receipts = true};
}

absl::StatusOr<v1::CallInfo> ByToken(Core& core, const Caller& caller, const v1::GetCallRequest& request,
                                     ledger::Connection& connection) {
  const decide::Hash token = ledger::ToHash(keys::Sha256(request.permit_token()));
  std::shared_ptr<const decide::PermitTerms> terms = core.terms.ByToken(token);
  if (terms == nullptr) {
    auto loaded = ledger::LoadTerms(connection, core.terms, token);
    if (!loaded.ok()) return loaded.status();
    terms = *std::move(loaded);
  }
  return ledger::GetCallByKey(connection, ReaderOf(caller), *terms, request.key(), ShownTo(caller));
}

}  // namespace

grpc::ServerUnaryReactor* Calls::GetCall(grpc::CallbackServerContext* context, const v1::GetCallRequest* request,
                                         v1::CallInfo* response) {
  return OnWorker(core_, "tally.v1.Calls.GetCall", context,
                  [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    const bool by_id = !request->call_id().empty();
                    const bool by_key = !request->permit_token().empty() || !request->key().empty();
                    if (by_id == by_key) return Malformed("name the call by call_id, or by permit_token and key");
                    absl::StatusOr<v1::CallInfo> info;
                    if (by_id) {
                      decide::Id id;
                      if (grpc::Status status = ReadId(request->call_id(), id); !status.ok()) return status;
                      info = ledger::GetCall(connection, ReaderOf(caller), id, ShownTo(caller));
                    } else {
                      if (grpc::Status status = CheckKey("key", request->key()); !status.ok()) return status;
                      info = ByToken(core_, caller, *request, connection);
                    }
                    if (!info.ok()) return FromLedger(info.status());
                    *response = *std::move(info);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Calls::ListCalls(grpc::CallbackServerContext* context, const v1::ListCallsRequest* request,
                                           v1::ListCallsResponse* response) {
  return OnWorker(core_, "tally.v1.Calls.ListCalls", context,
                  [request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    int size = 0;
                    decide::Id after, permit;
                    grpc::Status status = ReadPageSize(request->page_size(), size);
                    if (status.ok()) status = ReadPageToken(request->page_token(), after);
                    const bool one_permit = !request->permit_id().empty();
                    if (status.ok() && one_permit) status = ReadId(request->permit_id(), permit);
                    if (!status.ok()) return status;
                    if (!v1::CallState_IsValid(request->state())) return Malformed("state is not one that is known");
                    auto list = ledger::ListCalls(connection, ReaderOf(caller), one_permit ? &permit : nullptr,
                                                  request->state(), after, size);
                    if (!list.ok()) return FromLedger(list.status());
                    if (static_cast<int>(list->size()) == size) {
                      response->set_next_page_token(list->back().call_id());
                    }
                    for (v1::CallInfo& info : *list) *response->add_calls() = std::move(info);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* Calls::Correct(grpc::CallbackServerContext* context, const v1::CorrectRequest* request,
                                         v1::CorrectResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(
      UnaryExchange(core_, "tally.v1.Calls.Correct", context, reactor), std::nullopt,
      [request, response](const SharedExchange& exchange, const Ready&) {
        decide::CorrectRequest correct;
        grpc::Status form = CheckAttemptId(request->attempt_id());
        if (form.ok()) form = CheckEvidence(request->evidence(), true);
        if (form.ok()) form = ReadId(request->call_id(), correct.call_id);
        if (form.ok() && request->supersedes().size() != 32) {
          form = Malformed("supersedes must be the 32 bytes of a receipt id");
        }
        if (form.ok() && request->verdict() != v1::VERDICT_HAPPENED && request->verdict() != v1::VERDICT_NOT_HAPPENED) {
          form = Malformed("verdict must be HAPPENED or NOT_HAPPENED");
        }
        if (!form.ok()) return exchange->Finish(form);
        ledger::Bodies bodies;
        correct.principal.id = exchange->caller().principal_id;
        correct.attempt_id = ledger::ToId(request->attempt_id());
        correct.supersedes = request->supersedes();
        correct.finding =
            request->verdict() == v1::VERDICT_HAPPENED ? decide::Finding::kHappened : decide::Finding::kNotHappened;
        correct.evidence = TakeEvidence(request->evidence(), bodies);
        const int16_t shard = ledger::ShardOf(correct.call_id);
        Decide(exchange, shard, lane::Priority::kReport, std::move(correct), std::move(bodies),
               [response](ledger::Reply& reply) {
                 response->set_state(reply.answer.state);
                 MoveReceipts(reply, *response);
               });
      });
  return reactor;
}

}  // namespace tally::rpc
