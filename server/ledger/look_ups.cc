#include "server/ledger/look_ups.h"

#include "server/ledger/control.h"
#include "server/ledger/ids.h"

namespace tally::ledger {
namespace {

// Locked, so that a verdict waits for the note, or the note finds what the verdict left. Nothing else is locked here,
// so no deadlock can come of it.
constexpr Statement kClaimedCall{
    "claimed_call",
    "SELECT c.state = 3 AND c.attempt_id = $4::uuid AND c.state_receipt = $5::bytea AND c.claim_id = $6::uuid"
    " AND c.claimed_by = $7 AND c.claim_until_us > $8::bigint"
    " FROM calls c JOIN permits p ON p.shard = c.shard AND p.permit_id = c.permit_id"
    " WHERE c.shard = $1::smallint AND c.call_id = $2::uuid AND p.tenant = $3 FOR UPDATE OF c"};

constexpr Statement kInsertLookUp{
    "insert_look_up",
    "INSERT INTO look_ups (shard, call_id, attempt_id, at_us, principal_id, kind, provider, finding, detail, body,"
    " next_look_us) VALUES ($1::smallint, $2::uuid, $3::uuid, $4::bigint, $5::uuid, $6, $7, $8::smallint, $9,"
    " $10::bytea, $11::bigint)"};

constexpr Statement kForgetLookUps{
    "forget_look_ups",
    "DELETE FROM look_ups WHERE look_up_id IN (SELECT l.look_up_id FROM look_ups l WHERE l.shard = $1::smallint"
    " AND l.call_id = $2::uuid AND l.attempt_id = $3::uuid ORDER BY l.look_up_id DESC OFFSET $4::int)"};

// The version moves, so that a lane which had loaded the call decides again.
constexpr Statement kReleaseClaim{
    "release_claim",
    "UPDATE calls SET version = version + 1, claim_id = NULL, claim_until_us = NULL, claimed_by = NULL"
    " WHERE shard = $1::smallint AND call_id = $2::uuid"};

}  // namespace

absl::StatusOr<Noted> NoteLookUp(Connection& connection, const LookUpNote& note) {
  const int shard = keys::Uuid7RandA(Bytes(note.call_id));
  const std::string call = IdText(note.call_id);
  const std::string attempt = IdText(note.attempt_id);
  const v1::LookUp& look_up = note.look_up;
  Noted noted;
  const absl::Status status = Write(connection, [&](Tx& tx) -> absl::Status {
    noted = {};
    const pqxx::result rows = tx.Exec(kClaimedCall, shard, call, note.tenant, attempt, Binary(note.supersedes),
                                      IdText(note.claim_id), note.principal_id, tx.now_us());
    if (rows.empty()) {
      noted.verdict = decide::Verdict::kNotFound;
    } else if (rows[0][0].is_null() || !rows[0][0].as<bool>()) {
      noted.verdict = decide::Verdict::kStaleResolution;
    }
    if (noted.verdict != decide::Verdict::kRecorded) return absl::OkStatus();
    if (note.next_look_us > 0) noted.next_look_us = tx.now_us() + note.next_look_us;
    tx.Exec(kInsertLookUp, shard, call, attempt, tx.now_us(), note.principal_id, look_up.kind(), look_up.provider(),
            static_cast<int>(look_up.finding()), look_up.detail(), Binary(look_up.body()), noted.next_look_us);
    tx.Exec(kForgetLookUps, shard, call, attempt, kLookUpsMax);
    if (note.release_claim) tx.ExecExpecting(1, kReleaseClaim, shard, call);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return noted;
}

namespace {
constexpr Statement kLookUps{
    "look_ups",
    "SELECT l.kind, l.provider, l.finding, l.detail, CASE WHEN $4::boolean THEN l.body END, l.at_us, l.principal_id"
    " FROM look_ups l WHERE l.shard = $1::smallint AND l.call_id = $2::uuid AND l.attempt_id = $3::uuid"
    " ORDER BY l.look_up_id"};
}  // namespace

void AddLookUps(Tx& tx, int shard, bool whole, v1::ParkedCall& parked) {
  if (parked.call().attempts().empty()) return;
  const std::string attempt_id = parked.call().attempts().rbegin()->attempt_id();
  for (const pqxx::row& row : tx.Exec(kLookUps, shard, parked.call().call_id(), IdText(ToId(attempt_id)), whole)) {
    if (!whole && parked.look_ups_size() > 0) parked.mutable_look_ups()->rbegin()->clear_detail();
    v1::LookUp& look_up = *parked.add_look_ups();
    look_up.set_kind(Text(row[0]));
    look_up.set_provider(Text(row[1]));
    look_up.set_finding(static_cast<v1::Finding>(row[2].as<int>()));
    look_up.set_detail(Text(row[3]));
    look_up.set_body(Bytea(row[4]));
    look_up.set_time_us(row[5].as<int64_t>());
    look_up.set_principal_id(Text(row[6]));
    look_up.set_attempt_id(attempt_id);
  }
}

}  // namespace tally::ledger
