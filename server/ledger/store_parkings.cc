#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"

// The parkings of attempts, from which reports are made. A batch in which nothing is or becomes uncertain does nothing
// here: no statement, and no look at any row.
namespace tally::ledger {
namespace {

using decide::Attempt;
using decide::Call;

// tally.v1.Closer
int16_t CloserOf(v1::Role role) {
  switch (role) {
    case v1::RECONCILER:
      return 2;
    case v1::OPERATOR:
      return 3;
    default:
      return 1;  // a late answer
  }
}

// What names a row, and what every change of one may write.
struct Rows {
  Int16Array shard;
  UuidArray call_id;
  Int32Array number;
  Int16Array state, closed_by;
  Int64Array charged;

  size_t size() const { return shard.size(); }
  void Add(const Call& call, const Attempt& attempt, const Parking& parking) {
    shard.Add(ShardOf(call.call_id));
    call_id.Add(call.call_id);
    number.Add(attempt.number);
    state.Add(static_cast<int16_t>(attempt.state));
    parking.ended ? closed_by.Add(CloserOf(parking.ended_by)) : closed_by.AddNull();
    charged.Add(attempt.charged);
  }
};

// What only an insert writes.
struct NewRows : Rows {
  TextArray tenant, tool, unit;
  UuidArray permit_id;
  Int64Array hold, parked_seq;
  BoolArray escalated;

  void Add(const decide::PermitTerms& terms, const Call& call, const Attempt& attempt, const Parking& parking) {
    Rows::Add(call, attempt, parking);
    tenant.Add(terms.tenant);
    permit_id.Add(call.permit_id);
    tool.Add(call.tool);
    unit.Add(terms.unit);
    hold.Add(attempt.hold);
    parked_seq.Add(parking.parked_seq);
    escalated.Add(parking.escalated);
  }
};

// All that a batch does has one time, so an attempt may be parked and closed within it, in no time.
constexpr Statement kInsertParkings = {
    "insert_parkings",
    "INSERT INTO parkings (shard, call_id, number, tenant, permit_id, tool, unit, hold, parked_at_us, parked_seq,"
    " escalated_at_us, closed_at_us, closed_by, state, charged)"
    " SELECT shard, call_id, number, tenant, permit_id, tool, unit, hold, $13::bigint, parked_seq,"
    " CASE WHEN escalated THEN $13 END, CASE WHEN closed_by IS NOT NULL THEN $13 END, closed_by, state, charged"
    " FROM unnest($1::smallint[], $2::uuid[], $3::int[], $4::text[], $5::uuid[], $6::text[], $7::text[], $8::bigint[],"
    " $9::bigint[], $10::boolean[], $11::smallint[], $12::smallint[], $14::bigint[])"
    " AS u(shard, call_id, number, tenant, permit_id, tool, unit, hold, parked_seq, escalated, closed_by, state,"
    " charged)"};

void Insert(Tx& tx, NewRows& rows) {
  if (rows.size() == 0) return;
  tx.Exec(kInsertParkings, rows.shard.Param(), rows.call_id.Param(), rows.number.Param(), rows.tenant.Param(),
          rows.permit_id.Param(), rows.tool.Param(), rows.unit.Param(), rows.hold.Param(), rows.parked_seq.Param(),
          rows.escalated.Param(), rows.closed_by.Param(), rows.state.Param(), tx.now_us(), rows.charged.Param());
}

constexpr Statement kEscalateParkings = {
    "escalate_parkings",
    "UPDATE parkings p SET escalated_at_us = $4::bigint"
    " FROM unnest($1::smallint[], $2::uuid[], $3::int[]) AS u(shard, call_id, number)"
    " WHERE p.shard = u.shard AND p.call_id = u.call_id AND p.number = u.number AND p.state = 3"};

constexpr Statement kCloseParkings = {
    "close_parkings",
    "UPDATE parkings p SET closed_at_us = $6::bigint, closed_by = u.closed_by, state = u.state, charged = u.charged"
    " FROM unnest($1::smallint[], $2::uuid[], $3::int[], $4::smallint[], $5::smallint[], $7::bigint[])"
    " AS u(shard, call_id, number, closed_by, state, charged)"
    " WHERE p.shard = u.shard AND p.call_id = u.call_id AND p.number = u.number AND p.state = 3"};

// What is parked has its row: migration 0002 made those of attempts that were parked before it.
void Escalate(Tx& tx, Rows& rows) {
  if (rows.size() == 0) return;
  tx.ExecExpecting(rows.size(), kEscalateParkings, rows.shard.Param(), rows.call_id.Param(), rows.number.Param(),
                   tx.now_us());
}

void Close(Tx& tx, Rows& rows) {
  if (rows.size() == 0) return;
  tx.ExecExpecting(rows.size(), kCloseParkings, rows.shard.Param(), rows.call_id.Param(), rows.number.Param(),
                   rows.closed_by.Param(), rows.state.Param(), tx.now_us(), rows.charged.Param());
}

constexpr Statement kPutParkingsRight = {
    "put_parkings_right",
    "UPDATE parkings p SET state = u.state, charged = u.charged"
    " FROM unnest($1::smallint[], $2::uuid[], $3::int[], $4::smallint[], $5::bigint[])"
    " AS u(shard, call_id, number, state, charged)"
    " WHERE p.shard = u.shard AND p.call_id = u.call_id AND p.number = u.number AND p.state <> 3"};

// The rows are not counted: an attempt whose end is put right need never have been parked, or was closed before there
// were rows.
void PutRight(Tx& tx, Rows& rows) {
  if (rows.size() == 0) return;
  tx.Exec(kPutParkingsRight, rows.shard.Param(), rows.call_id.Param(), rows.number.Param(), rows.state.Param(),
          rows.charged.Param());
}

}  // namespace

void NoteParked(Batch& batch) {
  for (const auto& [id, call] : batch.world.calls) {
    if (const Attempt* last = call.last(); last != nullptr && last->state == v1::UNCERTAIN) {
      batch.parkings[{id, last->number}] = {};
    }
  }
}

void NoteParkings(Batch& batch) {
  for (const decide::Draft& draft : batch.world.drafts) {
    if (!draft.call_id || draft.payload.attempt_number() == 0) continue;
    const std::pair key(*draft.call_id, draft.payload.attempt_number());
    switch (draft.payload.kind()) {
      case v1::CALL_UNCERTAIN:
        batch.parkings[key].parked_seq = draft.sequence;
        break;
      case v1::CALL_ESCALATED:
        batch.parkings[key].escalated = true;
        break;
      case v1::CALL_SUCCEEDED:
      case v1::CALL_TOOL_ERROR:
      case v1::CALL_RESOLVED_HAPPENED:
      case v1::CALL_RESOLVED_NOT_HAPPENED: {
        // The first of them ended it. Of an attempt that was not parked it is none of ours.
        const auto found = batch.parkings.find(key);
        if (found == batch.parkings.end() || found->second.ended) break;
        found->second.ended = true;
        found->second.ended_by = draft.payload.principal_role();
        break;
      }
      case v1::CALL_CONTRADICTED:
      case v1::CALL_CORRECTED:
        if (batch.world.calls.at(*draft.call_id).ever_uncertain) batch.parkings[key].put_right = true;
        break;
      default:
        break;
    }
  }
}

void StoreParkings(Tx& tx, Batch& batch) {
  if (batch.parkings.empty()) return;
  NewRows parked;
  Rows escalated, closed, put_right;
  for (const auto& [key, parking] : batch.parkings) {
    const auto& [call_id, number] = key;
    const Call& call = batch.world.calls.at(call_id);
    const Attempt& attempt = call.attempts[static_cast<size_t>(number) - 1];
    if (parking.parked_seq > 0) {
      parked.Add(*batch.world.permits.at(call.permit_id).terms, call, attempt, parking);
      continue;
    }
    if (parking.escalated) escalated.Add(call, attempt, parking);
    if (parking.ended) closed.Add(call, attempt, parking);
    if (parking.put_right && !parking.ended) put_right.Add(call, attempt, parking);
  }
  Insert(tx, parked);
  Escalate(tx, escalated);
  Close(tx, closed);
  PutRight(tx, put_right);
}

}  // namespace tally::ledger
