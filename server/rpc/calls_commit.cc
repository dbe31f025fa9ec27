#include <array>

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

constexpr std::string_view kContentDomain{"tallystick/content/v1\0", 22};

// By id, or by permit token and key; not both, so that it is plain which one counts.
template <typename Request>
grpc::Status CheckName(const Request& request) {
  const bool by_id = !request.call_id().empty();
  const bool by_key = !request.permit_token().empty() || !request.key().empty();
  if (by_id == by_key) return Malformed("name the call by call_id, or by permit_token and key");
  if (by_id) {
    decide::Id id;
    return ReadId(request.call_id(), id);
  }
  if (request.permit_token().empty()) return Malformed("permit_token is missing");
  return CheckKey("key", request.key());
}

template <typename Request>
std::optional<std::string_view> TokenOf(const Request& request) {
  if (request.permit_token().empty()) return std::nullopt;
  return request.permit_token();
}

struct Named {
  decide::CallName name;
  int16_t shard = 0;
};

// CheckName has passed.
template <typename Request>
Named NameOf(const Request& request, const Ready& ready) {
  if (ready.terms != nullptr) {
    return {decide::CallName::OfKey(ready.terms->permit_id, request.key()), ready.terms->shard};
  }
  const decide::Id id = *ledger::ParseId(request.call_id());
  return {decide::CallName::OfCall(id), ledger::ShardOf(id)};
}

grpc::Status CheckCommit(const v1::CommitRequest& request) {
  const v1::CommitOutcome outcome = request.outcome();
  grpc::Status status = CheckAttemptId(request.attempt_id());
  if (!status.ok()) return status;
  if (outcome < v1::OUTCOME_SUCCEEDED || outcome > v1::OUTCOME_UNCERTAIN) {
    return Malformed("outcome must be SUCCEEDED, TOOL_ERROR, NOT_SENT or UNCERTAIN");
  }
  const bool answered = outcome == v1::OUTCOME_SUCCEEDED || outcome == v1::OUTCOME_TOOL_ERROR;
  if (request.has_result() && !answered) return Malformed("only SUCCEEDED and TOOL_ERROR carry a result");
  if (request.has_amount() && outcome != v1::OUTCOME_SUCCEEDED) return Malformed("only SUCCEEDED carries an amount");
  if (request.amount() < 0) return Malformed("amount must not be negative");
  if (request.no_effect() && outcome != v1::OUTCOME_TOOL_ERROR) return Malformed("only TOOL_ERROR may say no_effect");
  if (request.undelivered() && !answered) return Malformed("only an answer can be undelivered");
  if (!request.partial_answer().empty() && outcome != v1::OUTCOME_UNCERTAIN) {
    return Malformed("only UNCERTAIN carries a partial_answer");
  }
  if (request.partial_answer().size() > kPartialBytesMax) {
    return OverLimit(
        keys::Cat("partial_answer has ", request.partial_answer().size(), " bytes; at most 64 KiB are taken"));
  }
  if (request.sent_at_us() < 0) return Malformed("sent_at_us must not be negative");
  return grpc::Status::OK;
}

decide::Outcome OutcomeOf(v1::CommitOutcome outcome) {
  switch (outcome) {
    case v1::OUTCOME_SUCCEEDED:
      return decide::Outcome::kSucceeded;
    case v1::OUTCOME_TOOL_ERROR:
      return decide::Outcome::kToolError;
    case v1::OUTCOME_NOT_SENT:
      return decide::Outcome::kNotSent;
    default:
      return decide::Outcome::kUncertain;
  }
}

// What makes two reports of an end the same. Keyed with the tenant's secret: a bare hash of a small result can be
// guessed.
decide::Hash ContentOf(const v1::CommitRequest& request, const keys::Secret& secret) {
  const std::array<char, 4> flags = {static_cast<char>(request.outcome()), static_cast<char>(request.has_result()),
                                     static_cast<char>(request.has_amount()), static_cast<char>(request.no_effect())};
  std::string amount;
  for (int shift = 56; shift >= 0; shift -= 8) amount.push_back(static_cast<char>(request.amount() >> shift));
  return keys::HmacSha256(secret.Expose(),
                          {kContentDomain, std::string_view(flags.data(), flags.size()), amount, request.result()})
      .bytes;
}

decide::CommitRequest Report(const v1::CommitRequest& request, const Ready& ready, decide::CallName name,
                             ledger::Bodies& bodies) {
  decide::CommitRequest report;
  report.call = std::move(name);
  if (ready.terms != nullptr) {
    report.key_hash = decide::KeyHash(ready.secret->Expose(), ready.terms->permit_id, request.key());
  }
  report.attempt_id = ledger::ToId(request.attempt_id());
  report.outcome = OutcomeOf(request.outcome());
  report.content = ContentOf(request, *ready.secret);
  if (request.has_amount()) report.amount = request.amount();
  report.no_effect = request.no_effect();
  report.undelivered = request.undelivered();
  report.sent_at = request.sent_at_us();
  report.has_partial = !request.partial_answer().empty();
  bodies.partial_answer = request.partial_answer();
  if (!request.has_result()) return report;
  bodies.result_salt = ledger::ToHash(keys::RandomBytes(keys::kSaltSize));
  report.has_result = true;
  report.result_size = static_cast<int64_t>(request.result().size());
  report.result_commitment =
      keys::Commit(keys::Domain::kResult, ledger::Bytes(bodies.result_salt), request.result()).bytes;
  if (request.result().size() <= kResultBytesMax) bodies.result = request.result();
  return report;
}

void Fill(ledger::Reply& reply, bool kept, v1::CommitResponse& response) {
  v1::Refusal refusal = RefusalOf(reply.answer);
  if (refusal.kind() != v1::KIND_UNSPECIFIED) *response.mutable_refusal() = std::move(refusal);
  if (reply.answer.call_id) response.set_call_id(ledger::IdText(*reply.answer.call_id));
  response.set_attempt_number(reply.answer.attempt_number);
  response.set_state(reply.answer.state);
  response.set_attempt_state(reply.answer.attempt_state);
  response.set_result_kept(kept);
  MoveReceipts(reply, response);
}

}  // namespace

grpc::ServerUnaryReactor* Calls::Commit(grpc::CallbackServerContext* context, const v1::CommitRequest* request,
                                        v1::CommitResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(UnaryExchange(core_, "tally.v1.Calls.Commit", context, reactor), TokenOf(*request),
            [request, response](const SharedExchange& exchange, const Ready& ready) {
              grpc::Status form = CheckCommit(*request);
              if (form.ok()) form = CheckName(*request);
              if (!form.ok()) return exchange->Finish(form);
              const bool kept = request->result().size() <= kResultBytesMax;
              Named named = NameOf(*request, ready);
              ledger::Bodies bodies;
              decide::CommitRequest report = Report(*request, ready, std::move(named.name), bodies);
              report.principal.id = exchange->caller().principal_id;
              Decide(exchange, named.shard, lane::Priority::kReport, std::move(report), std::move(bodies),
                     [response, kept](ledger::Reply& reply) { Fill(reply, kept, *response); });
            });
  return reactor;
}

grpc::ServerUnaryReactor* Calls::Extend(grpc::CallbackServerContext* context, const v1::ExtendRequest* request,
                                        v1::ExtendResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  WhenReady(UnaryExchange(core_, "tally.v1.Calls.Extend", context, reactor), TokenOf(*request),
            [request, response](const SharedExchange& exchange, const Ready& ready) {
              grpc::Status form = CheckAttemptId(request->attempt_id());
              if (form.ok()) form = CheckLeaseMs(request->lease_ms());
              if (form.ok()) form = CheckName(*request);
              if (!form.ok()) return exchange->Finish(form);
              Named named = NameOf(*request, ready);
              decide::ExtendRequest extend;
              extend.principal.id = exchange->caller().principal_id;
              extend.call = std::move(named.name);
              extend.attempt_id = ledger::ToId(request->attempt_id());
              extend.lease = request->lease_ms() * 1000;
              Decide(exchange, named.shard, lane::Priority::kReport, std::move(extend), {},
                     [response](ledger::Reply& reply) {
                       v1::Refusal refusal = RefusalOf(reply.answer);
                       if (refusal.kind() != v1::KIND_UNSPECIFIED) *response->mutable_refusal() = std::move(refusal);
                       response->set_lease_end_us(reply.answer.lease_end);
                       response->set_state(reply.answer.state);
                       MoveReceipts(reply, *response);
                     });
            });
  return reactor;
}

}  // namespace tally::rpc
