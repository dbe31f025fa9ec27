#include "server/ledger/calls.h"

#include <stdexcept>
#include <type_traits>

#include "lib/decide/decide.h"
#include "lib/keys/uuid.h"
#include "lib/receipt/payload.h"
#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"
#include "server/ledger/constraints.h"

namespace tally::ledger {
namespace {

using decide::Answer;
using decide::Id;

constexpr int32_t kLockSpace = 0x7a11;  // of session advisory locks, one a shard
constexpr int kRunsMax = 3;             // of one batch, before its lane is told

// Thrown to roll back and decide again with the attempt ids looked up.
struct AttemptIdsUsed {};

Answer Decide(decide::World& world, const Request& request) {
  return std::visit(
      [&world](const auto& r) -> Answer {
        using T = std::decay_t<decltype(r)>;
        if constexpr (std::is_same_v<T, decide::AuthorizeRequest>) return decide::Authorize(world, r);
        if constexpr (std::is_same_v<T, decide::CommitRequest>) return decide::Commit(world, r);
        if constexpr (std::is_same_v<T, decide::ExtendRequest>) return decide::Extend(world, r);
        if constexpr (std::is_same_v<T, decide::ResolveRequest>) return decide::Resolve(world, r);
        if constexpr (std::is_same_v<T, decide::CorrectRequest>) return decide::Correct(world, r);
        if constexpr (std::is_same_v<T, decide::ClaimRequest>) return decide::Claim(world, r);
        if constexpr (std::is_same_v<T, decide::ReplayRequest>) return decide::BeginReplay(world, r);
        if constexpr (std::is_same_v<T, decide::SweepRequest>) return decide::Sweep(world, r);
        if constexpr (std::is_same_v<T, RevokeRequest>) return decide::Revoke(world, r);
        if constexpr (std::is_same_v<T, CloseRequest>) return decide::Close(world, r);
      },
      request);
}

std::optional<Id> AttemptIdOf(const Request& request) {
  return std::visit(
      [](const auto& r) -> std::optional<Id> {
        if constexpr (
            requires { r.outcome; } || requires { r.prepared; })
          return r.attempt_id;
        return std::nullopt;
      },
      request);
}

int64_t ResultSizeOf(const Request& request) {
  return std::visit(
      [](const auto& r) -> int64_t {
        if constexpr (requires { r.result_size; }) return r.result_size;
        if constexpr (requires { r.evidence.result_size; }) return r.evidence.result_size;
        return 0;
      },
      request);
}

std::string SourceOf(const Request& request) {
  return std::visit(
      [](const auto& r) -> std::string {
        if constexpr (requires { r.evidence.source; }) return r.evidence.source;
        return "";
      },
      request);
}

// Evidence ids follow the database's clock like every other id.
Id NewId(decide::Time now, int16_t shard) {
  Id id;
  const std::string bytes = keys::NewUuid7(now / 1000, static_cast<uint16_t>(shard));
  std::copy(bytes.begin(), bytes.end(), id.begin());
  return id;
}

// What the answer says is to be kept, gathered by call.
void Keep(Batch& batch, CallJob& job, size_t notes_before) {
  const Answer& answer = job.reply.answer;
  const decide::Principal* principal = PrincipalOf(job.request);
  if (answer.call_id) {
    CallBodies& bodies = batch.bodies[*answer.call_id];
    if (answer.keep_arguments) bodies.arguments = &job.bodies;
    if (answer.keep_partial) bodies.partial = &job.bodies;
    if (answer.keep_result) {
      bodies.result = &job.bodies;
      bodies.result_size = ResultSizeOf(job.request);
    }
  }
  for (size_t i = notes_before; i < batch.world.notes.size(); ++i) {
    const decide::EvidenceNote& note = batch.world.notes[i];
    EvidenceRow& row = batch.evidence.emplace_back();
    row.evidence_id = NewId(batch.world.now, ShardOf(note.call_id));
    row.call_id = note.call_id;
    row.attempt_id = note.attempt_id;
    row.principal_id = principal->id;
    row.source = note.source;
    row.bodies = &job.bodies;
    row.body_is_result = note.receipt_seq > 0;
    row.receipt_seq = note.receipt_seq;
  }
  const std::string source = SourceOf(job.request);
  if (!answer.keep_evidence || source.empty()) return;
  EvidenceRow& row = batch.evidence.emplace_back();
  row.evidence_id = NewId(batch.world.now, ShardOf(*answer.call_id));
  row.call_id = *answer.call_id;
  row.attempt_id = answer.attempt_id;
  row.principal_id = principal->id;
  row.source = source;
  row.bodies = &job.bodies;
  row.receipt_seq = answer.receipts.empty() ? 0 : answer.receipts.front().sequence;
  const decide::Call& call = batch.world.calls.at(*answer.call_id);
  if (call.last() != nullptr && call.last()->attempt_id == answer.attempt_id) {
    batch.bodies[*answer.call_id].resolution = row.evidence_id;
  }
}

// Requests are decided one after the other; each sees what those before it did.
void DecideAll(Tx& tx, Batch& batch) {
  std::set<Id> unseen;
  for (lane::Job* job : batch.jobs) {
    CallJob& call_job = JobOf(job);
    const size_t notes_before = batch.world.notes.size();
    call_job.reply = {};
    call_job.reply.answer = Decide(batch.world, call_job.request);
    Keep(batch, call_job, notes_before);
    const std::optional<Id> attempt_id = AttemptIdOf(call_job.request);
    if (attempt_id && !batch.world.attempts.contains(*attempt_id)) unseen.insert(*attempt_id);
  }
  // What is granted or voided is checked by its insert. The others were decided as if their attempt ids were unused.
  if (unseen.empty() || batch.know_attempt_ids) return;
  if (LoadAttemptIds(tx, batch, unseen)) throw AttemptIdsUsed{};
}

// Seals the drafts into their permits' chains in order, then signs. Ids come from what is signed, not from the
// signature, so a receipt may name one made a moment before.
void SealAndSign(Batch& batch, const keys::Signer& signer) {
  absl::flat_hash_map<Id, receipt::ChainHead> heads;
  for (const auto& [id, permit] : batch.world.permits) heads[id] = {permit.sequence, permit.head};
  for (const decide::Draft& draft : batch.world.drafts) heads[draft.permit_id].sequence -= 1;  // back to as loaded

  for (size_t i = 0; i < batch.world.drafts.size(); ++i) {
    decide::Draft& draft = batch.world.drafts[i];
    if (draft.supersedes_seq > 0) {
      std::string& id = draft.supersedes_receipt;
      if (id.empty()) id = batch.receipts[batch.receipt_of.at({draft.permit_id, draft.supersedes_seq})].receipt_id();
      draft.payload.set_supersedes(id);
    }
    draft.payload.set_sequence(draft.sequence);
    absl::StatusOr<receipt::Unsigned> sealed = receipt::Seal(std::move(draft.payload), heads[draft.permit_id], signer);
    if (!sealed.ok()) throw std::logic_error(sealed.status().ToString());
    absl::StatusOr<v1::Receipt> receipt = receipt::Sign(*sealed, signer);
    if (!receipt.ok()) throw std::runtime_error("signing failed: " + receipt.status().ToString());
    batch.receipt_of[{draft.permit_id, draft.sequence}] = i;
    batch.receipts.push_back(*std::move(receipt));
  }

  for (auto& [id, permit] : batch.world.permits) permit.head = heads[id].id;
  for (auto& [id, call] : batch.world.calls) {
    for (decide::Attempt& attempt : call.attempts) {
      if (!attempt.state_receipt.empty() || attempt.state_seq == 0) continue;
      const auto made = batch.receipt_of.find({call.permit_id, attempt.state_seq});
      if (made != batch.receipt_of.end()) attempt.state_receipt = batch.receipts[made->second].receipt_id();
    }
  }
}

constexpr Statement kReceipts = {
    "receipts",
    "SELECT r.chain_id, r.sequence, r.receipt_id, r.payload, r.signature"
    " FROM unnest($1::smallint[], $2::uuid[], $3::bigint[]) AS u(shard, chain_id, sequence)"
    " JOIN receipts r ON r.shard = u.shard AND r.chain_id = u.chain_id"
    " AND r.sequence = u.sequence"};

constexpr Statement kResults = {
    "results",
    "SELECT c.call_id, c.result FROM unnest($1::smallint[], $2::uuid[]) AS u(shard, call_id)"
    " JOIN calls c ON c.shard = u.shard AND c.call_id = u.call_id"
    " WHERE c.result IS NOT NULL"};

}  // namespace

void FillReplies(Tx& tx, Batch& batch) {
  std::set<std::pair<Id, int64_t>> missing;
  std::set<Id> results;
  for (lane::Job* job : batch.jobs) {
    const Answer& answer = JobOf(job).reply.answer;
    for (const decide::ReceiptRef& ref : answer.receipts) {
      if (!batch.receipt_of.contains({ref.permit_id, ref.sequence})) missing.insert({ref.permit_id, ref.sequence});
    }
    if (answer.result_of) results.insert(*answer.result_of);
  }
  absl::flat_hash_map<std::pair<Id, int64_t>, v1::Receipt> stored;
  if (!missing.empty()) {
    Int16Array shards;
    UuidArray chains;
    Int64Array sequences;
    for (const auto& [chain, sequence] : missing) {
      shards.Add(ShardOf(chain));
      chains.Add(chain);
      sequences.Add(sequence);
    }
    for (const pqxx::row& row : tx.Exec(kReceipts, shards.Param(), chains.Param(), sequences.Param())) {
      stored[{IdOf(row[0]), row[1].as<int64_t>()}] = ReceiptOf(Bytea(row[2]), Bytea(row[3]), Bytea(row[4]));
    }
  }
  absl::flat_hash_map<Id, std::string> bodies;
  if (!results.empty()) {
    Int16Array shards;
    UuidArray calls;
    for (const Id& id : results) {
      shards.Add(ShardOf(id));
      calls.Add(id);
    }
    for (const pqxx::row& row : tx.Exec(kResults, shards.Param(), calls.Param())) {
      bodies[IdOf(row[0])] = Bytea(row[1]);
    }
  }
  for (lane::Job* job : batch.jobs) {
    Reply& reply = JobOf(job).reply;
    for (const decide::ReceiptRef& ref : reply.answer.receipts) {
      const auto made = batch.receipt_of.find({ref.permit_id, ref.sequence});
      if (made != batch.receipt_of.end()) {
        reply.receipts.push_back(batch.receipts[made->second]);
      } else {
        const auto found = stored.find({ref.permit_id, ref.sequence});
        if (found == stored.end()) throw std::runtime_error("a receipt that an answer cites is not stored");
        reply.receipts.push_back(found->second);
      }
    }
    if (!reply.answer.result_of) continue;
    if (const auto body = bodies.find(*reply.answer.result_of); body != bodies.end()) reply.result = body->second;
  }
}

v1::Receipt ReceiptOf(std::string receipt_id, std::string payload, std::string signature) {
  v1::Receipt receipt;
  v1::ReceiptPayload fields;
  if (!fields.ParseFromString(payload)) throw std::runtime_error("a stored receipt cannot be read");
  receipt.set_receipt_id(std::move(receipt_id));
  receipt.set_key_id(fields.key_id());
  receipt.set_payload(std::move(payload));
  receipt.set_signature(std::move(signature));
  return receipt;
}

CallStore::CallStore(std::string conninfo, const keys::Signer& signer, TermsCache& terms, OnFailure on_failure)
    : connection_(std::move(conninfo)), signer_(signer), terms_(terms), on_failure_(std::move(on_failure)) {}

CallStore::~CallStore() = default;

lane::BatchEnd CallStore::Run(std::span<lane::Job* const> jobs, bool under_lock) {
  std::set<int16_t> shards;
  for (const lane::Job* job : jobs) shards.insert(job->shard());
  std::optional<Connection::AdvisoryLocks> locks;
  if (under_lock) {
    locks.emplace(connection_, kLockSpace, shards);
    if (!locks->held()) return lane::BatchEnd::kLostRace;
  }

  bool know_attempt_ids = false;
  for (int run = 0; run < kRunsMax; ++run) {
    bool decide_again = false;
    const TxResult result = InTransaction(connection_, Isolation::kSerializable, [&](Tx& tx) {
      Batch batch;
      batch.jobs = jobs;
      batch.know_attempt_ids = know_attempt_ids;
      Load(tx, batch, terms_);
      if (know_attempt_ids) {
        std::set<Id> ids;
        for (lane::Job* job : jobs) {
          if (const auto id = AttemptIdOf(JobOf(job).request); id && !batch.world.attempts.contains(*id))
            ids.insert(*id);
        }
        LoadAttemptIds(tx, batch, ids);
      }
      NoteParked(batch);
      try {
        DecideAll(tx, batch);
      } catch (const AttemptIdsUsed&) {
        decide_again = true;
        throw Abandon{};
      }
      NoteParkings(batch);
      NoteMessages(batch);
      SealAndSign(batch, signer_);
      ledger::Store(tx, batch);
      FillReplies(tx, batch);
    });
    switch (result.end) {
      case TxEnd::kCommitted:
        return lane::BatchEnd::kCommitted;
      case TxEnd::kLostRace:
        return lane::BatchEnd::kLostRace;
      case TxEnd::kDown:
        return lane::BatchEnd::kDown;
      case TxEnd::kInDoubt:
        return lane::BatchEnd::kInDoubt;
      case TxEnd::kConstraint:
        if (MeaningOf(result) == Refused::kRaced) return lane::BatchEnd::kLostRace;
        decide_again = MeaningOf(result) == Refused::kAttemptIdUsed;
        break;
      case TxEnd::kError:
        break;
    }
    if (!decide_again) {
      if (on_failure_) on_failure_(result);
      return lane::BatchEnd::kRejected;
    }
    know_attempt_ids = true;
  }
  return lane::BatchEnd::kLostRace;
}

constexpr Statement kLapsed = {"lapsed",
                               "SELECT open_call FROM intents WHERE lease_end_us <= $1::bigint"
                               " ORDER BY lease_end_us LIMIT $2::int"};

TxResult FindLapsed(Connection& connection, int limit, std::vector<Id>* calls) {
  return InTransaction(connection, Isolation::kReadOnly, [&](Tx& tx) {
    std::set<Id> seen;
    for (const pqxx::row& row : tx.Exec(kLapsed, tx.now_us(), limit)) {
      if (seen.insert(IdOf(row[0])).second) calls->push_back(IdOf(row[0]));
    }
  });
}

}  // namespace tally::ledger
