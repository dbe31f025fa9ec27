#include <string>

#include "lib/keys/uuid.h"
#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"

// Calls and their attempts.
namespace tally::ledger {
namespace {

using decide::Attempt;
using decide::Call;
using decide::Id;

// ---- Calls ----

// The columns that an attempt has, as its call's last one or in `attempts`.
struct AttemptColumns {
  UuidArray id;
  Int16Array state;
  Int32Array number;
  BoolArray by_verdict, read_no_answer, has_result, slot, undelivered, late_not_sent;
  Int64Array hold, held, charged, granted_at, lease, send_within, lease_end, sent_at, allowed_seq, state_seq,
      escalated_seq, attached_seq;
  ByteaArray content, attached, state_receipt, superseded;
  TextArray principal_id;

  void Add(const Attempt& attempt);
};

void AttemptColumns::Add(const Attempt& attempt) {
  id.Add(attempt.number > 0 ? std::optional(attempt.attempt_id) : std::nullopt);
  state.Add(static_cast<int16_t>(attempt.state));
  number.Add(attempt.number);
  by_verdict.Add(attempt.by_verdict);
  read_no_answer.Add(attempt.read_no_answer);
  has_result.Add(attempt.has_result);
  slot.Add(attempt.slot);
  undelivered.Add(attempt.undelivered);
  late_not_sent.Add(attempt.late_not_sent);
  hold.Add(attempt.hold);
  held.Add(attempt.held);
  charged.Add(attempt.charged);
  granted_at.Add(attempt.granted_at);
  lease.Add(attempt.lease);
  send_within.Add(attempt.send_within);
  lease_end.Add(attempt.lease_end);
  sent_at.Add(attempt.sent_at);
  content.Add(NonZero(attempt.content));
  attached.Add(NonZero(attempt.attached));
  allowed_seq.Add(attempt.allowed_seq);
  state_seq.Add(attempt.state_seq);
  state_receipt.AddOrNull(attempt.state_receipt);
  superseded.AddOrNull(attempt.superseded);
  escalated_seq.Add(attempt.escalated_seq);
  attached_seq.Add(attempt.attached_seq);
  principal_id.Add(attempt.principal_id);
}

// The columns of `calls`, one array each.
struct CallRows {
  Int16Array shard;
  UuidArray call_id, permit_id, bound_to, claim_id, resolution;
  Int64Array version, fp_amount, first_seen, bound_seq, refusal_seq, last_seq, claim_until, result_size;
  TextArray key, tool, refusal, attention, claimed_by, earlier;
  Int32Array grant_index, contradicted, result_attempt;
  ByteaArray fp_arguments, fp_intent, intent, explicit_intent, arguments, arguments_salt, result, result_salt, partial;
  BoolArray ever_uncertain, set_arguments, set_result;
  AttemptColumns last;

  size_t size() const { return shard.size(); }
  void Add(const Call& call, const CallBodies& bodies);
};

std::string EarlierText(const Call& call) {
  if (call.attempts.size() < 2) return "";
  std::string text = "{";
  for (size_t i = 0; i + 1 < call.attempts.size(); ++i) {
    if (i > 0) text += ',';
    text += keys::UuidText(View(call.attempts[i].attempt_id));
  }
  return text + '}';
}

void CallRows::Add(const Call& call, const CallBodies& bodies) {
  shard.Add(ShardOf(call.call_id));
  call_id.Add(call.call_id);
  permit_id.Add(call.permit_id);
  version.Add(call.version);
  key.Add(call.key);
  tool.Add(call.tool);
  grant_index.Add(call.grant_index);
  fp_arguments.Add(call.fp_arguments);
  fp_amount.Add(call.fp_amount);
  fp_intent.Add(call.fp_intent);
  first_seen.Add(call.first_seen);
  bound_to.Add(call.bound_to);
  bound_seq.Add(call.bound_seq);
  refusal.Add(call.refusal);
  refusal_seq.Add(call.refusal_seq);
  intent.Add(NonZero(call.intent));
  explicit_intent.Add(call.explicit_intent);
  ever_uncertain.Add(call.ever_uncertain);
  contradicted.Add(call.contradicted);
  result_attempt.Add(call.result_attempt);
  last_seq.Add(call.last_seq);
  attention.AddOrNull(call.attention);
  claim_id.Add(call.claim_id);
  claim_until.Add(call.claim_id ? std::optional(call.claim_until) : std::nullopt);
  claimed_by.AddOrNull(call.claimed_by);
  earlier.AddOrNull(EarlierText(call));
  if (call.attempts.empty()) {
    Attempt none;
    none.state = v1::REFUSED;
    none.state_seq = call.bound_seq > 0 ? call.bound_seq : call.refusal_seq;
    last.Add(none);
  } else {
    last.Add(call.attempts.back());
  }
  resolution.Add(bodies.resolution);
  set_arguments.Add(bodies.arguments != nullptr);
  arguments.AddOrNull(bodies.arguments != nullptr ? bodies.arguments->arguments : "");
  arguments_salt.AddOrNull(bodies.arguments != nullptr ? View(bodies.arguments->arguments_salt) : "");
  set_result.Add(bodies.result != nullptr);
  // An empty result is a result; one that is too large to be kept is null.
  if (bodies.result != nullptr && (bodies.result_size == 0 || !bodies.result->result.empty())) {
    result.Add(bodies.result->result);
  } else {
    result.AddNull();
  }
  result_salt.AddOrNull(bodies.result != nullptr ? View(bodies.result->result_salt) : "");
  result_size.Add(bodies.result_size);
  partial.AddOrNull(bodies.partial != nullptr ? bodies.partial->partial_answer : "");
}

constexpr Statement kInsertCalls = {
    "insert_calls",
    "INSERT INTO calls (shard, call_id, permit_id, version, key, tool, grant_index, fp_arguments, fp_amount, fp_intent,"
    " first_seen_us, bound_to, bound_seq, refusal, refusal_seq, intent, explicit_intent, ever_uncertain, contradicted,"
    " result_attempt, last_seq, attention, claim_id, claim_until_us, claimed_by, number, earlier, attempt_id, state,"
    " by_verdict, read_no_answer, has_result, slot, undelivered, late_not_sent, hold, held, charged, granted_at_us,"
    " lease_us, send_within_us, lease_end_us, sent_at_us, content, attached, allowed_seq, state_seq, state_receipt,"
    " superseded, escalated_seq, attached_seq, principal_id, arguments, arguments_salt, result_size)"
    " SELECT shard, call_id, permit_id, 1, key, tool, grant_index, fp_arguments, fp_amount, fp_intent,"
    " first_seen, bound_to, bound_seq, refusal, refusal_seq, intent, explicit_intent, ever_uncertain, 0,"
    " 0, last_seq, attention, NULL, NULL, NULL, number, earlier::uuid[], attempt_id, state,"
    " false, false, false, slot, false, false, hold, held, charged, granted_at,"
    " lease, send_within, lease_end, 0, NULL, NULL, allowed_seq, state_seq, state_receipt,"
    " NULL, 0, 0, principal_id, arguments, arguments_salt, 0"
    " FROM unnest($1::smallint[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::int[], $7::bytea[], $8::bigint[],"
    " $9::bytea[], $10::bigint[], $11::uuid[], $12::bigint[], $13::text[], $14::bigint[], $15::bytea[], $16::bytea[],"
    " $17::boolean[], $18::bigint[], $19::text[], $20::int[], $21::text[], $22::uuid[], $23::smallint[],"
    " $24::boolean[], $25::bigint[], $26::bigint[], $27::bigint[], $28::bigint[], $29::bigint[], $30::bigint[],"
    " $31::bigint[], $32::bigint[], $33::bigint[], $34::bytea[], $35::text[], $36::bytea[], $37::bytea[])"
    " AS u(shard, call_id, permit_id, key, tool, grant_index, fp_arguments, fp_amount, fp_intent, first_seen, bound_to,"
    " bound_seq, refusal, refusal_seq, intent, explicit_intent, ever_uncertain, last_seq, attention, number, earlier,"
    " attempt_id, state, slot, hold, held, charged, granted_at, lease, send_within, lease_end, allowed_seq, state_seq,"
    " state_receipt, principal_id, arguments, arguments_salt)"};

// A key's first decision: granted, refused or bound. What a call only gets later is written as absent, and a batch that
// decides twice on a new key writes its row a second time, by update.
void InsertCalls(Tx& tx, CallRows& c) {
  if (c.size() == 0) return;
  tx.Exec(kInsertCalls, c.shard.Param(), c.call_id.Param(), c.permit_id.Param(), c.key.Param(), c.tool.Param(),
          c.grant_index.Param(), c.fp_arguments.Param(), c.fp_amount.Param(), c.fp_intent.Param(), c.first_seen.Param(),
          c.bound_to.Param(), c.bound_seq.Param(), c.refusal.Param(), c.refusal_seq.Param(), c.intent.Param(),
          c.explicit_intent.Param(), c.ever_uncertain.Param(), c.last_seq.Param(), c.attention.Param(),
          c.last.number.Param(), c.earlier.Param(), c.last.id.Param(), c.last.state.Param(), c.last.slot.Param(),
          c.last.hold.Param(), c.last.held.Param(), c.last.charged.Param(), c.last.granted_at.Param(),
          c.last.lease.Param(), c.last.send_within.Param(), c.last.lease_end.Param(), c.last.allowed_seq.Param(),
          c.last.state_seq.Param(), c.last.state_receipt.Param(), c.last.principal_id.Param(), c.arguments.Param(),
          c.arguments_salt.Param());
}

constexpr Statement kUpdateCalls = {
    "update_calls",
    "UPDATE calls c SET version = c.version + 1, bound_to = u.bound_to, bound_seq = u.bound_seq, refusal = u.refusal,"
    " refusal_seq = u.refusal_seq, intent = u.intent, explicit_intent = u.explicit_intent,"
    " ever_uncertain = u.ever_uncertain, contradicted = u.contradicted, result_attempt = u.result_attempt,"
    " last_seq = u.last_seq, attention = u.attention, claim_id = u.claim_id, claim_until_us = u.claim_until,"
    " claimed_by = u.claimed_by, number = u.number, earlier = u.earlier::uuid[], attempt_id = u.attempt_id,"
    " state = u.state, by_verdict = u.by_verdict, read_no_answer = u.read_no_answer, has_result = u.has_result,"
    " slot = u.slot, undelivered = u.undelivered, late_not_sent = u.late_not_sent, hold = u.hold, held = u.held,"
    " charged = u.charged, granted_at_us = u.granted_at, lease_us = u.lease, send_within_us = u.send_within,"
    " lease_end_us = u.lease_end, sent_at_us = u.sent_at, content = u.content, attached = u.attached,"
    " allowed_seq = u.allowed_seq, state_seq = u.state_seq, state_receipt = u.state_receipt,"
    " superseded = u.superseded, escalated_seq = u.escalated_seq, attached_seq = u.attached_seq,"
    " principal_id = u.principal_id, resolution = COALESCE(u.resolution, c.resolution),"
    " arguments = CASE WHEN u.set_arguments THEN u.arguments ELSE c.arguments END,"
    " arguments_salt = CASE WHEN u.set_arguments THEN u.arguments_salt ELSE c.arguments_salt END,"
    " result = CASE WHEN u.set_result THEN u.result ELSE c.result END,"
    " result_salt = CASE WHEN u.set_result THEN u.result_salt ELSE c.result_salt END,"
    " result_size = CASE WHEN u.set_result THEN u.result_size ELSE c.result_size END,"
    " partial_answer = COALESCE(c.partial_answer, u.partial)"
    " FROM unnest($1::smallint[], $2::uuid[], $3::bigint[], $4::uuid[], $5::bigint[], $6::text[], $7::bigint[],"
    " $8::bytea[], $9::bytea[], $10::boolean[], $11::int[], $12::int[], $13::bigint[], $14::text[], $15::uuid[],"
    " $16::bigint[], $17::text[], $18::int[], $19::text[], $20::uuid[], $21::smallint[], $22::boolean[],"
    " $23::boolean[], $24::boolean[], $25::boolean[], $26::boolean[], $27::boolean[], $28::bigint[], $29::bigint[],"
    " $30::bigint[], $31::bigint[], $32::bigint[], $33::bigint[], $34::bigint[], $35::bigint[], $36::bytea[],"
    " $37::bytea[], $38::bigint[], $39::bigint[], $40::bytea[], $41::bytea[], $42::bigint[], $43::bigint[],"
    " $44::text[], $45::uuid[], $46::boolean[], $47::bytea[], $48::bytea[], $49::boolean[], $50::bytea[],"
    " $51::bytea[], $52::bigint[], $53::bytea[])"
    " AS u(shard, call_id, version, bound_to, bound_seq, refusal, refusal_seq, intent, explicit_intent, ever_uncertain,"
    " contradicted, result_attempt, last_seq, attention, claim_id, claim_until, claimed_by, number, earlier,"
    " attempt_id, state, by_verdict, read_no_answer, has_result, slot, undelivered, late_not_sent, hold, held, charged,"
    " granted_at, lease, send_within, lease_end, sent_at, content, attached, allowed_seq, state_seq, state_receipt,"
    " superseded, escalated_seq, attached_seq, principal_id, resolution, set_arguments, arguments, arguments_salt,"
    " set_result, result, result_salt, result_size, partial)"
    " WHERE c.shard = u.shard AND c.call_id = u.call_id AND c.version = u.version"};

void UpdateCalls(Tx& tx, CallRows& c) {
  if (c.size() == 0) return;
  tx.ExecExpecting(
      c.size(), kUpdateCalls, c.shard.Param(), c.call_id.Param(), c.version.Param(), c.bound_to.Param(),
      c.bound_seq.Param(), c.refusal.Param(), c.refusal_seq.Param(), c.intent.Param(), c.explicit_intent.Param(),
      c.ever_uncertain.Param(), c.contradicted.Param(), c.result_attempt.Param(), c.last_seq.Param(),
      c.attention.Param(), c.claim_id.Param(), c.claim_until.Param(), c.claimed_by.Param(), c.last.number.Param(),
      c.earlier.Param(), c.last.id.Param(), c.last.state.Param(), c.last.by_verdict.Param(),
      c.last.read_no_answer.Param(), c.last.has_result.Param(), c.last.slot.Param(), c.last.undelivered.Param(),
      c.last.late_not_sent.Param(), c.last.hold.Param(), c.last.held.Param(), c.last.charged.Param(),
      c.last.granted_at.Param(), c.last.lease.Param(), c.last.send_within.Param(), c.last.lease_end.Param(),
      c.last.sent_at.Param(), c.last.content.Param(), c.last.attached.Param(), c.last.allowed_seq.Param(),
      c.last.state_seq.Param(), c.last.state_receipt.Param(), c.last.superseded.Param(), c.last.escalated_seq.Param(),
      c.last.attached_seq.Param(), c.last.principal_id.Param(), c.resolution.Param(), c.set_arguments.Param(),
      c.arguments.Param(), c.arguments_salt.Param(), c.set_result.Param(), c.result.Param(), c.result_salt.Param(),
      c.result_size.Param(), c.partial.Param());
}

// A new call that more than its first decision touched needs columns which only the update writes.
bool NeedsUpdateToo(const Call& call, const CallBodies& bodies) {
  const Attempt* attempt = call.last();
  return attempt != nullptr &&
         (attempt->state != v1::AUTHORIZED || call.attempts.size() > 1 || call.claim_id || bodies.result != nullptr);
}

// ---- Attempts ----

constexpr Statement kInsertAttempts = {
    "insert_attempts",
    "INSERT INTO attempts (attempt_id, shard, permit_id, call_id, number, voided_seq)"
    " SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::uuid[], $4::uuid[], $5::int[], $6::bigint[])"};

constexpr Statement kUpdateAttempts = {
    "update_attempts",
    "UPDATE attempts a SET state = u.state, by_verdict = u.by_verdict, read_no_answer = u.read_no_answer,"
    " has_result = u.has_result, slot = u.slot, undelivered = u.undelivered, late_not_sent = u.late_not_sent,"
    " hold = u.hold, held = u.held, charged = u.charged, granted_at_us = u.granted_at, lease_us = u.lease,"
    " send_within_us = u.send_within, lease_end_us = u.lease_end, sent_at_us = u.sent_at, content = u.content,"
    " attached = u.attached, allowed_seq = u.allowed_seq, state_seq = u.state_seq, state_receipt = u.state_receipt,"
    " superseded = u.superseded, escalated_seq = u.escalated_seq, attached_seq = u.attached_seq,"
    " principal_id = u.principal_id"
    " FROM unnest($1::uuid[], $2::smallint[], $3::boolean[], $4::boolean[], $5::boolean[], $6::boolean[],"
    " $7::boolean[], $8::boolean[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[],"
    " $14::bigint[], $15::bigint[], $16::bigint[], $17::bytea[], $18::bytea[], $19::bigint[], $20::bigint[],"
    " $21::bytea[], $22::bytea[], $23::bigint[], $24::bigint[], $25::text[])"
    " AS u(attempt_id, state, by_verdict, read_no_answer, has_result, slot, undelivered, late_not_sent, hold, held,"
    " charged, granted_at, lease, send_within, lease_end, sent_at, content, attached, allowed_seq, state_seq,"
    " state_receipt, superseded, escalated_seq, attached_seq, principal_id)"
    " WHERE a.attempt_id = u.attempt_id"};

void StoreEarlierAttempts(Tx& tx, Batch& batch) {
  AttemptColumns a;
  for (const auto& [call_id, call] : batch.world.calls) {
    if (!call.dirty) continue;
    for (size_t i = 0; i + 1 < call.attempts.size(); ++i) a.Add(call.attempts[i]);
  }
  if (a.id.size() == 0) return;
  tx.ExecExpecting(a.id.size(), kUpdateAttempts, a.id.Param(), a.state.Param(), a.by_verdict.Param(),
                   a.read_no_answer.Param(), a.has_result.Param(), a.slot.Param(), a.undelivered.Param(),
                   a.late_not_sent.Param(), a.hold.Param(), a.held.Param(), a.charged.Param(), a.granted_at.Param(),
                   a.lease.Param(), a.send_within.Param(), a.lease_end.Param(), a.sent_at.Param(), a.content.Param(),
                   a.attached.Param(), a.allowed_seq.Param(), a.state_seq.Param(), a.state_receipt.Param(),
                   a.superseded.Param(), a.escalated_seq.Param(), a.attached_seq.Param(), a.principal_id.Param());
}

}  // namespace

void StoreCalls(Tx& tx, Batch& batch) {
  CallRows inserts, updates;
  static const CallBodies kNone;
  for (const auto& [id, call] : batch.world.calls) {
    if (!call.dirty) continue;
    const auto found = batch.bodies.find(id);
    const CallBodies& bodies = found == batch.bodies.end() ? kNone : found->second;
    if (!call.fresh) {
      updates.Add(call, bodies);
      continue;
    }
    if (!NeedsUpdateToo(call, bodies)) {
      inserts.Add(call, bodies);
      continue;
    }
    Call first = call;  // as after its grant, which satisfies the table's rules for an open attempt
    first.attempts.resize(1);
    Attempt& granted = first.attempts.front();
    granted.state = v1::AUTHORIZED;
    granted.slot = true;
    granted.held = granted.hold;
    granted.charged = 0;
    inserts.Add(first, bodies);
    first = call;
    first.version = 1;
    updates.Add(first, bodies);
  }
  InsertCalls(tx, inserts);
  UpdateCalls(tx, updates);
}

// Attempt ids are used up by this insert, tombstones too: one that is used already fails it, and the batch is decided
// again, knowing which ids are used.
void StoreAttempts(Tx& tx, Batch& batch) {
  UuidArray ids, permits, calls;
  Int16Array shards;
  Int32Array numbers;
  Int64Array voided;
  for (const auto& [id, use] : batch.world.attempts) {
    if (!use.fresh) continue;
    int32_t number = 0;
    if (use.call_id) {
      for (const Attempt& attempt : batch.world.calls.at(*use.call_id).attempts) {
        if (attempt.attempt_id == id) number = attempt.number;
      }
    }
    ids.Add(id);
    shards.Add(ShardOf(use.permit_id));
    permits.Add(use.permit_id);
    calls.Add(use.call_id);
    numbers.Add(number);
    voided.Add(use.voided_seq);
  }
  if (ids.size() > 0) {
    tx.Exec(kInsertAttempts, ids.Param(), shards.Param(), permits.Param(), calls.Param(), numbers.Param(),
            voided.Param());
  }
  StoreEarlierAttempts(tx, batch);
}

}  // namespace tally::ledger
