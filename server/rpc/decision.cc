#include "server/rpc/decision.h"

#include "lib/keys/hash.h"
#include "server/ledger/ids.h"
#include "server/rpc/checks.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

void Submit(const SharedExchange& exchange, int16_t shard, lane::Priority priority, ledger::Request request,
            ledger::Bodies bodies, absl::AnyInvocable<void(ledger::Reply&)> then,
            grpc::Status (*error_of)(const decide::Answer&)) {
  auto done = [exchange, error_of, then = std::move(then)](lane::Fate fate, ledger::Reply& reply) mutable {
    if (fate != lane::Fate::kDone) return exchange->Finish(FromFate(fate));
    exchange->core().metrics.Verdict(reply.answer.verdict);
    const grpc::Status error = error_of(reply.answer);
    error.ok() ? then(reply) : exchange->Finish(error);
  };
  exchange->core().router.Submit(std::make_unique<ledger::CallJob>(
      shard, priority, exchange->deadline(), std::move(request), std::move(bodies), std::move(done)));
}

}  // namespace

void Decide(const SharedExchange& exchange, int16_t shard, lane::Priority priority, ledger::Request request,
            ledger::Bodies bodies, absl::AnyInvocable<void(ledger::Reply&)> fill,
            grpc::Status (*error_of)(const decide::Answer&)) {
  auto then = [exchange, fill = std::move(fill)](ledger::Reply& reply) mutable {
    fill(reply);
    exchange->Finish(grpc::Status::OK);
  };
  Submit(exchange, shard, priority, std::move(request), std::move(bodies), std::move(then), error_of);
}

void DecideAndRead(const SharedExchange& exchange, int16_t shard, ledger::Request request, ledger::Bodies bodies,
                   absl::AnyInvocable<void(ledger::Reply&)> fill, absl::AnyInvocable<void(ledger::Connection&)> read) {
  auto then = [exchange, fill = std::move(fill), read = std::move(read)](ledger::Reply& reply) mutable {
    fill(reply);
    const Workers::Post post =
        exchange->core().workers.Submit([exchange, read = std::move(read)](ledger::Connection* connection) mutable {
          if (connection != nullptr) read(*connection);
          exchange->Finish(grpc::Status::OK);
        });
    if (post != Workers::Post::kTaken) exchange->Finish(grpc::Status::OK);
  };
  Submit(exchange, shard, lane::Priority::kReport, std::move(request), std::move(bodies), std::move(then), FromVerdict);
}

decide::Evidence TakeEvidence(const v1::Evidence& evidence, ledger::Bodies& bodies) {
  decide::Evidence taken;
  bodies.reference = evidence.reference();
  bodies.reason = evidence.reason();
  bodies.observed_at_us = evidence.observed_at_us();
  bodies.evidence = evidence.body();
  bodies.evidence_salt = ledger::ToHash(keys::RandomBytes(keys::kSaltSize));
  taken.source = evidence.source();
  taken.commitment = keys::Commit(keys::Domain::kEvidence, ledger::Bytes(bodies.evidence_salt), evidence.body()).bytes;
  if (evidence.has_amount()) taken.amount = evidence.amount();
  if (!evidence.has_result()) return taken;
  bodies.result_salt = ledger::ToHash(keys::RandomBytes(keys::kSaltSize));
  taken.has_result = true;
  taken.result_size = static_cast<int64_t>(evidence.result().size());
  taken.result_commitment =
      keys::Commit(keys::Domain::kResult, ledger::Bytes(bodies.result_salt), evidence.result()).bytes;
  if (evidence.result().size() <= kResultBytesMax) bodies.result = evidence.result();
  return taken;
}

}  // namespace tally::rpc
