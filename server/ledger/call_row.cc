#include "server/ledger/call_row.h"

#include "lib/keys/encoding.h"
#include "server/ledger/ids.h"
#include "server/ledger/receipt_reads.h"

namespace tally::ledger {
namespace {

// Columns of TALLY_CALL_COLUMNS.
enum Column {
  kCallId,
  kPermitId,
  kKey,
  kTool,
  kState,
  kNumber,
  kAttemptId,
  kHeld,
  kCharged,
  kGrantedAt,
  kLeaseEnd,
  kSentAt,
  kPrincipal,
  kByVerdict,
  kFirstSeen,
  kRefusal,
  kBoundTo,
  kAttention,
  kContradicted,
  kStateReceipt,
  kLastSeq,
  kEarlier,
  kShard,
  kHold,
  kEscalatedSeq,
  kClaimedBy,
  kClaimUntil,
  kHasResult,
  kSendWithin,
  kTerms,
  // Of TALLY_PARKED_COLUMNS.
  kLateNotSent,
  kNextLook,
  kPermitOpen,
  kExpiresAt,
  kPayload
};

std::string IdBytes(const pqxx::field& field) {
  const auto id = OptionalId(field);
  return id ? std::string(Bytes(*id)) : std::string();
}

// The state of a call is its last attempt's, except that a contradicted call with none open is SUCCEEDED.
v1::CallState CallState(v1::CallState last, bool contradicted) {
  return contradicted && last != v1::AUTHORIZED && last != v1::UNCERTAIN ? v1::SUCCEEDED : last;
}

constexpr Statement kEarlierAttempts{"earlier_attempts",
                                     "SELECT attempt_id, number, state, held, charged, granted_at_us, lease_end_us, "
                                     "sent_at_us, principal_id, by_verdict "
                                     "FROM attempts WHERE attempt_id = ANY ($1::uuid[]) ORDER BY number"};

void ToAttempt(const pqxx::row& row, v1::AttemptInfo& attempt) {
  attempt.set_attempt_id(IdBytes(row[0]));
  attempt.set_number(row[1].as<int>());
  attempt.set_state(static_cast<v1::CallState>(row[2].as<int>()));
  attempt.set_held(row[3].as<int64_t>());
  attempt.set_charged(row[4].as<int64_t>());
  attempt.set_granted_at_us(row[5].as<int64_t>());
  attempt.set_lease_end_us(row[6].as<int64_t>());
  attempt.set_sent_at_us(row[7].as<int64_t>());
  attempt.set_principal_id(Text(row[8]));
  attempt.set_by_verdict(row[9].as<bool>());
}

void LastAttempt(const pqxx::row& row, v1::AttemptInfo& attempt) {
  attempt.set_attempt_id(IdBytes(row[kAttemptId]));
  attempt.set_number(row[kNumber].as<int>());
  attempt.set_state(static_cast<v1::CallState>(row[kState].as<int>()));
  attempt.set_held(row[kHeld].as<int64_t>());
  attempt.set_charged(row[kCharged].as<int64_t>());
  attempt.set_granted_at_us(row[kGrantedAt].as<int64_t>());
  attempt.set_lease_end_us(row[kLeaseEnd].as<int64_t>());
  attempt.set_sent_at_us(row[kSentAt].as<int64_t>());
  attempt.set_principal_id(Text(row[kPrincipal]));
  attempt.set_by_verdict(row[kByVerdict].as<bool>());
}

}  // namespace

absl::Status ToCallInfo(const pqxx::row& row, v1::CallInfo& info) {
  v1::PermitTerms terms;
  if (!terms.ParseFromString(Bytea(row[kTerms]))) return absl::InternalError("permits.terms does not parse");
  info.set_call_id(Text(row[kCallId]));
  info.set_permit_id(Text(row[kPermitId]));
  info.set_key(Text(row[kKey]));
  info.set_tool(Text(row[kTool]));
  info.set_unit(terms.unit());
  info.set_first_seen_us(row[kFirstSeen].as<int64_t>());
  info.set_refusal_code(Text(row[kRefusal]));
  info.set_bound_to(Text(row[kBoundTo]));
  info.set_attention(Text(row[kAttention]));
  info.set_contradicted(row[kContradicted].as<int>() > 0);
  info.set_state(CallState(static_cast<v1::CallState>(row[kState].as<int>()), info.contradicted()));
  info.set_state_receipt_id(keys::HexEncode(Bytea(row[kStateReceipt])));
  info.set_has_result(row[kHasResult].as<bool>());
  if (row[kNumber].as<int>() > 0) LastAttempt(row, *info.add_attempts());
  return absl::OkStatus();
}

void AddEarlierAttempts(Tx& tx, const pqxx::row& row, v1::CallInfo& info) {
  if (row[kEarlier].is_null() || info.attempts().empty()) return;
  v1::AttemptInfo last = info.attempts(0);
  info.clear_attempts();
  for (const pqxx::row& earlier : tx.Exec(kEarlierAttempts, Text(row[kEarlier]))) {
    ToAttempt(earlier, *info.add_attempts());
  }
  *info.add_attempts() = std::move(last);
}

namespace {
constexpr Statement kBodies{"call_bodies",
                            "SELECT arguments, result, partial_answer FROM calls WHERE shard = $1 AND call_id = $2"};
constexpr Statement kEvidence{
    "call_evidence",
    "SELECT e.source, e.reference, e.reason, e.recorded_at_us, e.body, e.principal_id, e.attempt_id, r.receipt_id,"
    " CASE WHEN r.receipt_id IS NOT NULL THEN e.salt END, e.observed_at_us FROM evidence e"
    " LEFT JOIN receipts r ON r.shard = e.shard AND r.chain_id = $3::uuid AND r.sequence = e.receipt_seq"
    " WHERE e.shard = $1 AND e.call_id = $2 ORDER BY e.recorded_at_us, e.evidence_id LIMIT 100"};
}  // namespace

void AddBodies(Tx& tx, const pqxx::row& row, CallShown shown, v1::CallInfo& info) {
  const int shard = row[kShard].as<int>();
  const pqxx::row bodies = tx.Exec(kBodies, shard, info.call_id())[0];
  info.set_result(Bytea(bodies[1]));
  if (!shown.bodies) return;
  info.set_arguments(Bytea(bodies[0]));
  info.set_partial_answer(Bytea(bodies[2]));
  for (const pqxx::row& evidence : tx.Exec(kEvidence, shard, info.call_id(), info.permit_id())) {
    v1::EvidenceInfo& out = *info.add_evidence();
    out.set_source(Text(evidence[0]));
    out.set_reference(Text(evidence[1]));
    out.set_reason(Text(evidence[2]));
    out.set_time_us(evidence[3].as<int64_t>());
    out.set_body(Bytea(evidence[4]));
    out.set_principal_id(Text(evidence[5]));
    out.set_attempt_id(IdBytes(evidence[6]));
    out.set_receipt_id(Bytea(evidence[7]));
    out.set_salt(Bytea(evidence[8]));
    out.set_observed_at_us(evidence[9].as<int64_t>());
  }
}

void AddReceipts(Tx& tx, const pqxx::row& row, v1::CallInfo& info) {
  for (v1::Receipt& receipt :
       ReceiptsOfCall(tx, row[kShard].as<int>(), info.permit_id(), row[kLastSeq].as<int64_t>())) {
    *info.add_receipts() = std::move(receipt);
  }
}

absl::Status ToParked(const pqxx::row& row, int64_t now_us, v1::ParkedCall& parked) {
  absl::Status converted = ToCallInfo(row, *parked.mutable_call());
  if (!converted.ok()) return converted;
  if (static_cast<v1::CallState>(row[kState].as<int>()) == v1::UNCERTAIN) {
    parked.set_uncertain_receipt_id(Bytea(row[kStateReceipt]));
    v1::ReceiptPayload payload;
    if (payload.ParseFromString(Bytea(row[kPayload]))) parked.set_parked_at_us(payload.time_us());
  }
  parked.set_granted_at_us(row[kGrantedAt].as<int64_t>());
  parked.set_send_before_us(row[kGrantedAt].as<int64_t>() + row[kSendWithin].as<int64_t>());
  parked.set_hold(row[kHold].as<int64_t>());
  parked.set_escalated(row[kEscalatedSeq].as<int64_t>() > 0);
  parked.set_claimed_by(Text(row[kClaimedBy]));
  parked.set_claim_until_us(OptionalInt(row[kClaimUntil]).value_or(0));
  parked.set_now_us(now_us);
  parked.set_permit_active(row[kPermitOpen].as<bool>() && now_us < row[kExpiresAt].as<int64_t>());
  parked.set_next_look_us(row[kNextLook].as<int64_t>());
  parked.set_late_not_sent(row[kLateNotSent].as<bool>());
  return absl::OkStatus();
}

}  // namespace tally::ledger
