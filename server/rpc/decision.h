#ifndef TALLY_SERVER_RPC_DECISION_H_
#define TALLY_SERVER_RPC_DECISION_H_

#include "absl/functional/any_invocable.h"
#include "server/ledger/calls.h"
#include "server/rpc/exchange.h"
#include "server/rpc/status.h"
#include "tally/v1/calls.pb.h"

namespace tally::rpc {

// Hands a request to its lane. What is an error finishes the RPC; for an answer `fill` is called on the lane's thread,
// to write the response, and then the RPC is finished. `error_of` says what is an error: FromVerdict, or ErrorOf.
void Decide(const SharedExchange& exchange, int16_t shard, lane::Priority priority, ledger::Request request,
            ledger::Bodies bodies, absl::AnyInvocable<void(ledger::Reply&)> fill,
            grpc::Status (*error_of)(const decide::Answer&) = FromVerdict);

// Likewise, and then reads something more for the response on a worker. What was decided stands: where `read` cannot be
// run, or fails, the response goes without it.
void DecideAndRead(const SharedExchange& exchange, int16_t shard, ledger::Request request, ledger::Bodies bodies,
                   absl::AnyInvocable<void(ledger::Reply&)> fill, absl::AnyInvocable<void(ledger::Connection&)> read);

// Parts of responses.
template <typename Response>
void MoveReceipts(ledger::Reply& reply, Response& response) {
  for (v1::Receipt& receipt : reply.receipts) *response.add_receipts() = std::move(receipt);
}

// Evidence as the decision and the store take it; `salt` and commitment are made here. A result over the limit leaves
// only its hash.
decide::Evidence TakeEvidence(const v1::Evidence& evidence, ledger::Bodies& bodies);

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_DECISION_H_
