#include "lib/keys/text.h"
#include "server/ledger/ids.h"
#include "server/ledger/look_ups.h"
#include "server/rpc/checks.h"
#include "server/rpc/decision.h"
#include "server/rpc/parked_calls.h"
#include "server/rpc/status.h"

// What a reconciler says of a call that it has claimed, before it knows what became of it.
namespace tally::rpc {
namespace {

constexpr size_t kKindBytesMax = 16;
constexpr size_t kProviderBytesMax = 128;
constexpr size_t kDetailBytesMax = 1024;
constexpr size_t kBodyBytesMax = 64 * 1024;
constexpr int64_t kNextLookMsMax = 24 * 3600 * 1000;

// A claimed attempt, as both requests name it.
struct Claimed {
  decide::Id call_id{};
  decide::Id attempt_id{};
  decide::Id claim_id{};
};

template <typename Request>
grpc::Status ReadClaimed(const Request& request, Claimed& claimed) {
  grpc::Status form = CheckAttemptId(request.attempt_id());
  if (form.ok()) form = ReadId(request.call_id(), claimed.call_id);
  if (!form.ok()) return form;
  if (request.supersedes().size() != 32) return Malformed("supersedes must be the 32 bytes of a receipt id");
  if (request.claim_id().size() != 16) return Malformed("claim_id must be the 16 bytes that Claim gave");
  claimed.attempt_id = ledger::ToId(request.attempt_id());
  claimed.claim_id = ledger::ToId(request.claim_id());
  return grpc::Status::OK;
}

grpc::Status CheckLookUp(const v1::NoteLookUpRequest& request) {
  const v1::LookUp& look_up = request.look_up();
  if (!IsLine(look_up.kind(), kKindBytesMax)) {
    return Malformed("look_up.kind must be 1 to 16 bytes without control characters");
  }
  if (!IsLine(look_up.provider(), kProviderBytesMax)) {
    return Malformed("look_up.provider must be 1 to 128 bytes without control characters");
  }
  if (look_up.finding() == v1::FINDING_UNSPECIFIED || !v1::Finding_IsValid(look_up.finding())) {
    return Malformed("look_up.finding must be HAPPENED, NOT_HAPPENED, ABSENT, PENDING or UNCLEAR");
  }
  if (look_up.detail().size() > kDetailBytesMax) {
    return OverLimit(keys::Cat("look_up.detail has ", look_up.detail().size(), " bytes; at most 1024 are taken"));
  }
  if (look_up.detail().find('\0') != std::string::npos) return Malformed("look_up.detail must not hold NUL");
  if (look_up.body().size() > kBodyBytesMax) {
    return OverLimit(keys::Cat("look_up.body has ", look_up.body().size(),
                               " bytes; at most 64 KiB are taken: cut it, and say so in look_up.detail"));
  }
  if (request.next_look_ms() < 0 || request.next_look_ms() > kNextLookMsMax) {
    return OverLimit("next_look_ms must be 0 (no wish) to 86400000 (24 h)");
  }
  return grpc::Status::OK;
}

}  // namespace

grpc::ServerUnaryReactor* ParkedCalls::NoteLookUp(grpc::CallbackServerContext* context,
                                                  const v1::NoteLookUpRequest* request,
                                                  v1::NoteLookUpResponse* response) {
  return OnWorker(core_, "tally.v1.ParkedCalls.NoteLookUp", context,
                  [request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
                    Claimed claimed;
                    grpc::Status form = CheckLookUp(*request);
                    if (form.ok()) form = ReadClaimed(*request, claimed);
                    if (!form.ok()) return form;
                    ledger::LookUpNote note;
                    note.tenant = caller.tenant;
                    note.principal_id = caller.principal_id;
                    note.call_id = claimed.call_id;
                    note.attempt_id = claimed.attempt_id;
                    note.claim_id = claimed.claim_id;
                    note.supersedes = request->supersedes();
                    note.look_up = request->look_up();
                    note.next_look_us = request->next_look_ms() * 1000;
                    note.release_claim = request->release_claim();
                    const auto noted = ledger::NoteLookUp(connection, note);
                    if (!noted.ok()) return FromLedger(noted.status());
                    decide::Answer answer;
                    answer.verdict = noted->verdict;
                    response->set_next_look_us(noted->next_look_us);
                    return ErrorOf(answer);
                  });
}

grpc::ServerUnaryReactor* ParkedCalls::BeginReplay(grpc::CallbackServerContext* context,
                                                   const v1::BeginReplayRequest* request,
                                                   v1::BeginReplayResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(UnaryExchange(core_, "tally.v1.ParkedCalls.BeginReplay", context, reactor), std::nullopt,
            [request, response](const SharedExchange& exchange, const Ready&) {
              Claimed claimed;
              if (grpc::Status form = ReadClaimed(*request, claimed); !form.ok()) return exchange->Finish(form);
              decide::ReplayRequest replay;
              replay.principal.id = exchange->caller().principal_id;
              replay.call_id = claimed.call_id;
              replay.attempt_id = claimed.attempt_id;
              replay.claim_id = claimed.claim_id;
              replay.supersedes = request->supersedes();
              Decide(
                  exchange, ledger::ShardOf(claimed.call_id), lane::Priority::kReport, std::move(replay), {},
                  [response](ledger::Reply& reply) { MoveReceipts(reply, *response); }, ErrorOf);
            });
  return reactor;
}

}  // namespace tally::rpc
