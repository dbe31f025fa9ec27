#include "server/rpc/parked_calls.h"

#include "lib/keys/hash.h"
#include "server/ledger/call_reads.h"
#include "server/ledger/ids.h"
#include "server/rpc/checks.h"
#include "server/rpc/decision.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

constexpr int64_t kClaimMsMin = 1000;
constexpr int64_t kClaimMsMax = 3600 * 1000;

ledger::ParkedFilter OneCall(const decide::Id& call) {
  ledger::ParkedFilter filter;
  filter.call = call;
  return filter;
}

grpc::Status FilterOf(const v1::ListParkedRequest& request, ledger::ParkedFilter& filter) {
  decide::Id id;
  if (!request.permit_id().empty()) {
    if (grpc::Status status = ReadId(request.permit_id(), id); !status.ok()) return status;
    filter.permit = id;
  }
  if (!request.call_id().empty()) {
    if (grpc::Status status = ReadId(request.call_id(), id); !status.ok()) return status;
    filter.call = id;
  }
  if (!request.uncertain_receipt_id().empty() && request.uncertain_receipt_id().size() != 32) {
    return Malformed("uncertain_receipt_id must be the 32 bytes of a receipt id");
  }
  filter.uncertain_receipt_id = request.uncertain_receipt_id();
  filter.attention_only = request.attention_only();
  filter.claimable_only = request.claimable_only();
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* ParkedCalls::List(grpc::CallbackServerContext* context, const v1::ListParkedRequest* request,
                                            v1::ListParkedResponse* response) {
  return OnWorker(core_, "tally.v1.ParkedCalls.List", context,
                  [request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    int size = 0;
                    decide::Id after;
                    ledger::ParkedFilter filter;
                    grpc::Status status = ReadPageSize(request->page_size(), size);
                    if (status.ok()) status = ReadPageToken(request->page_token(), after);
                    if (status.ok()) status = FilterOf(*request, filter);
                    if (!status.ok()) return status;
                    auto list = ledger::ListParked(connection, caller.tenant, filter, after, size);
                    if (!list.ok()) return FromLedger(list.status());
                    if (static_cast<int>(list->size()) == size) {
                      response->set_next_page_token(list->back().call().call_id());
                    }
                    for (v1::ParkedCall& parked : *list) *response->add_parked() = std::move(parked);
                    return grpc::Status::OK;
                  });
}

grpc::ServerUnaryReactor* ParkedCalls::Claim(grpc::CallbackServerContext* context, const v1::ClaimRequest* request,
                                             v1::ClaimResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(
      UnaryExchange(core_, "tally.v1.ParkedCalls.Claim", context, reactor), std::nullopt,
      [request, response](const SharedExchange& exchange, const Ready&) {
        decide::ClaimRequest claim;
        if (request->claim_ms() < kClaimMsMin || request->claim_ms() > kClaimMsMax) {
          return exchange->Finish(OverLimit("claim_ms must be 1000 (1 s) to 3600000 (1 h)"));
        }
        if (grpc::Status form = ReadId(request->call_id(), claim.call_id); !form.ok()) {
          return exchange->Finish(form);
        }
        claim.principal.id = exchange->caller().principal_id;
        claim.new_claim_id = ledger::ToId(keys::RandomBytes(16));
        claim.claim = request->claim_ms() * 1000;
        const decide::Id call = claim.call_id;
        const decide::Id claim_id = claim.new_claim_id;
        DecideAndRead(
            exchange, ledger::ShardOf(call), std::move(claim), {},
            [response, claim_id](ledger::Reply&) { response->set_claim_id(std::string(ledger::Bytes(claim_id))); },
            [response, call, tenant = exchange->caller().tenant](ledger::Connection& connection) {
              auto parked = ledger::ListParked(connection, tenant, OneCall(call), {}, 1);
              if (!parked.ok() || parked->empty()) return;
              response->set_claim_until_us(parked->front().claim_until_us());
              *response->mutable_parked() = std::move(parked->front());
            });
      });
  return reactor;
}

namespace {

grpc::Status ReadResolve(const v1::ResolveRequest& request, v1::Role role, decide::ResolveRequest& resolve) {
  grpc::Status form = CheckAttemptId(request.attempt_id());
  if (form.ok()) form = CheckEvidence(request.evidence(), role == v1::OPERATOR);
  if (form.ok()) form = ReadId(request.call_id(), resolve.call_id);
  if (!form.ok()) return form;
  if (request.supersedes().size() != 32) return Malformed("supersedes must be the 32 bytes of a receipt id");
  if (!request.claim_id().empty() && request.claim_id().size() != 16) return Malformed("claim_id must be 16 bytes");
  if (!request.claim_id().empty()) resolve.claim_id = ledger::ToId(request.claim_id());
  resolve.attempt_id = ledger::ToId(request.attempt_id());
  resolve.supersedes = request.supersedes();
  switch (request.verdict()) {
    case v1::VERDICT_HAPPENED:
      resolve.finding = decide::Finding::kHappened;
      return grpc::Status::OK;
    case v1::VERDICT_NOT_HAPPENED:
      resolve.finding = decide::Finding::kNotHappened;
      return grpc::Status::OK;
    case v1::VERDICT_CANNOT_TELL:
      resolve.finding = decide::Finding::kCannotTell;
      return grpc::Status::OK;
    default:
      return Malformed("verdict must be HAPPENED, NOT_HAPPENED or CANNOT_TELL");
  }
}

}  // namespace

grpc::ServerUnaryReactor* ParkedCalls::Resolve(grpc::CallbackServerContext* context, const v1::ResolveRequest* request,
                                               v1::ResolveResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(UnaryExchange(core_, "tally.v1.ParkedCalls.Resolve", context, reactor), std::nullopt,
            [request, response](const SharedExchange& exchange, const Ready&) {
              decide::ResolveRequest resolve;
              grpc::Status form = ReadResolve(*request, exchange->caller().role, resolve);
              if (!form.ok()) return exchange->Finish(form);
              ledger::Bodies bodies;
              resolve.principal.id = exchange->caller().principal_id;
              resolve.evidence = TakeEvidence(request->evidence(), bodies);
              const int16_t shard = ledger::ShardOf(resolve.call_id);
              Decide(exchange, shard, lane::Priority::kReport, std::move(resolve), std::move(bodies),
                     [response](ledger::Reply& reply) {
                       response->set_state(reply.answer.state);
                       MoveReceipts(reply, *response);
                     });
            });
  return reactor;
}

}  // namespace tally::rpc
