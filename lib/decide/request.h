#ifndef TALLY_LIB_DECIDE_REQUEST_H_
#define TALLY_LIB_DECIDE_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/decide/verdict.h"
#include "lib/decide/world.h"

namespace tally::decide {

// Who speaks, as the transaction that decides has read it.
struct Principal {
  std::string id;
  std::string tenant;  // empty: all (admins)
  v1::Role role = v1::ROLE_UNSPECIFIED;
  bool disabled = false;
  bool hard = false;  // disabled with --hard
};

// What lib/decide/prepare.h finds out before the transaction: it needs only the request and the permit's terms.
struct Prepared {
  enum class Check { kPass, kViolated, kUnenforceable };
  int32_t grant_index = 0;     // from 1; 0: no grant for the tool
  Check check = Check::kPass;  // schema and cost
  std::string detail;          // which constraint, without argument values
  Money amount = 0;            // the hold to take
  Hash intent{};               // scoped and keyed; zero for READ or no grant
  std::optional<Hash> explicit_intent;
};

struct AuthorizeRequest {
  Principal principal;
  Id permit_id{};
  std::string key;
  Hash key_hash{};
  Id attempt_id{};
  Id new_call_id{};  // used if the key turns out to be new
  std::string tool;
  Hash fp_arguments{};
  std::optional<Money> amount;
  std::optional<Hash> fp_intent;
  Hash fingerprint_hash{};
  Hash arguments_commitment{};
  bool repeat = false;
  std::optional<Time> lease;
  Prepared prepared;
};

// Which call is meant.
struct CallName {
  std::optional<Id> call_id;
  // Or: permit and key.
  Id permit_id{};
  std::string key;

  static CallName OfCall(const Id& call_id) { return {call_id, {}, {}}; }
  static CallName OfKey(const Id& permit_id, std::string key) { return {std::nullopt, permit_id, std::move(key)}; }
};

enum class Outcome { kNotSent, kUncertain, kSucceeded, kToolError };

struct CommitRequest {
  Principal principal;
  CallName call;
  Hash key_hash{};  // where named by key: for a tombstone's receipt
  Id attempt_id{};
  Outcome outcome = Outcome::kUncertain;
  Hash content{};  // over the outcome and what docs/decisions.md says; zero for NOT_SENT and UNCERTAIN
  bool has_result = false;
  Hash result_commitment{};
  int64_t result_size = 0;
  std::optional<Money> amount;
  bool no_effect = false;
  bool undelivered = false;
  Time sent_at = 0;
  bool has_partial = false;  // a partial answer comes along
};

struct ExtendRequest {
  Principal principal;
  CallName call;
  Id attempt_id{};
  Time lease = 0;
};

enum class Finding { kHappened, kNotHappened, kCannotTell };

// Evidence, as far as the decision needs it. Its presence and form are checked before.
struct Evidence {
  std::string source;
  Hash commitment{};
  std::optional<Money> amount;
  bool has_result = false;
  Hash result_commitment{};
  int64_t result_size = 0;
};

struct ResolveRequest {
  Principal principal;
  Id call_id{};
  Id attempt_id{};
  std::string supersedes;  // receipt id of the CALL_UNCERTAIN it answers
  std::optional<Id> claim_id;
  Finding finding = Finding::kCannotTell;
  Evidence evidence;
};

struct CorrectRequest {
  Principal principal;
  Id call_id{};
  Id attempt_id{};
  std::string supersedes;                // receipt id of the end it corrects
  Finding finding = Finding::kHappened;  // never kCannotTell
  Evidence evidence;
};

struct ClaimRequest {
  Principal principal;
  Id call_id{};
  Id new_claim_id{};
  Time claim = 0;  // how long
};

// A keyed tool is about to be asked again: a send.
struct ReplayRequest {
  Principal principal;
  Id call_id{};
  Id attempt_id{};
  std::string supersedes;  // receipt id of the CALL_UNCERTAIN it is about
  Id claim_id{};
};

struct PermitRequest {
  Principal principal;
  Id permit_id{};
};

// Parks what a dead gateway left.
struct SweepRequest {
  Id call_id{};
};

struct ReceiptRef {
  Id permit_id{};
  int64_t sequence = 0;
  friend bool operator==(const ReceiptRef&, const ReceiptRef&) = default;
};

struct Answer {
  Verdict verdict = Verdict::kRecorded;
  // Authorize: what the gateway may do. The refusal's kind, code and words come from Info(verdict), or, where a key
  // past its limit repeats a code, from the same place.
  std::string detail;  // adds to the message: the constraint, the fields that differ, the attempt's end
  std::optional<Id> call_id;
  Id attempt_id{};
  int32_t attempt_number = 0;
  v1::CallState state = v1::CALL_STATE_UNSPECIFIED;          // of the call
  v1::CallState attempt_state = v1::CALL_STATE_UNSPECIFIED;  // of the attempt named
  Time send_within = 0;
  Time lease = 0;  // as granted
  Time lease_end = 0;
  std::optional<Id> repeat_of;   // the call this one repeats
  std::optional<Id> result_of;   // whose stored result belongs to the answer
  std::string opaque_reference;  // INTENT_PENDING, ALREADY_DONE: names the other call without revealing it
  bool wrote = false;            // something has to be stored for this answer
  // The stored facts of the request are to be kept with the call: arguments at a grant, result, partial answer,
  // evidence.
  bool keep_arguments = false;
  bool keep_result = false;
  bool keep_partial = false;
  bool keep_evidence = false;
  std::vector<ReceiptRef> receipts;
};

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_REQUEST_H_
