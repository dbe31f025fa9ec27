#include <chrono>

#include "lib/decide/prepare.h"
#include "lib/keys/hash.h"
#include "lib/keys/text.h"
#include "server/ledger/ids.h"
#include "server/rpc/calls.h"
#include "server/rpc/checks.h"
#include "server/rpc/decision.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

constexpr std::string_view kMethod = "tally.v1.Calls.Authorize";

grpc::Status CheckForm(const v1::AuthorizeRequest& request) {
  grpc::Status status = CheckKey("key", request.key());
  if (status.ok()) status = CheckAttemptId(request.attempt_id());
  if (status.ok() && request.has_intent()) status = CheckKey("intent", request.intent());
  if (status.ok() && request.has_lease_ms()) status = CheckLeaseMs(request.lease_ms());
  if (!status.ok()) return status;
  if (!decide::IsToolName(request.tool())) return Malformed("tool must be [A-Za-z0-9_.\\-/]{1,128}");
  if (request.has_amount() && request.amount() < 0) return Malformed("amount must not be negative");
  if (request.arguments().size() > kArgumentsBytesMax) {
    return OverLimit(keys::Cat("arguments have ", request.arguments().size(), " bytes; at most 256 KiB are taken"));
  }
  return grpc::Status::OK;
}

// Only the decision's own clock counts; this one merely orders ids roughly.
int64_t UnixMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A REPLAY without its body must not look like an answer of no bytes.
v1::Refusal BodyIsGone() {
  decide::Answer done;
  done.verdict = decide::Verdict::kAlreadyDone;
  v1::Refusal refusal = RefusalOf(done);
  refusal.set_message("Already done, and its answer is not kept. Nothing new was done; go on.");
  return refusal;
}

void Fill(const v1::AuthorizeRequest& request, ledger::Reply& reply, v1::AuthorizeResponse& response) {
  const decide::Answer& answer = reply.answer;
  response.set_disposition(decide::Info(answer.verdict).disposition);
  v1::Refusal refusal = RefusalOf(answer);
  if (answer.verdict == decide::Verdict::kReplay && !reply.result) refusal = BodyIsGone();
  if (refusal.kind() != v1::KIND_UNSPECIFIED) *response.mutable_refusal() = std::move(refusal);
  if (answer.call_id) response.set_call_id(ledger::IdText(*answer.call_id));
  // The asker's own. Another attempt's id is for whoever made it: it fences what is said about that attempt.
  response.set_attempt_id(request.attempt_id());
  response.set_attempt_number(answer.attempt_number);
  response.set_state(answer.state);
  response.set_send_within_ms(answer.send_within / 1000);
  response.set_lease_ms(answer.lease / 1000);
  response.set_lease_end_us(answer.lease_end);
  MoveReceipts(reply, response);
  if (answer.repeat_of) response.set_repeat_of(ledger::IdText(*answer.repeat_of));
  if (response.disposition() == v1::REPLAY) response.set_outcome(answer.state);
  response.set_reference(answer.opaque_reference);
  if (reply.result) {
    response.set_has_result(true);
    response.set_result(*std::move(reply.result));
  }
}

void Prepared(const SharedExchange& exchange, const Ready& ready, const v1::AuthorizeRequest& request,
              v1::AuthorizeResponse& response) {
  const decide::PermitTerms& terms = *ready.terms;
  std::optional<decide::Money> amount;
  if (request.has_amount()) amount = request.amount();
  std::optional<std::string_view> intent;
  if (request.has_intent()) intent = request.intent();
  auto prepared = decide::Prepare(terms, ready.secret->Expose(), request.key(), request.tool(), request.arguments(),
                                  amount, intent, request.repeat());
  if (!prepared.ok()) {
    std::string_view what(prepared.status().message().data(), prepared.status().message().size());
    constexpr std::string_view kEnd = ". Nothing was done.";
    if (what.ends_with(kEnd)) what.remove_suffix(kEnd.size());
    return exchange->Finish(NotCanonical(what));
  }
  ledger::Bodies bodies;
  bodies.arguments = std::move(prepared->canonical_arguments);
  bodies.arguments_salt = ledger::ToHash(keys::RandomBytes(keys::kSaltSize));
  decide::AuthorizeRequest& call = prepared->request;
  call.principal.id = exchange->caller().principal_id;
  call.attempt_id = ledger::ToId(request.attempt_id());
  call.new_call_id = ledger::ToId(keys::NewUuid7(UnixMs(), static_cast<uint16_t>(terms.shard)));
  call.arguments_commitment =
      keys::Commit(keys::Domain::kArguments, ledger::Bytes(bodies.arguments_salt), bodies.arguments).bytes;
  if (request.has_lease_ms()) call.lease = request.lease_ms() * 1000;
  Decide(exchange, terms.shard, lane::Priority::kNew, std::move(call), std::move(bodies),
         [&request, &response](ledger::Reply& reply) { Fill(request, reply, response); });
}

}  // namespace

grpc::ServerUnaryReactor* Calls::Authorize(grpc::CallbackServerContext* context, const v1::AuthorizeRequest* request,
                                           v1::AuthorizeResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(UnaryExchange(core_, kMethod, context, reactor), request->permit_token(),
            [request, response](const SharedExchange& exchange, const Ready& ready) {
              const grpc::Status form = CheckForm(*request);
              form.ok() ? Prepared(exchange, ready, *request, *response) : exchange->Finish(form);
            });
  return reactor;
}

}  // namespace tally::rpc
