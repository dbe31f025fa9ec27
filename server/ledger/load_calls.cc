#include "server/ledger/load_calls.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/keys/uuid.h"
#include "server/ledger/batch.h"

namespace tally::ledger {
namespace {

using decide::Attempt;
using decide::Call;
using decide::Id;
using decide::World;

#define TALLY_CALL_COLUMNS                                                                                      \
  "c.call_id, c.permit_id, c.version, c.key, c.tool, c.grant_index, c.fp_arguments, c.fp_amount, c.fp_intent, " \
  "c.first_seen_us, c.bound_to, c.bound_seq, c.refusal, c.refusal_seq, c.intent, c.explicit_intent, "           \
  "c.ever_uncertain, c.contradicted, c.result_attempt, c.last_seq, c.attention, c.claim_id, c.claim_until_us, " \
  "c.claimed_by, c.number, c.earlier, " TALLY_ATTEMPT_COLUMNS("c")

#define TALLY_ATTEMPT_COLUMNS(t)                                                                               \
  t ".attempt_id, " t ".state, " t ".by_verdict, " t ".read_no_answer, " t ".has_result, " t ".slot, " t       \
    ".undelivered, " t ".late_not_sent, " t ".hold, " t ".held, " t ".charged, " t ".granted_at_us, " t        \
    ".lease_us, " t ".send_within_us, " t ".lease_end_us, " t ".sent_at_us, " t ".content, " t ".attached, " t \
    ".allowed_seq, " t ".state_seq, " t ".state_receipt, " t ".superseded, " t ".escalated_seq, " t            \
    ".attached_seq, " t ".principal_id"

// A row's fields in the order of its column list: finding a column by its name costs more than reading it.
class Fields {
 public:
  explicit Fields(const pqxx::row& row) : row_(row) {}
  pqxx::field Next() { return row_[next_++]; }

 private:
  const pqxx::row& row_;
  pqxx::row::size_type next_ = 0;
};

Attempt ReadAttempt(Fields& fields, int32_t number) {
  Attempt attempt;
  attempt.attempt_id = IdOf(fields.Next());
  attempt.number = number;
  attempt.state = static_cast<v1::CallState>(fields.Next().as<int>());
  attempt.by_verdict = fields.Next().as<bool>();
  attempt.read_no_answer = fields.Next().as<bool>();
  attempt.has_result = fields.Next().as<bool>();
  attempt.slot = fields.Next().as<bool>();
  attempt.undelivered = fields.Next().as<bool>();
  attempt.late_not_sent = fields.Next().as<bool>();
  attempt.hold = fields.Next().as<int64_t>();
  attempt.held = fields.Next().as<int64_t>();
  attempt.charged = fields.Next().as<int64_t>();
  attempt.granted_at = fields.Next().as<int64_t>();
  attempt.lease = fields.Next().as<int64_t>();
  attempt.send_within = fields.Next().as<int64_t>();
  attempt.lease_end = fields.Next().as<int64_t>();
  attempt.sent_at = fields.Next().as<int64_t>();
  attempt.content = HashOf(fields.Next());
  attempt.attached = HashOf(fields.Next());
  attempt.allowed_seq = fields.Next().as<int64_t>();
  attempt.state_seq = fields.Next().as<int64_t>();
  attempt.state_receipt = Bytea(fields.Next());
  attempt.superseded = Bytea(fields.Next());
  attempt.escalated_seq = fields.Next().as<int64_t>();
  attempt.attached_seq = fields.Next().as<int64_t>();
  attempt.principal_id = fields.Next().c_str();
  return attempt;
}

// Ids in PostgreSQL's text form of uuid[], {a,b}; null is none.
std::vector<Id> ReadIds(const pqxx::field& field) {
  std::vector<Id> ids;
  if (field.is_null()) return ids;
  std::string_view text(field.c_str(), field.size());
  while (text.size() > 36) {
    text.remove_prefix(1);  // { or ,
    const std::optional<std::string> bytes = keys::ParseUuid(text.substr(0, 36));
    if (!bytes) break;
    std::copy(bytes->begin(), bytes->end(), ids.emplace_back().begin());
    text.remove_prefix(36);
  }
  return ids;
}

// Fills the world with call rows; earlier attempts are remembered in `earlier`, to be loaded in one go.
void ReadCalls(const pqxx::result& rows, World& world, Earlier& earlier) {
  for (const pqxx::row& row : rows) {
    Fields fields(row);
    const Id id = IdOf(fields.Next());
    if (world.calls.contains(id)) continue;
    Call& call = world.calls[id];
    call.call_id = id;
    call.permit_id = IdOf(fields.Next());
    call.version = fields.Next().as<int64_t>();
    call.key = fields.Next().c_str();
    call.tool = fields.Next().c_str();
    call.grant_index = fields.Next().as<int32_t>();
    call.fp_arguments = HashOf(fields.Next());
    call.fp_amount = OptionalInt(fields.Next());
    call.fp_intent = OptionalHash(fields.Next());
    call.first_seen = fields.Next().as<int64_t>();
    call.bound_to = OptionalId(fields.Next());
    call.bound_seq = fields.Next().as<int64_t>();
    call.refusal = fields.Next().c_str();
    call.refusal_seq = fields.Next().as<int64_t>();
    call.intent = HashOf(fields.Next());
    call.explicit_intent = OptionalHash(fields.Next());
    call.ever_uncertain = fields.Next().as<bool>();
    call.contradicted = fields.Next().as<int32_t>();
    call.result_attempt = fields.Next().as<int32_t>();
    call.last_seq = fields.Next().as<int64_t>();
    call.attention = fields.Next().c_str();
    call.claim_id = OptionalId(fields.Next());
    call.claim_until = OptionalInt(fields.Next()).value_or(0);
    call.claimed_by = fields.Next().c_str();
    world.keys[{call.permit_id, call.key}] = id;
    const int32_t number = fields.Next().as<int32_t>();
    const pqxx::field earlier_ids = fields.Next();
    if (number == 0) continue;
    call.attempts.resize(static_cast<size_t>(number));
    call.attempts.back() = ReadAttempt(fields, number);
    world.attempts[call.attempts.back().attempt_id] = {id, call.permit_id, 0, false};
    int32_t earlier_number = 0;
    for (const Id& attempt_id : ReadIds(earlier_ids)) {
      earlier[attempt_id] = {id, ++earlier_number};
      world.attempts[attempt_id] = {id, call.permit_id, 0, false};
    }
  }
}

constexpr Statement kCallsByKey = {
    "calls_by_key", "SELECT " TALLY_CALL_COLUMNS
                    " FROM unnest($1::smallint[], $2::uuid[], $3::text[]) AS u(shard, permit_id, key)"
                    " JOIN calls c ON c.shard = u.shard AND c.permit_id = u.permit_id AND c.key = u.key"};

constexpr Statement kCallsById = {"calls_by_id", "SELECT " TALLY_CALL_COLUMNS
                                                 " FROM unnest($1::smallint[], $2::uuid[]) AS u(shard, call_id)"
                                                 " JOIN calls c ON c.shard = u.shard AND c.call_id = u.call_id"};

constexpr Statement kEarlierAttempts = {
    "earlier_attempts",
    "SELECT " TALLY_ATTEMPT_COLUMNS(
        "a") " FROM unnest($1::uuid[]) AS u(attempt_id) JOIN attempts a ON a.attempt_id = u.attempt_id"};

}  // namespace

void LoadCallsByKey(Tx& tx, Int16Array& shards, UuidArray& permits, TextArray& keys, World& world, Earlier& earlier) {
  ReadCalls(tx.Exec(kCallsByKey, shards.Param(), permits.Param(), keys.Param()), world, earlier);
}

void LoadCallsById(Tx& tx, Int16Array& shards, UuidArray& calls, World& world, Earlier& earlier) {
  ReadCalls(tx.Exec(kCallsById, shards.Param(), calls.Param()), world, earlier);
}

void LoadEarlierAttempts(Tx& tx, const Earlier& earlier, World& world) {
  if (earlier.empty()) return;
  UuidArray ids;
  for (const auto& [id, call] : earlier) ids.Add(id);
  for (const pqxx::row& row : tx.Exec(kEarlierAttempts, ids.Param())) {
    const auto& [call, number] = earlier.at(IdOf(row[0]));
    Fields fields(row);
    world.calls.at(call).attempts[static_cast<size_t>(number - 1)] = ReadAttempt(fields, number);
  }
}

}  // namespace tally::ledger
