#include <algorithm>
#include <type_traits>

#include "bench/plain/work.h"
#include "lib/decide/terms.h"
#include "server/ledger/permit_row.h"

namespace tally::plain {
namespace {

using decide::Attempt;
using decide::Call;
using ledger::Bytea;
using ledger::IdText;
using ledger::OptionalInt;
using ledger::Statement;

constexpr int kBoundHopsMax = 8;

Id IdOf(const pqxx::field& field) { return ledger::OptionalId(field).value_or(Id{}); }

std::optional<Hash> OptionalHash(const pqxx::field& field) {
  if (field.is_null()) return std::nullopt;
  return ledger::ToHash(Bytea(field));
}

class Loading {
 public:
  Loading(ledger::Tx& tx, Work& work, ledger::TermsCache& terms)
      : tx_(tx), work_(work), world_(work.world), terms_(terms) {}

  void Authorize(decide::AuthorizeRequest& request) {
    Principal(request.principal);
    Call* call = CallByKey(request.permit_id, request.key);
    Permit(request.permit_id, request.prepared.grant_index);
    if (call != nullptr) HeldIntents(*call);
    ClaimIntents(request, call);
  }

  void Commit(decide::CommitRequest& request) {
    Principal(request.principal);
    const decide::CallName& name = request.call;
    Call* call = name.call_id ? CallById(*name.call_id) : CallByKey(name.permit_id, name.key);
    if (call == nullptr) {
      if (!name.call_id) Permit(name.permit_id, 0);
      return;
    }
    HeldIntents(*call);
    if (call->open() && call->last()->attempt_id == request.attempt_id) return;
    if (call->intent == Hash{} || call->grant_index == 0) return;
    for (const Hash& hash : decide::ClaimsOf(*call)) {
      work_.intent_shards[hash] = IntentShard(*call);
      if (!world_.intents.contains(hash)) ReadIntent(IntentShard(*call), hash);
    }
  }

 private:
  void Principal(decide::Principal& principal);
  Call* CallByKey(const Id& permit_id, const std::string& key);
  Call* CallById(const Id& call_id);
  Call* ReadCall(const pqxx::result& rows);
  void Permit(const Id& permit_id, int32_t grant_index);
  void ReadGrant(decide::Permit& permit, int32_t grant_index, const pqxx::row& row, int column);
  void HeldIntents(const Call& call);
  void ClaimIntents(const decide::AuthorizeRequest& request, const Call* call);
  void ReadIntent(int16_t shard, const Hash& hash);

  int16_t IntentShard(const decide::PermitTerms& terms, int32_t grant_index) const {
    const decide::GrantTerms& grant = terms.grants[static_cast<size_t>(grant_index - 1)];
    return grant.scope == v1::INTENT_SCOPE_TENANT ? ledger::ShardOf(terms.tenant, "") : terms.shard;
  }
  int16_t IntentShard(const Call& call) const {
    return call.intent == Hash{} ? ledger::ShardOf(call.call_id)
                                 : IntentShard(*world_.permits.at(call.permit_id).terms, call.grant_index);
  }

  ledger::Tx& tx_;
  Work& work_;
  decide::World& world_;
  ledger::TermsCache& terms_;
};

constexpr Statement kPrincipal = {"plain_principal",
                                  "SELECT tenant, role, disabled_at_us IS NOT NULL, hard FROM principals"
                                  " WHERE principal_id = $1::uuid"};

void Loading::Principal(decide::Principal& principal) {
  const pqxx::result rows = tx_.Exec(kPrincipal, principal.id);
  if (rows.empty()) {
    principal.disabled = principal.hard = true;
    return;
  }
  principal.tenant = rows[0][0].c_str();
  principal.role = static_cast<v1::Role>(rows[0][1].as<int>());
  principal.disabled = rows[0][2].as<bool>();
  principal.hard = rows[0][3].as<bool>();
}

// ---- Calls ----

#define PLAIN_CALL_COLUMNS                                                                                            \
  "call_id, permit_id, version, key, tool, grant_index, fp_arguments, fp_amount, fp_intent, first_seen_us, bound_to," \
  " bound_seq, refusal, refusal_seq, intent, explicit_intent, ever_uncertain, contradicted, result_attempt,"          \
  " last_seq, attention, claim_id, claim_until_us, claimed_by, number, attempt_id, state, by_verdict,"                \
  " read_no_answer, has_result, slot, undelivered, late_not_sent, hold, held, charged, granted_at_us, lease_us,"      \
  " send_within_us, lease_end_us, sent_at_us, content, attached, allowed_seq, state_seq, state_receipt, superseded,"  \
  " escalated_seq, attached_seq, principal_id"

constexpr Statement kCallByKey = {"plain_call_by_key",
                                  "SELECT " PLAIN_CALL_COLUMNS
                                  " FROM calls WHERE shard = $1::smallint AND permit_id = $2::uuid AND key = $3"};
constexpr Statement kCallById = {
    "plain_call_by_id", "SELECT " PLAIN_CALL_COLUMNS " FROM calls WHERE shard = $1::smallint AND call_id = $2::uuid"};

Call* Loading::CallByKey(const Id& permit_id, const std::string& key) {
  return ReadCall(tx_.Exec(kCallByKey, ledger::ShardOf(permit_id), IdText(permit_id), key));
}

Call* Loading::CallById(const Id& call_id) {
  if (const auto found = world_.calls.find(call_id); found != world_.calls.end()) return &found->second;
  return ReadCall(tx_.Exec(kCallById, ledger::ShardOf(call_id), IdText(call_id)));
}

// With its permit and grant, and the calls that it is another name of; returns the call that answers for it.
Call* Loading::ReadCall(const pqxx::result& rows) {
  if (rows.empty()) return nullptr;
  const pqxx::row row = rows[0];
  const Id id = IdOf(row[0]);
  Call& call = world_.calls[id];
  int i = 0;
  call.call_id = id;
  call.permit_id = IdOf(row[++i]);
  call.version = row[++i].as<int64_t>();
  call.key = ledger::Text(row[++i]);
  call.tool = row[++i].c_str();
  call.grant_index = row[++i].as<int32_t>();
  call.fp_arguments = OptionalHash(row[++i]).value_or(Hash{});
  call.fp_amount = OptionalInt(row[++i]);
  call.fp_intent = OptionalHash(row[++i]);
  call.first_seen = row[++i].as<int64_t>();
  call.bound_to = ledger::OptionalId(row[++i]);
  call.bound_seq = row[++i].as<int64_t>();
  call.refusal = row[++i].c_str();
  call.refusal_seq = row[++i].as<int64_t>();
  call.intent = OptionalHash(row[++i]).value_or(Hash{});
  call.explicit_intent = OptionalHash(row[++i]);
  call.ever_uncertain = row[++i].as<bool>();
  call.contradicted = row[++i].as<int32_t>();
  call.result_attempt = row[++i].as<int32_t>();
  call.last_seq = row[++i].as<int64_t>();
  call.attention = row[++i].c_str();
  call.claim_id = ledger::OptionalId(row[++i]);
  call.claim_until = OptionalInt(row[++i]).value_or(0);
  call.claimed_by = row[++i].c_str();
  const int32_t number = row[++i].as<int32_t>();
  world_.keys[{call.permit_id, call.key}] = id;
  work_.had_attempt[id] = number > 0;
  if (number > 1) throw Unsupported("a second attempt");
  if (number == 1) {
    Attempt& attempt = call.attempts.emplace_back();
    attempt.number = number;
    attempt.attempt_id = IdOf(row[++i]);
    attempt.state = static_cast<v1::CallState>(row[++i].as<int>());
    attempt.by_verdict = row[++i].as<bool>();
    attempt.read_no_answer = row[++i].as<bool>();
    attempt.has_result = row[++i].as<bool>();
    attempt.slot = row[++i].as<bool>();
    attempt.undelivered = row[++i].as<bool>();
    attempt.late_not_sent = row[++i].as<bool>();
    attempt.hold = row[++i].as<int64_t>();
    attempt.held = row[++i].as<int64_t>();
    attempt.charged = row[++i].as<int64_t>();
    attempt.granted_at = row[++i].as<int64_t>();
    attempt.lease = row[++i].as<int64_t>();
    attempt.send_within = row[++i].as<int64_t>();
    attempt.lease_end = row[++i].as<int64_t>();
    attempt.sent_at = row[++i].as<int64_t>();
    attempt.content = OptionalHash(row[++i]).value_or(Hash{});
    attempt.attached = OptionalHash(row[++i]).value_or(Hash{});
    attempt.allowed_seq = row[++i].as<int64_t>();
    attempt.state_seq = row[++i].as<int64_t>();
    attempt.state_receipt = Bytea(row[++i]);
    attempt.superseded = Bytea(row[++i]);
    attempt.escalated_seq = row[++i].as<int64_t>();
    attempt.attached_seq = row[++i].as<int64_t>();
    attempt.principal_id = row[++i].c_str();
    world_.attempts[attempt.attempt_id] = {id, call.permit_id, 0, false};
  }
  Permit(call.permit_id, call.grant_index);
  if (!call.bound_to) return &call;
  if (world_.calls.size() > kBoundHopsMax) throw Unsupported("a long chain of names");
  Call* bound = CallById(*call.bound_to);
  return bound == nullptr ? &call : bound;
}

// ---- Permits ----

#define PLAIN_GRANT_COLUMNS "g.version, g.slots, g.slot_overrun, g.held, g.spent, g.overrun"

constexpr Statement kPermit = {
    "plain_permit", "SELECT " TALLY_PERMIT_STATE_COLUMNS ", " PLAIN_GRANT_COLUMNS
                    " FROM permit_state p LEFT JOIN grants g ON g.shard = p.shard AND g.permit_id = p.permit_id"
                    " AND g.grant_index = $3::int WHERE p.shard = $1::smallint AND p.permit_id = $2::uuid"};

constexpr Statement kGrant = {"plain_grant", "SELECT " PLAIN_GRANT_COLUMNS
                                             " FROM grants g WHERE g.shard = $1::smallint AND g.permit_id = $2::uuid"
                                             " AND g.grant_index = $3::int"};

void Loading::ReadGrant(decide::Permit& permit, int32_t grant_index, const pqxx::row& row, int column) {
  const auto index = static_cast<size_t>(grant_index - 1);
  decide::Counters& grant = permit.grants.at(index);
  permit.grant_versions[index] = row[column].as<int64_t>();
  grant.slots = row[column + 1].as<int64_t>();
  grant.slot_overrun = row[column + 2].as<int64_t>();
  grant.held = row[column + 3].as<int64_t>();
  grant.spent = row[column + 4].as<int64_t>();
  grant.overrun = row[column + 5].as<int64_t>();
}

void Loading::Permit(const Id& id, int32_t grant_index) {
  const int16_t shard = ledger::ShardOf(id);
  if (const auto found = world_.permits.find(id); found != world_.permits.end()) {
    if (grant_index == 0 || found->second.grant_versions[static_cast<size_t>(grant_index - 1)] > 0) return;
    const pqxx::result rows = tx_.Exec(kGrant, shard, IdText(id), grant_index);
    return ReadGrant(found->second, grant_index, rows.at(0), 0);
  }
  const pqxx::result rows = tx_.Exec(kPermit, shard, IdText(id), grant_index);
  if (rows.empty()) return;
  const pqxx::row row = rows[0];
  decide::Permit& permit = world_.permits[id];
  // The RPC layer has read the terms, which never change.
  permit.terms = terms_.ById(id);
  if (permit.terms == nullptr) throw Unsupported("a permit whose terms are not in memory");
  const int grant = ledger::ReadPermitState(row, 0, permit);
  if (grant_index > 0) ReadGrant(permit, grant_index, row, grant);
}

// ---- Intents ----

// An open call has its intents open: known without a look.
void Loading::HeldIntents(const Call& call) {
  if (!call.open() || !world_.permits.contains(call.permit_id)) return;
  for (const Hash& hash : decide::ClaimsOf(call)) {
    work_.intent_shards[hash] = IntentShard(call);
    decide::Intent& intent = world_.intents[hash];
    intent.hash = hash;
    intent.own = call.intent == Hash{};
    intent.open_call = intent.open_was = call.call_id;
    intent.open_permit = call.permit_id;
    intent.lease_end = call.last()->state == v1::AUTHORIZED ? call.last()->lease_end : 0;
  }
}

constexpr Statement kClaimIntent = {
    "plain_claim_intent",
    "INSERT INTO intents (shard, intent, open_call, open_permit, lease_end_us)"
    " VALUES ($1::smallint, $2::bytea, $3::uuid, $4::uuid, $5::bigint) ON CONFLICT DO NOTHING"};

void Loading::ClaimIntents(const decide::AuthorizeRequest& request, const Call* call) {
  const auto permit = world_.permits.find(request.permit_id);
  if (permit == world_.permits.end() || request.prepared.intent == Hash{}) return;
  const decide::PermitTerms& terms = *permit->second.terms;
  const decide::GrantTerms& grant = terms.grants[static_cast<size_t>(request.prepared.grant_index - 1)];
  const int16_t shard = IntentShard(terms, request.prepared.grant_index);
  const decide::Time lease_end = world_.now + std::min(request.lease.value_or(grant.lease), grant.lease);
  bool may_be_granted = request.prepared.check == decide::Prepared::Check::kPass && !permit->second.closed;
  if (call != nullptr) {
    const v1::CallState state = call->state();
    may_be_granted &= state == v1::REFUSED || state == v1::RELEASED || state == v1::NOT_HAPPENED;
  }
  if (!may_be_granted) return;
  std::vector<Hash> hashes = {request.prepared.intent};
  if (request.prepared.explicit_intent) hashes.push_back(*request.prepared.explicit_intent);
  for (const Hash& hash : hashes) {
    work_.intent_shards[hash] = shard;
    const Id& call_id = call != nullptr ? call->call_id : request.new_call_id;
    const pqxx::result inserted =
        tx_.Exec(kClaimIntent, shard, Hex(hash), IdText(call_id), IdText(request.permit_id), lease_end);
    inserted.affected_rows() == 1 ? void(work_.claimed[hash] = lease_end) : ReadIntent(shard, hash);
  }
}

constexpr Statement kIntent = {
    "plain_intent",
    "SELECT open_call, open_permit, lease_end_us, done_call, done_permit, done_at_us, done_until_us FROM intents"
    " WHERE shard = $1::smallint AND intent = $2::bytea"};

// And the call that did it last, where a key of this permit may become another name of it.
void Loading::ReadIntent(int16_t shard, const Hash& hash) {
  const pqxx::result rows = tx_.Exec(kIntent, shard, Hex(hash));
  if (rows.empty()) return;
  decide::Intent& intent = world_.intents[hash];
  intent.hash = hash;
  intent.open_call = intent.open_was = ledger::OptionalId(rows[0][0]);
  intent.open_permit = IdOf(rows[0][1]);
  intent.lease_end = OptionalInt(rows[0][2]).value_or(0);
  intent.done_call = ledger::OptionalId(rows[0][3]);
  intent.done_permit = IdOf(rows[0][4]);
  intent.done_at = OptionalInt(rows[0][5]).value_or(0);
  intent.done_until = OptionalInt(rows[0][6]).value_or(0);
  if (intent.done_call && world_.permits.contains(intent.done_permit)) CallById(*intent.done_call);
}

}  // namespace

void Load(ledger::Tx& tx, Work& work, ledger::TermsCache& terms) {
  work.world.now = tx.now_us();
  Loading loading(tx, work, terms);
  std::visit(
      [&loading](auto& request) {
        using T = std::decay_t<decltype(request)>;
        if constexpr (std::is_same_v<T, decide::AuthorizeRequest>) {
          loading.Authorize(request);
        } else if constexpr (std::is_same_v<T, decide::CommitRequest>) {
          loading.Commit(request);
        } else {
          throw Unsupported("neither Authorize nor Commit");
        }
      },
      work.job.request);
}

constexpr Statement kAttemptId = {"plain_attempt_id",
                                  "SELECT call_id, permit_id, voided_seq FROM attempts WHERE attempt_id = $1::uuid"};

bool LoadAttemptId(ledger::Tx& tx, Work& work, const Id& attempt_id) {
  const pqxx::result rows = tx.Exec(kAttemptId, IdText(attempt_id));
  if (rows.empty()) return false;
  work.world.attempts[attempt_id] = {ledger::OptionalId(rows[0][0]), IdOf(rows[0][1]), rows[0][2].as<int64_t>(), false};
  return true;
}

}  // namespace tally::plain
