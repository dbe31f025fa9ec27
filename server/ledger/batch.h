#ifndef TALLY_SERVER_LEDGER_BATCH_H_
#define TALLY_SERVER_LEDGER_BATCH_H_

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "lib/decide/world.h"
#include "lib/json/value.h"
#include "lib/receipt/chain.h"
#include "server/ledger/calls.h"

// Inside server/ledger only: one attempt at carrying out a batch, from loading to storing.
namespace tally::ledger {

// What a job changes besides the decision core's facts, by call.
struct CallBodies {
  const Bodies* arguments = nullptr;
  const Bodies* result = nullptr;
  int64_t result_size = 0;
  const Bodies* partial = nullptr;
  std::optional<decide::Id> resolution;  // evidence of the last attempt's verdict
};

struct EvidenceRow {
  decide::Id evidence_id{};
  decide::Id call_id{};
  decide::Id attempt_id{};
  std::string principal_id;
  std::string source;
  const Bodies* bodies = nullptr;  // null: a bare note
  bool body_is_result = false;     // an answer that came after a verdict
  int64_t receipt_seq = 0;
};

// A row of `intents` that this transaction inserted for a request that may be granted.
struct ClaimRow {
  decide::Id call_id{};
  decide::Id permit_id{};
  decide::Time lease_end = 0;
};

// What this batch does to an attempt that is, or was once, parked.
struct Parking {
  int64_t parked_seq = 0;  // CALL_UNCERTAIN of this batch; 0: it was parked before
  bool escalated = false;
  bool ended = false;  // parked till now
  v1::Role ended_by = v1::ROLE_UNSPECIFIED;
  bool put_right = false;  // a contradiction or a correction gave it another end
};

// A receipt that webhooks are told of.
struct Message {
  size_t draft = 0;  // its index
  const char* type = nullptr;
  json::Object data;  // lacks the receipt's id
};

struct Batch {
  std::span<lane::Job* const> jobs;
  decide::World world;
  bool know_attempt_ids = false;  // look attempt ids up instead of trusting the insert to find the used ones
  absl::flat_hash_map<decide::Hash, int16_t> intent_shards;  // of every intent that may be stored
  absl::flat_hash_map<decide::Hash, ClaimRow> claimed;
  std::vector<v1::Receipt> receipts;                                       // one for each of world.drafts
  absl::flat_hash_map<std::pair<decide::Id, int64_t>, size_t> receipt_of;  // (permit, sequence) → index
  absl::flat_hash_map<decide::Id, CallBodies> bodies;
  std::vector<EvidenceRow> evidence;
  std::map<std::pair<decide::Id, int32_t>, Parking> parkings;  // (call, number of the attempt) → what is new
  std::vector<Message> messages;
};

inline CallJob& JobOf(lane::Job* job) { return static_cast<CallJob&>(*job); }

// ---- load.cc ----

// Loads what the batch's decisions need (see lib/decide/decide.h), in the order principals, calls, permits, intents.
// New intents are claimed by insert before anything is read of them.
void Load(Tx& tx, Batch& batch, TermsCache& terms);

// Looks up attempt ids that the world does not know. True if any was found.
bool LoadAttemptIds(Tx& tx, Batch& batch, const std::set<decide::Id>& attempt_ids);

// The principal that a request names; null for a sweep.
decide::Principal* PrincipalOf(Request& request);

// ---- store.cc ----

// Writes everything the decisions changed, comparing versions and counting rows; throws LostRace where they differ.
void Store(Tx& tx, Batch& batch);

// Parts of Store, in the order in which it takes them.
void StoreCalls(Tx& tx, Batch& batch);
void StoreAttempts(Tx& tx, Batch& batch);
void StoreIntents(Tx& tx, Batch& batch);

// ---- store_parkings.cc ----

// Before the decisions: which attempts are parked. After them, and before receipts are sealed: what they did to those.
void NoteParked(Batch& batch);
void NoteParkings(Batch& batch);
void StoreParkings(Tx& tx, Batch& batch);

// ---- store_outbox.cc ----

// After NoteParkings, and before receipts are sealed: what webhooks are to be told.
void NoteMessages(Batch& batch);
void StoreOutbox(Tx& tx, Batch& batch);

// The receipts and results that answers refer to and that were not written by this batch.
void FillReplies(Tx& tx, Batch& batch);

// ---- rows.cc ----

inline std::string_view View(const decide::Id& id) { return {reinterpret_cast<const char*>(id.data()), id.size()}; }
inline std::string_view View(const decide::Hash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}
decide::Id IdOf(const pqxx::field& uuid);  // zero for null
std::optional<decide::Id> OptionalId(const pqxx::field& uuid);
decide::Hash HashOf(const pqxx::field& bytea);  // zero for null
std::optional<decide::Hash> OptionalHash(const pqxx::field& bytea);
std::optional<decide::Hash> NonZero(const decide::Hash& hash);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_BATCH_H_
