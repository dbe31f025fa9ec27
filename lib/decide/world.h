#ifndef TALLY_LIB_DECIDE_WORLD_H_
#define TALLY_LIB_DECIDE_WORLD_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "lib/json/pointer.h"
#include "lib/json/projection.h"
#include "tally/v1/common.pb.h"
#include "tally/v1/receipt.pb.h"

namespace tally::schema {
class Schema;
}

// The facts a decision is made on. The ledger loads them, the decision changes them in place, the ledger stores what
// changed. Nothing here reads a clock, a database or a random number.
namespace tally::decide {

using Id = std::array<uint8_t, 16>;    // UUIDv7, or an attempt_id
using Hash = std::array<uint8_t, 32>;  // SHA-256 or HMAC-SHA-256
using Time = int64_t;                  // microseconds since the Unix epoch, the database's clock
using Money = int64_t;                 // minor units of the permit's unit
using Limit = std::optional<int64_t>;  // nullopt: unlimited

inline constexpr Time kSecond = 1'000'000;
inline constexpr Time kHour = 3600 * kSecond;
inline constexpr Time kDay = 24 * kHour;

inline constexpr int64_t kOpenCallsMax = 100'000;
inline constexpr int64_t kRefusalReceiptsMax = 10'000;
inline constexpr Time kLeaseMin = kSecond;
inline constexpr Time kLeaseMax = kDay;
inline constexpr int64_t kOverrunFactorMax = 10;

// ---- Terms: immutable once minted ----

struct CostRule {
  enum class From { kNone, kFixed, kPointer, kCaller };
  From from = From::kNone;
  Money fixed = 0;
  std::optional<json::Pointer> pointer;
};

struct GrantTerms {
  std::string tool;  // exact, or the prefix without its '*'
  bool prefix = false;
  Limit cap;
  Limit budget;
  Limit per_call;
  CostRule cost;
  std::shared_ptr<const schema::Schema> arguments;  // null: any arguments
  v1::Effect effect = v1::WRITE;
  v1::IntentScope scope = v1::INTENT_SCOPE_SUBJECT;
  std::optional<json::Projection> intent_part;  // intent_ignore or intent_fields; nullopt: all of the arguments
  Time repeat_window = 600 * kSecond;
  bool charge_tool_errors = true;  // on_tool_error = "keep"
  bool settle_reported = false;    // settle = "reported"
  Time lease = 120 * kSecond;
  Time send_within = 10 * kSecond;
  int32_t max_attempts = 5;
};

struct PermitTerms {
  Id permit_id{};
  int16_t shard = 0;
  std::string tenant;
  std::string subject;
  std::string unit;
  Limit budget;
  Time not_before = 0;
  Time expires_at = 0;
  std::vector<GrantTerms> grants;
};

// ---- State: changed by decisions ----

// What is taken of a grant or a permit.
struct Counters {
  int64_t slots = 0;  // grants only
  Money held = 0;
  Money spent = 0;
  int64_t slot_overrun = 0;
  Money overrun = 0;

  friend bool operator==(const Counters&, const Counters&) = default;
};

struct Permit {
  std::shared_ptr<const PermitTerms> terms;
  int64_t version = 0;
  bool revoked = false;
  bool closing = false;
  bool closed = false;
  int64_t revoked_seq = 0;  // receipts, 0: none
  int64_t closing_seq = 0;
  int64_t closed_seq = 0;
  int64_t denial_limit_seq = 0;
  int64_t refusals = 0;    // refusal receipts written
  int64_t open_calls = 0;  // calls with an attempt AUTHORIZED or UNCERTAIN
  int64_t attempts = 0;    // granted in all
  int64_t calls = 0;       // keys with at least one attempt
  // Attempts that have ended so, for the closing counts.
  int64_t succeeded = 0;
  int64_t tool_error = 0;
  int64_t released = 0;
  int64_t not_happened = 0;
  int64_t sequence = 0;  // of the chain's last receipt
  std::string head;      // its id, as loaded
  Counters money;
  std::vector<Counters> grants;         // one for each of terms->grants
  std::vector<int64_t> grant_versions;  // as loaded

  bool dirty = false;
  std::vector<bool> grant_dirty;
};

// One granted try. `state` is AUTHORIZED, UNCERTAIN or an end.
struct Attempt {
  Id attempt_id{};
  int32_t number = 0;
  v1::CallState state = v1::CALL_STATE_UNSPECIFIED;
  bool by_verdict = false;      // ended by Resolve, Correct or a contradiction
  bool read_no_answer = false;  // TOOL_ERROR, but only for want of an answer (READ)
  bool has_result = false;      // the end carries an answer's bytes (for RESOLVED_HAPPENED: attached)
  bool slot = false;            // its slot is taken
  bool undelivered = false;
  Money hold = 0;     // what was reserved at the grant
  Money held = 0;     // what is reserved now
  Money charged = 0;  // what is spent now
  Time granted_at = 0;
  Time lease = 0;  // as granted
  Time send_within = 0;
  Time lease_end = 0;  // as extended
  Time sent_at = 0;    // as the gateway reported it; 0: unknown
  Hash content{};      // of the end, see docs/decisions.md; zero where the end carried none
  Hash attached{};     // of what was attached after a verdict
  int64_t allowed_seq = 0;
  int64_t state_seq = 0;      // the receipt that brought the present state
  std::string state_receipt;  // its id; empty when drafted in this batch
  std::string superseded;     // id of the receipt that the present state's verdict answered
  int64_t escalated_seq = 0;  // CALL_ESCALATED
  int64_t attached_seq = 0;
  bool late_not_sent = false;  // a NOT_SENT came too late and was noted
  std::string principal_id;    // the gateway that was granted it

  bool dirty = false;
  bool open() const { return state == v1::AUTHORIZED || state == v1::UNCERTAIN; }
};

// One key of one permit: the record of a call, or another name of one, or only refusals.
struct Call {
  Id call_id{};
  Id permit_id{};
  int64_t version = 0;
  std::string key;
  std::string tool;
  int32_t grant_index = 0;  // from 1; 0: none
  // The fingerprint, part by part, so that a differing part can be named.
  Hash fp_arguments{};
  std::optional<Money> fp_amount;
  std::optional<Hash> fp_intent;
  Time first_seen = 0;
  std::optional<Id> bound_to;  // another name of that call
  int64_t bound_seq = 0;       // CALL_REPEATED
  std::string refusal;         // code of the last refusal; empty: none
  int64_t refusal_seq = 0;
  Hash intent{};  // zero for READ
  std::optional<Hash> explicit_intent;
  bool ever_uncertain = false;
  int32_t contradicted = 0;    // number of the attempt whose late success stands; 0: none
  int32_t result_attempt = 0;  // whose answer is stored as the call's result; 0: none
  int64_t last_seq = 0;        // the call's latest receipt; receipts link backwards from it
  std::string attention;       // why a person is called; empty: not
  // The claim of a reconciler.
  std::optional<Id> claim_id;
  Time claim_until = 0;
  std::string claimed_by;
  std::vector<Attempt> attempts;  // number 1, 2, …; the last is the present one

  bool fresh = false;  // made in this batch: insert
  bool dirty = false;
  Attempt* last() { return attempts.empty() ? nullptr : &attempts.back(); }
  const Attempt* last() const { return attempts.empty() ? nullptr : &attempts.back(); }
  // The state of a call is its last attempt's, except that a contradicted call with none open is SUCCEEDED.
  v1::CallState state() const;
  bool open() const { return !attempts.empty() && attempts.back().open(); }
};

// The rows of `intents` that an open attempt of this call holds: its intent and explicit intent, or, for a READ, the
// call's own id.
std::vector<Hash> ClaimsOf(const Call& call);

// Who has an intent open, and which call did it last. A READ, which has no intent, stands under its call's own id while
// it is open, so that its lease is found; that row goes when the attempt ends.
struct Intent {
  Hash hash{};
  std::optional<Id> open_call;
  Id open_permit{};
  Time lease_end = 0;  // of the open attempt while AUTHORIZED; 0: parked or none
  std::optional<Id> done_call;
  Id done_permit{};
  Time done_at = 0;
  Time done_until = 0;
  bool own = false;  // a READ's

  // The store compares: whoever had it open when the decision was made must still have it. A decision on an open call
  // need not load its intents; that the call has them open is known, and compared all the same.
  std::optional<Id> open_was;
  bool open_dirty = false;
  bool done_dirty = false;
};

// Where an attempt_id is used already.
struct AttemptUse {
  std::optional<Id> call_id;  // nullopt: a tombstone
  Id permit_id{};
  int64_t voided_seq = 0;  // a tombstone's receipt
  bool fresh = false;      // made in this batch: insert
};

// ---- What a decision produces besides changed facts ----

// A receipt to be sealed into its permit's chain, in order. The payload lacks issuer, key id and the previous receipt's
// id, and `supersedes` where `supersedes_seq` names it.
struct Draft {
  Id permit_id{};
  int64_t sequence = 0;
  v1::ReceiptPayload payload;
  int64_t supersedes_seq = 0;      // 0: none
  std::string supersedes_receipt;  // its id, if it was known before this batch
  std::optional<Id> call_id;
  int64_t call_previous_seq = 0;  // the call's receipt before this one
};

// Something to be kept as evidence beside a receipt or a refused message.
struct EvidenceNote {
  Id call_id{};
  Id attempt_id{};
  std::string source;
  int64_t receipt_seq = 0;  // 0: no receipt cites it
};

struct World {
  Time now = 0;
  absl::node_hash_map<Id, Permit> permits;
  absl::node_hash_map<Id, Call> calls;
  absl::flat_hash_map<std::pair<Id, std::string>, Id> keys;  // (permit, key) → call
  absl::node_hash_map<Hash, Intent> intents;                 // absent: nobody has or did it (or it need not be known)
  // Attempt ids known to be used. An id that is not here is decided as unseen; the store's unique constraint, or the
  // ledger's look-up where nothing is inserted, catches the rest and the batch is decided again.
  absl::flat_hash_map<Id, AttemptUse> attempts;
  std::vector<Draft> drafts;
  std::vector<EvidenceNote> notes;
};

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_WORLD_H_
