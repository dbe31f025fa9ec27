#include "lib/keys/uuid.h"
#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"

// One statement a table. Every row that was decided on is compared by version, and the rows are counted: what does not
// match was changed by somebody else, and the batch is decided again. Nothing before the COMMIT is visible to anyone,
// so a crash anywhere in here leaves everything as it was.
namespace tally::ledger {
namespace {

using decide::Hash;

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
  StoreParkings(tx, batch);
  StoreOutbox(tx, batch);
  StoreAttempts(tx, batch);
  StoreIntents(tx, batch);
  StorePermits(tx, batch);
  StoreGrants(tx, batch);
}

}  // namespace tally::ledger
