#include "bench/plain/work.h"

// A statement a row. Counters and calls are compared by version, as tallyd's are.
namespace tally::plain {
namespace {

using decide::Attempt;
using decide::Call;
using ledger::Binary;
using ledger::Bodies;
using ledger::IdText;
using ledger::Statement;

constexpr Statement kInsertReceipt = {
    "plain_insert_receipt",
    "INSERT INTO receipts (shard, chain_id, sequence, receipt_id, payload, signature, call_previous_seq)"
    " VALUES ($1::smallint, $2::uuid, $3::bigint, $4::bytea, $5::bytea, $6::bytea, $7::bigint)"};

void StoreReceipts(ledger::Tx& tx, const Work& work) {
  for (size_t i = 0; i < work.receipts.size(); ++i) {
    const decide::Draft& draft = work.world.drafts[i];
    const v1::Receipt& receipt = work.receipts[i];
    tx.Exec(kInsertReceipt, ledger::ShardOf(draft.permit_id), IdText(draft.permit_id), draft.sequence,
            Binary(receipt.receipt_id()), Binary(receipt.payload()), Binary(receipt.signature()),
            draft.call_id ? std::optional(draft.call_previous_seq) : std::nullopt);
  }
}

// ---- Calls ----

constexpr Statement kInsertCall = {
    "plain_insert_call",
    "INSERT INTO calls (shard, call_id, permit_id, version, key, tool, grant_index, fp_arguments, fp_amount, fp_intent,"
    " first_seen_us, bound_to, bound_seq, refusal, refusal_seq, intent, explicit_intent, ever_uncertain, contradicted,"
    " result_attempt, last_seq, attention, number, attempt_id, state, by_verdict, read_no_answer, has_result, slot,"
    " undelivered, late_not_sent, hold, held, charged, granted_at_us, lease_us, send_within_us, lease_end_us,"
    " sent_at_us, allowed_seq, state_seq, state_receipt, escalated_seq, attached_seq, principal_id, arguments,"
    " arguments_salt, result_size)"
    " VALUES ($1::smallint, $2::uuid, $3::uuid, 1, $4, $5, $6::int, $7::bytea, $8::bigint, $9::bytea, $10::bigint,"
    " $11::uuid, $12::bigint, $13, $14::bigint, $15::bytea, $16::bytea, $17::boolean, 0, 0, $18::bigint, $19,"
    " $20::int, $21::uuid, $22::smallint, false, false, false, $23::boolean, false, false, $24::bigint, $25::bigint,"
    " 0, $26::bigint, $27::bigint, $28::bigint, $29::bigint, 0, $30::bigint, $31::bigint, $32::bytea, 0, 0, $33,"
    " $34::bytea, $35::bytea, 0)"};

// A key that was only refused until now: granted, refused or bound.
constexpr Statement kUpdateDecided = {
    "plain_update_decided",
    "UPDATE calls SET version = version + 1, bound_to = $4::uuid, bound_seq = $5::bigint, refusal = $6,"
    " refusal_seq = $7::bigint, intent = $8::bytea, explicit_intent = $9::bytea, last_seq = $10::bigint,"
    " attention = $11, number = $12::int, attempt_id = $13::uuid, state = $14::smallint, slot = $15::boolean,"
    " hold = $16::bigint, held = $17::bigint, granted_at_us = $18::bigint, lease_us = $19::bigint,"
    " send_within_us = $20::bigint, lease_end_us = $21::bigint, allowed_seq = $22::bigint, state_seq = $23::bigint,"
    " state_receipt = $24::bytea, principal_id = $25, arguments = $26::bytea, arguments_salt = $27::bytea"
    " WHERE shard = $1::smallint AND call_id = $2::uuid AND version = $3::bigint"};

constexpr Statement kUpdateReported = {
    "plain_update_reported",
    "UPDATE calls SET version = version + 1, ever_uncertain = $4::boolean, contradicted = $5::int,"
    " result_attempt = $6::int, last_seq = $7::bigint, attention = $8, state = $9::smallint, by_verdict = $10::boolean,"
    " read_no_answer = $11::boolean, has_result = $12::boolean, slot = $13::boolean, undelivered = $14::boolean,"
    " late_not_sent = $15::boolean, held = $16::bigint, charged = $17::bigint, sent_at_us = $18::bigint,"
    " content = $19::bytea, attached = $20::bytea, state_seq = $21::bigint, state_receipt = $22::bytea,"
    " superseded = $23::bytea, attached_seq = $24::bigint,"
    " partial_answer = coalesce(partial_answer, $25::bytea)"
    " WHERE shard = $1::smallint AND call_id = $2::uuid AND version = $3::bigint"};

// The same with a result.
constexpr Statement kUpdateAnswered = {
    "plain_update_answered",
    "UPDATE calls SET version = version + 1, ever_uncertain = $4::boolean, contradicted = $5::int,"
    " result_attempt = $6::int, last_seq = $7::bigint, attention = $8, state = $9::smallint, by_verdict = $10::boolean,"
    " read_no_answer = $11::boolean, has_result = $12::boolean, slot = $13::boolean, undelivered = $14::boolean,"
    " late_not_sent = $15::boolean, held = $16::bigint, charged = $17::bigint, sent_at_us = $18::bigint,"
    " content = $19::bytea, attached = $20::bytea, state_seq = $21::bigint, state_receipt = $22::bytea,"
    " superseded = $23::bytea, attached_seq = $24::bigint, result = $25::bytea, result_salt = $26::bytea,"
    " result_size = $27::bigint"
    " WHERE shard = $1::smallint AND call_id = $2::uuid AND version = $3::bigint"};

void InsertCall(ledger::Tx& tx, const Call& call, const Attempt& attempt, const Bodies* arguments) {
  const bool has = attempt.number > 0;
  tx.Exec(kInsertCall, ledger::ShardOf(call.call_id), IdText(call.call_id), IdText(call.permit_id), call.key, call.tool,
          call.grant_index, Hex(call.fp_arguments), call.fp_amount, HexOrNull(call.fp_intent), call.first_seen,
          IdOrNull(call.bound_to), call.bound_seq, call.refusal, call.refusal_seq, HexOrNull(call.intent),
          HexOrNull(call.explicit_intent), call.ever_uncertain, call.last_seq, TextOrNull(call.attention),
          attempt.number, has ? std::optional(IdText(attempt.attempt_id)) : std::nullopt,
          static_cast<int>(has ? attempt.state : v1::REFUSED), attempt.slot, attempt.hold, attempt.held,
          attempt.granted_at, attempt.lease, attempt.send_within, attempt.lease_end, attempt.allowed_seq,
          has                  ? attempt.state_seq
          : call.bound_seq > 0 ? call.bound_seq
                               : call.refusal_seq,
          HexOrNull(attempt.state_receipt), attempt.principal_id,
          arguments == nullptr ? std::nullopt : HexOrNull(arguments->arguments),
          arguments == nullptr ? std::nullopt : HexOrNull(ledger::Bytes(arguments->arguments_salt)));
}

void UpdateDecided(ledger::Tx& tx, const Call& call, const Attempt& attempt, const Bodies* arguments) {
  const bool has = attempt.number > 0;
  tx.ExecExpecting(1, kUpdateDecided, ledger::ShardOf(call.call_id), IdText(call.call_id), call.version,
                   IdOrNull(call.bound_to), call.bound_seq, call.refusal, call.refusal_seq, HexOrNull(call.intent),
                   HexOrNull(call.explicit_intent), call.last_seq, TextOrNull(call.attention), attempt.number,
                   has ? std::optional(IdText(attempt.attempt_id)) : std::nullopt,
                   static_cast<int>(has ? attempt.state : v1::REFUSED), attempt.slot, attempt.hold, attempt.held,
                   attempt.granted_at, attempt.lease, attempt.send_within, attempt.lease_end, attempt.allowed_seq,
                   has                  ? attempt.state_seq
                   : call.bound_seq > 0 ? call.bound_seq
                                        : call.refusal_seq,
                   HexOrNull(attempt.state_receipt), attempt.principal_id,
                   arguments == nullptr ? std::nullopt : HexOrNull(arguments->arguments),
                   arguments == nullptr ? std::nullopt : HexOrNull(ledger::Bytes(arguments->arguments_salt)));
}

template <typename... More>
void UpdateReported(ledger::Tx& tx, const Statement& statement, const Call& call, const Attempt& attempt,
                    More&&... more) {
  tx.ExecExpecting(1, statement, ledger::ShardOf(call.call_id), IdText(call.call_id), call.version, call.ever_uncertain,
                   call.contradicted, call.result_attempt, call.last_seq, TextOrNull(call.attention),
                   static_cast<int>(attempt.state), attempt.by_verdict, attempt.read_no_answer, attempt.has_result,
                   attempt.slot, attempt.undelivered, attempt.late_not_sent, attempt.held, attempt.charged,
                   attempt.sent_at, HexOrNull(attempt.content), HexOrNull(attempt.attached), attempt.state_seq,
                   HexOrNull(attempt.state_receipt), HexOrNull(attempt.superseded), attempt.attached_seq,
                   std::forward<More>(more)...);
}

int64_t ResultSizeOf(const ledger::Request& request) {
  const auto* commit = std::get_if<decide::CommitRequest>(&request);
  return commit == nullptr ? 0 : commit->result_size;
}

void StoreCall(ledger::Tx& tx, Work& work, const Call& call) {
  static const Attempt kNone;
  const decide::Answer& answer = work.job.reply.answer;
  const Bodies& bodies = work.job.bodies;
  const bool its = answer.call_id == call.call_id;
  const Bodies* arguments = its && answer.keep_arguments ? &bodies : nullptr;
  const Attempt& attempt = call.attempts.empty() ? kNone : call.attempts.back();
  if (call.fresh) return InsertCall(tx, call, attempt, arguments);
  if (!work.had_attempt.at(call.call_id)) return UpdateDecided(tx, call, attempt, arguments);
  if (!its || !answer.keep_result) {
    return UpdateReported(tx, kUpdateReported, call, attempt,
                          its && answer.keep_partial ? HexOrNull(bodies.partial_answer) : std::nullopt);
  }
  // An empty result is a result; one that is too large to be kept is null.
  const int64_t size = ResultSizeOf(work.job.request);
  const bool kept = size == 0 || !bodies.result.empty();
  UpdateReported(tx, kUpdateAnswered, call, attempt, kept ? std::optional(Hex(bodies.result)) : std::nullopt,
                 Hex(bodies.result_salt), size);
}

constexpr Statement kInsertAttempt = {"plain_insert_attempt",
                                      "INSERT INTO attempts (attempt_id, shard, permit_id, call_id, number, voided_seq)"
                                      " VALUES ($1::uuid, $2::smallint, $3::uuid, $4::uuid, $5::int, $6::bigint)"};

void StoreAttempts(ledger::Tx& tx, const Work& work) {
  for (const auto& [id, use] : work.world.attempts) {
    if (!use.fresh) continue;
    tx.Exec(kInsertAttempt, IdText(id), ledger::ShardOf(use.permit_id), IdText(use.permit_id), IdOrNull(use.call_id),
            use.call_id ? 1 : 0, use.voided_seq);
  }
}

// ---- Intents ----

constexpr Statement kInsertIntent = {"plain_insert_intent",
                                     "INSERT INTO intents (shard, intent, open_call, open_permit, lease_end_us)"
                                     " VALUES ($1::smallint, $2::bytea, $3::uuid, $4::uuid, $5::bigint)"};
constexpr Statement kDeleteIntent = {"plain_delete_intent",
                                     "DELETE FROM intents WHERE shard = $1::smallint AND intent = $2::bytea"};
constexpr Statement kUpdateOpen = {
    "plain_update_open",
    "UPDATE intents SET open_call = $4::uuid, open_permit = $5::uuid, lease_end_us = $6::bigint"
    " WHERE shard = $1::smallint AND intent = $2::bytea AND open_call IS NOT DISTINCT FROM $3::uuid"};
constexpr Statement kUpdateDone = {
    "plain_update_done",
    "UPDATE intents SET done_call = $3::uuid, done_permit = $4::uuid, done_at_us = $5::bigint,"
    " done_until_us = $6::bigint WHERE shard = $1::smallint AND intent = $2::bytea"};
constexpr Statement kUpdateIntent = {
    "plain_update_intent",
    "UPDATE intents SET open_call = $4::uuid, open_permit = $5::uuid, lease_end_us = $6::bigint, done_call = $7::uuid,"
    " done_permit = $8::uuid, done_at_us = $9::bigint, done_until_us = $10::bigint"
    " WHERE shard = $1::smallint AND intent = $2::bytea AND open_call IS NOT DISTINCT FROM $3::uuid"};

void StoreIntent(ledger::Tx& tx, Work& work, const decide::Intent& intent) {
  const auto shard_of = work.intent_shards.find(intent.hash);
  const int16_t shard =
      shard_of != work.intent_shards.end() ? shard_of->second : ledger::ShardOf(*intent.open_call);  // a READ's
  const std::string hash = Hex(intent.hash);
  const auto lease = intent.lease_end > 0 ? std::optional(intent.lease_end) : std::nullopt;
  const auto open_call = IdOrNull(intent.open_call);
  const auto open_permit = intent.open_call ? std::optional(IdText(intent.open_permit)) : std::nullopt;
  const auto done_call = IdOrNull(intent.done_call);
  const auto done_permit = intent.done_call ? std::optional(IdText(intent.done_permit)) : std::nullopt;
  const auto done_at = intent.done_call ? std::optional(intent.done_at) : std::nullopt;
  const auto done_until = intent.done_call ? std::optional(intent.done_until) : std::nullopt;
  if (const auto claim = work.claimed.find(intent.hash); claim != work.claimed.end()) {
    if (intent.open_call && claim->second == intent.lease_end) return;  // stands as inserted
    throw Unsupported("a claim that did not come to a grant as asked");
  }
  if (intent.own && !intent.open_was) {
    tx.Exec(kInsertIntent, shard, hash, open_call, open_permit, lease);
  } else if (intent.own && !intent.open_call) {
    tx.ExecExpecting(1, kDeleteIntent, shard, hash);
  } else if (intent.open_dirty && intent.done_dirty) {
    tx.ExecExpecting(1, kUpdateIntent, shard, hash, IdOrNull(intent.open_was), open_call, open_permit, lease, done_call,
                     done_permit, done_at, done_until);
  } else if (intent.open_dirty) {
    tx.ExecExpecting(1, kUpdateOpen, shard, hash, IdOrNull(intent.open_was), open_call, open_permit, lease);
  } else {
    tx.ExecExpecting(1, kUpdateDone, shard, hash, done_call, done_permit, done_at, done_until);
  }
}

void StoreIntents(ledger::Tx& tx, Work& work) {
  for (const auto& [hash, intent] : work.world.intents) {
    if (intent.open_dirty || intent.done_dirty) StoreIntent(tx, work, intent);
  }
  // Claimed for a request that was refused after all.
  for (const auto& [hash, lease_end] : work.claimed) {
    const auto found = work.world.intents.find(hash);
    if (found != work.world.intents.end() && found->second.open_dirty) continue;
    tx.ExecExpecting(1, kDeleteIntent, work.intent_shards.at(hash), Hex(hash));
  }
}

// ---- Permits ----

constexpr Statement kUpdatePermit = {
    "plain_update_permit",
    "UPDATE permit_state SET version = version + 1, closed_seq = $4::bigint, denial_limit_seq = $5::bigint,"
    " refusals = $6::bigint, open_calls = $7::bigint, attempts = $8::bigint, calls = $9::bigint,"
    " succeeded = $10::bigint, tool_error = $11::bigint, released = $12::bigint, not_happened = $13::bigint,"
    " sequence = $14::bigint, head = $15::bytea, held = $16::bigint, spent = $17::bigint, overrun = $18::bigint"
    " WHERE shard = $1::smallint AND permit_id = $2::uuid AND version = $3::bigint"};

constexpr Statement kUpdateGrant = {
    "plain_update_grant",
    "UPDATE grants SET version = version + 1, slots = $5::bigint, slot_overrun = $6::bigint, held = $7::bigint,"
    " spent = $8::bigint, overrun = $9::bigint"
    " WHERE shard = $1::smallint AND permit_id = $2::uuid AND grant_index = $3::int AND version = $4::bigint"};

void StorePermit(ledger::Tx& tx, const Id& id, const decide::Permit& permit) {
  const int16_t shard = permit.terms->shard;
  const std::string permit_id = IdText(id);
  if (permit.dirty) {
    tx.ExecExpecting(1, kUpdatePermit, shard, permit_id, permit.version, permit.closed_seq, permit.denial_limit_seq,
                     permit.refusals, permit.open_calls, permit.attempts, permit.calls, permit.succeeded,
                     permit.tool_error, permit.released, permit.not_happened, permit.sequence, Binary(permit.head),
                     permit.money.held, permit.money.spent, permit.money.overrun);
  }
  for (size_t i = 0; i < permit.grants.size(); ++i) {
    if (!permit.grant_dirty[i]) continue;
    const decide::Counters& grant = permit.grants[i];
    tx.ExecExpecting(1, kUpdateGrant, shard, permit_id, static_cast<int>(i + 1), permit.grant_versions[i], grant.slots,
                     grant.slot_overrun, grant.held, grant.spent, grant.overrun);
  }
}

}  // namespace

std::string Hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "\\x";
  text.reserve(2 + 2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

void Store(ledger::Tx& tx, Work& work) {
  StoreReceipts(tx, work);
  for (const auto& [id, call] : work.world.calls) {
    if (call.dirty) StoreCall(tx, work, call);
  }
  StoreAttempts(tx, work);
  StoreIntents(tx, work);
  for (const auto& [id, permit] : work.world.permits) StorePermit(tx, id, permit);
}

}  // namespace tally::plain
