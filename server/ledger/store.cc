#include <algorithm>
#include <stdexcept>

#include "lib/keys/uuid.h"
#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"

// One statement a table. Every row that was decided on is compared by version, and the rows are counted: what does not
// match was changed by somebody else, and the batch is decided again. Nothing before the COMMIT is visible to anyone,
// so a crash anywhere in here leaves everything as it was.
namespace tally::ledger {
namespace {

using decide::Attempt;
using decide::Call;
using decide::Hash;
using decide::Id;

// ---- Receipts ----

constexpr Statement kInsertReceipts = {
    "insert_receipts",
    "INSERT INTO receipts (shard, chain_id, sequence, receipt_id, payload, signature, call_previous_seq)"
    " SELECT * FROM unnest($1::smallint[], $2::uuid[], $3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[],"
    " $7::bigint[])"};

void StoreReceipts(Tx& tx, Batch& batch) {
  Int16Array shards;
  UuidArray chains;
  Int64Array sequences, previous;
  ByteaArray ids, payloads, signatures;
  for (size_t i = 0; i < batch.receipts.size(); ++i) {
    const decide::Draft& draft = batch.world.drafts[i];
    const v1::Receipt& receipt = batch.receipts[i];
    shards.Add(ShardOf(draft.permit_id));
    chains.Add(draft.permit_id);
    sequences.Add(draft.sequence);
    ids.Add(receipt.receipt_id());
    payloads.Add(receipt.payload());
    signatures.Add(receipt.signature());
    previous.Add(draft.call_id ? std::optional(draft.call_previous_seq) : std::nullopt);
  }
  if (shards.size() == 0) return;
  tx.Exec(kInsertReceipts, shards.Param(), chains.Param(), sequences.Param(), ids.Param(), payloads.Param(),
          signatures.Param(), previous.Param());
}

// ---- Evidence ----

constexpr Statement kInsertEvidence = {
    "insert_evidence",
    "INSERT INTO evidence (evidence_id, shard, call_id, attempt_id, principal_id, source, reference, reason,"
    " observed_at_us, recorded_at_us, receipt_seq, body, salt)"
    " VALUES ($1::uuid, $2::smallint, $3::uuid, $4::uuid, $5::uuid, $6, $7, $8, $9, $10, $11, $12::bytea, $13::bytea)"};

void StoreEvidence(Tx& tx, Batch& batch) {
  for (const EvidenceRow& row : batch.evidence) {
    const Bodies none;
    const Bodies& bodies = row.bodies != nullptr ? *row.bodies : none;
    const std::string& body = row.body_is_result ? bodies.result : bodies.evidence;
    const Hash& salt = row.body_is_result ? bodies.result_salt : bodies.evidence_salt;
    const int64_t now = batch.world.now;
    tx.Exec(kInsertEvidence, keys::UuidText(View(row.evidence_id)), ShardOf(row.call_id),
            keys::UuidText(View(row.call_id)), keys::UuidText(View(row.attempt_id)), row.principal_id, row.source,
            bodies.reference, bodies.reason, bodies.observed_at_us > 0 ? bodies.observed_at_us : now, now,
            row.receipt_seq, Binary(body), Binary(View(salt)));
  }
}

// ---- Calls ----

// The columns of `calls`, one array each, in the order of kInsertCalls.
struct CallRows {
  Int16Array shard;
  UuidArray call_id, permit_id, bound_to, claim_id, attempt_id, resolution;
  Int64Array version, fp_amount, first_seen, bound_seq, refusal_seq, last_seq, claim_until, hold, held, charged,
      granted_at, lease, send_within, lease_end, sent_at, allowed_seq, state_seq, escalated_seq, attached_seq,
      result_size;
  TextArray key, tool, refusal, attention, claimed_by, earlier, principal_id;
  Int32Array grant_index, contradicted, result_attempt, number;
  Int16Array state;
  ByteaArray fp_arguments, fp_intent, intent, explicit_intent, content, attached, state_receipt, superseded, arguments,
      arguments_salt, result, result_salt, partial;
  BoolArray ever_uncertain, by_verdict, read_no_answer, has_result, slot, undelivered, late_not_sent, set_arguments,
      set_result;

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
  static const Attempt kNone;
  const Attempt& attempt = call.attempts.empty() ? kNone : call.attempts.back();
  const bool has = !call.attempts.empty();
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
  number.Add(attempt.number);
  earlier.AddOrNull(EarlierText(call));
  attempt_id.Add(has ? std::optional(attempt.attempt_id) : std::nullopt);
  state.Add(static_cast<int16_t>(has ? attempt.state : v1::REFUSED));
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
  state_seq.Add(has ? attempt.state_seq : call.bound_seq > 0 ? call.bound_seq : call.refusal_seq);
  state_receipt.AddOrNull(attempt.state_receipt);
  superseded.AddOrNull(attempt.superseded);
  escalated_seq.Add(attempt.escalated_seq);
  attached_seq.Add(attempt.attached_seq);
  principal_id.Add(attempt.principal_id);
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
          c.number.Param(), c.earlier.Param(), c.attempt_id.Param(), c.state.Param(), c.slot.Param(), c.hold.Param(),
          c.held.Param(), c.charged.Param(), c.granted_at.Param(), c.lease.Param(), c.send_within.Param(),
          c.lease_end.Param(), c.allowed_seq.Param(), c.state_seq.Param(), c.state_receipt.Param(),
          c.principal_id.Param(), c.arguments.Param(), c.arguments_salt.Param());
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
  tx.ExecExpecting(c.size(), kUpdateCalls, c.shard.Param(), c.call_id.Param(), c.version.Param(), c.bound_to.Param(),
                   c.bound_seq.Param(), c.refusal.Param(), c.refusal_seq.Param(), c.intent.Param(),
                   c.explicit_intent.Param(), c.ever_uncertain.Param(), c.contradicted.Param(),
                   c.result_attempt.Param(), c.last_seq.Param(), c.attention.Param(), c.claim_id.Param(),
                   c.claim_until.Param(), c.claimed_by.Param(), c.number.Param(), c.earlier.Param(),
                   c.attempt_id.Param(), c.state.Param(), c.by_verdict.Param(), c.read_no_answer.Param(),
                   c.has_result.Param(), c.slot.Param(), c.undelivered.Param(), c.late_not_sent.Param(), c.hold.Param(),
                   c.held.Param(), c.charged.Param(), c.granted_at.Param(), c.lease.Param(), c.send_within.Param(),
                   c.lease_end.Param(), c.sent_at.Param(), c.content.Param(), c.attached.Param(), c.allowed_seq.Param(),
                   c.state_seq.Param(), c.state_receipt.Param(), c.superseded.Param(), c.escalated_seq.Param(),
                   c.attached_seq.Param(), c.principal_id.Param(), c.resolution.Param(), c.set_arguments.Param(),
                   c.arguments.Param(), c.arguments_salt.Param(), c.set_result.Param(), c.result.Param(),
                   c.result_salt.Param(), c.result_size.Param(), c.partial.Param());
}

// A new call that more than its first decision touched needs columns which only the update writes.
bool NeedsUpdateToo(const Call& call, const CallBodies& bodies) {
  const Attempt* attempt = call.last();
  return attempt != nullptr &&
         (attempt->state != v1::AUTHORIZED || call.attempts.size() > 1 || call.claim_id || bodies.result != nullptr);
}

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
  UuidArray id;
  Int16Array state;
  BoolArray by_verdict, read_no_answer, has_result, slot, undelivered, late_not_sent;
  Int64Array hold, held, charged, granted_at, lease, send_within, lease_end, sent_at, allowed_seq, state_seq,
      escalated_seq, attached_seq;
  ByteaArray content, attached, state_receipt, superseded;
  TextArray principal_id;
  for (const auto& [call_id, call] : batch.world.calls) {
    if (!call.dirty) continue;
    for (size_t i = 0; i + 1 < call.attempts.size(); ++i) {
      const Attempt& attempt = call.attempts[i];
      id.Add(attempt.attempt_id);
      state.Add(static_cast<int16_t>(attempt.state));
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
  }
  if (id.size() == 0) return;
  tx.ExecExpecting(id.size(), kUpdateAttempts, id.Param(), state.Param(), by_verdict.Param(), read_no_answer.Param(),
                   has_result.Param(), slot.Param(), undelivered.Param(), late_not_sent.Param(), hold.Param(),
                   held.Param(), charged.Param(), granted_at.Param(), lease.Param(), send_within.Param(),
                   lease_end.Param(), sent_at.Param(), content.Param(), attached.Param(), allowed_seq.Param(),
                   state_seq.Param(), state_receipt.Param(), superseded.Param(), escalated_seq.Param(),
                   attached_seq.Param(), principal_id.Param());
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

// ---- Intents ----

constexpr Statement kUpdateIntents = {
    "update_intents",
    "UPDATE intents i SET"
    " open_call = CASE WHEN u.open_dirty THEN u.open_call ELSE i.open_call END,"
    " open_permit = CASE WHEN u.open_dirty THEN u.open_permit ELSE i.open_permit END,"
    " lease_end_us = CASE WHEN u.open_dirty THEN u.lease_end ELSE i.lease_end_us END,"
    " done_call = CASE WHEN u.done_dirty THEN u.done_call ELSE i.done_call END,"
    " done_permit = CASE WHEN u.done_dirty THEN u.done_permit ELSE i.done_permit END,"
    " done_at_us = CASE WHEN u.done_dirty THEN u.done_at ELSE i.done_at_us END,"
    " done_until_us = CASE WHEN u.done_dirty THEN u.done_until ELSE i.done_until_us END"
    " FROM unnest($1::smallint[], $2::bytea[], $3::uuid[], $4::uuid[], $5::uuid[], $6::bigint[], $7::boolean[],"
    " $8::uuid[], $9::uuid[], $10::bigint[], $11::bigint[], $12::boolean[])"
    " AS u(shard, intent, open_was, open_call, open_permit, lease_end, open_dirty, done_call, done_permit, done_at,"
    " done_until, done_dirty)"
    " WHERE i.shard = u.shard AND i.intent = u.intent"
    " AND (NOT u.open_dirty OR i.open_call IS NOT DISTINCT FROM u.open_was)"};

constexpr Statement kInsertIntents = {
    "insert_intents",
    "INSERT INTO intents (shard, intent, open_call, open_permit, lease_end_us)"
    " SELECT * FROM unnest($1::smallint[], $2::bytea[], $3::uuid[], $4::uuid[], $5::bigint[])"};

constexpr Statement kDeleteIntents = {
    "delete_intents",
    "DELETE FROM intents i USING unnest($1::smallint[], $2::bytea[]) AS u(shard, intent)"
    " WHERE i.shard = u.shard AND i.intent = u.intent"};

class StoringIntents {
 public:
  StoringIntents(Tx& tx, Batch& batch) : tx_(tx), batch_(batch) {}

  void Run() {
    for (const auto& [hash, intent] : batch_.world.intents) {
      if (intent.open_dirty || intent.done_dirty) Store(intent);
    }
    // Claimed for a request that was refused after all, or that another of the batch came before.
    for (const auto& [hash, claim] : batch_.claimed) {
      const auto found = batch_.world.intents.find(hash);
      if (found == batch_.world.intents.end() || !(found->second.open_dirty || found->second.done_dirty)) Delete(hash);
    }
    if (insert_shards_.size() > 0) {
      tx_.Exec(kInsertIntents, insert_shards_.Param(), insert_hashes_.Param(), insert_calls_.Param(),
               insert_permits_.Param(), insert_leases_.Param());
    }
    if (shards_.size() > 0) {
      tx_.ExecExpecting(shards_.size(), kUpdateIntents, shards_.Param(), hashes_.Param(), open_was_.Param(),
                        open_calls_.Param(), open_permits_.Param(), leases_.Param(), open_dirty_.Param(),
                        done_calls_.Param(), done_permits_.Param(), done_at_.Param(), done_until_.Param(),
                        done_dirty_.Param());
    }
    if (delete_shards_.size() > 0) {
      tx_.ExecExpecting(delete_shards_.size(), kDeleteIntents, delete_shards_.Param(), delete_hashes_.Param());
    }
  }

 private:
  int16_t Shard(const decide::Intent& intent) const {
    const auto found = batch_.intent_shards.find(intent.hash);
    if (found != batch_.intent_shards.end()) return found->second;
    if (!intent.own) throw std::logic_error("an intent was changed that no loaded call has");
    Id call_id;
    std::copy_n(intent.hash.begin(), call_id.size(), call_id.begin());
    return ShardOf(call_id);
  }

  void Delete(const Hash& hash) {
    delete_shards_.Add(batch_.intent_shards.at(hash));
    delete_hashes_.Add(hash);
  }

  void Store(const decide::Intent& intent) {
    std::optional<Id> open_was = intent.open_was;
    const auto lease = intent.lease_end > 0 ? std::optional(intent.lease_end) : std::nullopt;
    if (const auto claim = batch_.claimed.find(intent.hash); claim != batch_.claimed.end()) {
      const ClaimRow& row = claim->second;
      if (!intent.done_dirty && intent.open_call == row.call_id && intent.lease_end == row.lease_end) return;  // stands
      if (!intent.open_call && !intent.done_call) return Delete(intent.hash);
      open_was = row.call_id;
    } else if (intent.own && !intent.open_was) {  // a READ's, granted in this batch
      if (!intent.open_call) return;              // and ended in it
      insert_shards_.Add(Shard(intent));
      insert_hashes_.Add(intent.hash);
      insert_calls_.Add(intent.open_call);
      insert_permits_.Add(intent.open_permit);
      insert_leases_.Add(lease);
      return;
    } else if (intent.own && !intent.open_call) {
      delete_shards_.Add(Shard(intent));
      delete_hashes_.Add(intent.hash);
      return;
    }
    shards_.Add(Shard(intent));
    hashes_.Add(intent.hash);
    open_was_.Add(open_was);
    open_calls_.Add(intent.open_call);
    open_permits_.Add(intent.open_call ? std::optional(intent.open_permit) : std::nullopt);
    leases_.Add(lease);
    open_dirty_.Add(intent.open_dirty);
    done_calls_.Add(intent.done_call);
    done_permits_.Add(intent.done_call ? std::optional(intent.done_permit) : std::nullopt);
    done_at_.Add(intent.done_call ? std::optional(intent.done_at) : std::nullopt);
    done_until_.Add(intent.done_call ? std::optional(intent.done_until) : std::nullopt);
    done_dirty_.Add(intent.done_dirty);
  }

  Tx& tx_;
  Batch& batch_;
  Int16Array shards_, insert_shards_, delete_shards_;
  ByteaArray hashes_, insert_hashes_, delete_hashes_;
  UuidArray open_was_, open_calls_, open_permits_, done_calls_, done_permits_, insert_calls_, insert_permits_;
  Int64Array leases_, done_at_, done_until_, insert_leases_;
  BoolArray open_dirty_, done_dirty_;
};

// ---- Permits ----

constexpr Statement kUpdatePermits = {
    "update_permits",
    "UPDATE permit_state p SET version = p.version + 1, revoked_seq = u.revoked_seq, closing_seq = u.closing_seq,"
    " closed_seq = u.closed_seq, denial_limit_seq = u.denial_limit_seq, refusals = u.refusals,"
    " open_calls = u.open_calls, attempts = u.attempts, calls = u.calls, succeeded = u.succeeded,"
    " tool_error = u.tool_error, released = u.released, not_happened = u.not_happened, sequence = u.sequence,"
    " head = u.head, held = u.held, spent = u.spent, overrun = u.overrun"
    " FROM unnest($1::smallint[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],"
    " $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],"
    " $15::bigint[], $16::bigint[], $17::bytea[], $18::bigint[], $19::bigint[], $20::bigint[])"
    " AS u(shard, permit_id, version, revoked_seq, closing_seq, closed_seq, denial_limit_seq, refusals, open_calls,"
    " attempts, calls, succeeded, tool_error, released, not_happened, sequence, head, held, spent, overrun)"
    " WHERE p.shard = u.shard AND p.permit_id = u.permit_id AND p.version = u.version"};

void StorePermits(Tx& tx, Batch& batch) {
  Int16Array shard;
  UuidArray id;
  Int64Array version, revoked, closing, closed, denial_limit, refusals, open_calls, attempts, calls, succeeded,
      tool_error, released, not_happened, sequence, held, spent, overrun;
  ByteaArray head;
  for (const auto& [permit_id, permit] : batch.world.permits) {
    if (!permit.dirty) continue;
    shard.Add(permit.terms->shard);
    id.Add(permit_id);
    version.Add(permit.version);
    revoked.Add(permit.revoked_seq);
    closing.Add(permit.closing_seq);
    closed.Add(permit.closed_seq);
    denial_limit.Add(permit.denial_limit_seq);
    refusals.Add(permit.refusals);
    open_calls.Add(permit.open_calls);
    attempts.Add(permit.attempts);
    calls.Add(permit.calls);
    succeeded.Add(permit.succeeded);
    tool_error.Add(permit.tool_error);
    released.Add(permit.released);
    not_happened.Add(permit.not_happened);
    sequence.Add(permit.sequence);
    head.Add(permit.head);
    held.Add(permit.money.held);
    spent.Add(permit.money.spent);
    overrun.Add(permit.money.overrun);
  }
  if (id.size() == 0) return;
  tx.ExecExpecting(id.size(), kUpdatePermits, shard.Param(), id.Param(), version.Param(), revoked.Param(),
                   closing.Param(), closed.Param(), denial_limit.Param(), refusals.Param(), open_calls.Param(),
                   attempts.Param(), calls.Param(), succeeded.Param(), tool_error.Param(), released.Param(),
                   not_happened.Param(), sequence.Param(), head.Param(), held.Param(), spent.Param(), overrun.Param());
}

constexpr Statement kUpdateGrants = {
    "update_grants",
    "UPDATE grants g SET version = g.version + 1, slots = u.slots, slot_overrun = u.slot_overrun, held = u.held,"
    " spent = u.spent, overrun = u.overrun"
    " FROM unnest($1::smallint[], $2::uuid[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],"
    " $8::bigint[], $9::bigint[])"
    " AS u(shard, permit_id, grant_index, version, slots, slot_overrun, held, spent, overrun)"
    " WHERE g.shard = u.shard AND g.permit_id = u.permit_id AND g.grant_index = u.grant_index"
    " AND g.version = u.version"};

void StoreGrants(Tx& tx, Batch& batch) {
  Int16Array shard;
  UuidArray id;
  Int32Array index;
  Int64Array version, slots, slot_overrun, held, spent, overrun;
  for (const auto& [permit_id, permit] : batch.world.permits) {
    for (size_t i = 0; i < permit.grants.size(); ++i) {
      if (!permit.grant_dirty[i]) continue;
      const decide::Counters& grant = permit.grants[i];
      shard.Add(permit.terms->shard);
      id.Add(permit_id);
      index.Add(static_cast<int32_t>(i + 1));
      version.Add(permit.grant_versions[i]);
      slots.Add(grant.slots);
      slot_overrun.Add(grant.slot_overrun);
      held.Add(grant.held);
      spent.Add(grant.spent);
      overrun.Add(grant.overrun);
    }
  }
  if (id.size() == 0) return;
  tx.ExecExpecting(id.size(), kUpdateGrants, shard.Param(), id.Param(), index.Param(), version.Param(), slots.Param(),
                   slot_overrun.Param(), held.Param(), spent.Param(), overrun.Param());
}

}  // namespace

void Store(Tx& tx, Batch& batch) {
  StoreReceipts(tx, batch);
  StoreEvidence(tx, batch);
  StoreCalls(tx, batch);
  StoreAttempts(tx, batch);
  StoringIntents(tx, batch).Run();
  StorePermits(tx, batch);
  StoreGrants(tx, batch);
}

}  // namespace tally::ledger
