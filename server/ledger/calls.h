#ifndef TALLY_SERVER_LEDGER_CALLS_H_
#define TALLY_SERVER_LEDGER_CALLS_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "lib/decide/request.h"
#include "lib/keys/signer.h"
#include "server/lane/job.h"
#include "server/ledger/terms_cache.h"
#include "server/ledger/transaction.h"
#include "tally/v1/receipt.pb.h"

// The hot path: everything that is decided goes load → decide → sign → store in one SERIALIZABLE transaction over a
// batch.
namespace tally::ledger {

struct RevokeRequest : decide::PermitRequest {};
struct CloseRequest : decide::PermitRequest {};

using Request = std::variant<decide::AuthorizeRequest, decide::CommitRequest, decide::ExtendRequest,
                             decide::ResolveRequest, decide::CorrectRequest, decide::ClaimRequest,
                             decide::ReplayRequest, decide::SweepRequest, RevokeRequest, CloseRequest>;

// What is kept beside the decision if the decision says so. Never logged.
struct Bodies {
  std::string arguments;  // canonical JSON
  decide::Hash arguments_salt{};
  std::string result;  // empty and has_result: too large to be kept
  decide::Hash result_salt{};
  std::string partial_answer;
  // Evidence of Resolve and Correct.
  std::string reference;
  std::string reason;
  int64_t observed_at_us = 0;  // 0: now
  std::string evidence;
  decide::Hash evidence_salt{};
};

struct Reply {
  decide::Answer answer;
  std::vector<v1::Receipt> receipts;  // in the order of answer.receipts, byte for byte as stored
  std::optional<std::string> result;  // of the call named by answer.result_of, if it is kept
};

// One request under way. `request.principal` needs only its id; the store reads the rest inside the transaction.
class CallJob final : public lane::Job {
 public:
  // `done` is called exactly once, from a lane's thread; with kDone the reply is complete.
  using Done = absl::AnyInvocable<void(lane::Fate, Reply&)>;

  CallJob(int16_t shard, lane::Priority priority, Clock::time_point deadline, Request what, Bodies kept, Done done)
      : Job(shard, priority, deadline), request(std::move(what)), bodies(std::move(kept)), done_(std::move(done)) {}

  void Finish(lane::Fate fate) override { done_(fate, reply); }

  Request request;
  Bodies bodies;
  Reply reply;

 private:
  Done done_;
};

// Every job given to it must be a CallJob.
class CallStore final : public lane::Store {
 public:
  // Told why a batch could not be stored; for the log only, since it may carry values.
  using OnFailure = std::function<void(const TxResult&)>;

  CallStore(std::string conninfo, const keys::Signer& signer, TermsCache& terms, OnFailure on_failure = nullptr);
  ~CallStore() override;

  lane::BatchEnd Run(std::span<lane::Job* const> batch, bool under_lock) override;

 private:
  Connection connection_;
  const keys::Signer& signer_;
  TermsCache& terms_;
  OnFailure on_failure_;
};

// A receipt as stored, byte for byte.
v1::Receipt ReceiptOf(std::string receipt_id, std::string payload, std::string signature);

// Ids of calls whose lease is over and which are still AUTHORIZED, oldest first; a READ COMMITTED look that decides
// nothing.
TxResult FindLapsed(Connection& connection, int limit, std::vector<decide::Id>* calls);

// The shard of a tenant and subject, and of an id that carries one (permit and call ids do).
inline constexpr int16_t kShards = 16;
int16_t ShardOf(std::string_view tenant, std::string_view subject);
int16_t ShardOf(const decide::Id& id);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_CALLS_H_
