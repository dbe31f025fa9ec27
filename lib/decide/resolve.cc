#include <algorithm>
#include <optional>

#include "lib/decide/change.h"
#include "lib/decide/decide.h"

namespace tally::decide {
namespace {

Answer Refused(Verdict verdict, const Id& attempt_id) {
  Answer answer;
  answer.verdict = verdict;
  answer.attempt_id = attempt_id;
  return answer;
}

std::string Bytes(const Hash& hash) { return {reinterpret_cast<const char*>(hash.data()), hash.size()}; }

void SetEvidence(Draft& draft, const Evidence& evidence) {
  draft.payload.set_evidence_source(evidence.source);
  draft.payload.set_evidence_commitment(Bytes(evidence.commitment));
  if (evidence.has_result) {
    draft.payload.set_result_commitment(Bytes(evidence.result_commitment));
    draft.payload.set_result_size(evidence.result_size);
  }
}

void KeepResult(Call& call, Attempt& attempt, const Evidence& evidence, Answer& answer) {
  attempt.has_result = evidence.has_result;
  call.result_attempt = evidence.has_result ? attempt.number : 0;
  answer.keep_result = evidence.has_result;
}

void EndClaim(Call& call) {
  call.claim_id.reset();
  call.claim_until = 0;
  call.claimed_by.clear();
}

// The same verdict on the same attempt and receipt, given again.
bool SaidBefore(const Attempt& attempt, const std::string& supersedes, Finding finding) {
  const v1::CallState end = finding == Finding::kHappened ? v1::SUCCEEDED : v1::NOT_HAPPENED;
  return attempt.by_verdict && attempt.state == end && !supersedes.empty() && attempt.superseded == supersedes;
}

Answer Escalate(Scene& scene, Attempt& attempt, const Evidence& evidence) {
  if (attempt.escalated_seq > 0) return About(Verdict::kRecorded, scene.call, &attempt, {attempt.escalated_seq});
  EndClaim(scene.call);
  scene.call.attention = "escalated";
  Draft& draft = WriteCallReceipt(scene, v1::CALL_ESCALATED, &attempt, v1::UNKNOWN);
  SetEvidence(draft, evidence);
  attempt.escalated_seq = draft.sequence;
  attempt.dirty = true;
  Answer answer = About(Verdict::kRecorded, scene.call, &attempt, {draft.sequence});
  answer.wrote = answer.keep_evidence = true;
  return answer;
}

Answer EndByVerdict(Scene& scene, Attempt& attempt, const Evidence& evidence, Finding finding) {
  const bool happened = finding == Finding::kHappened;
  const Counters grant_before = scene.grant();
  const Counters permit_before = scene.permit.money;
  EndClaim(scene.call);
  if (scene.call.attention == "escalated") scene.call.attention.clear();
  attempt.superseded = attempt.state_receipt;
  const v1::CallState end = happened ? v1::SUCCEEDED : v1::NOT_HAPPENED;
  Count(scene.permit, attempt.state, end);
  attempt.state = end;
  attempt.by_verdict = true;
  if (happened) {
    Charge(scene, attempt, SettledAmount(scene, attempt, evidence.amount, true));
  } else {
    GiveBack(scene, attempt);
  }
  FreeIntents(scene);
  if (happened) MarkDone(scene, attempt);
  Draft& draft = WriteCallReceipt(scene, happened ? v1::CALL_RESOLVED_HAPPENED : v1::CALL_RESOLVED_NOT_HAPPENED,
                                  &attempt, happened ? v1::EFFECT_RESOLVED_HAPPENED : v1::EFFECT_RESOLVED_NOT_HAPPENED);
  SetEvidence(draft, evidence);
  draft.payload.set_overrun(std::max<Money>(
      {0, scene.grant().overrun - grant_before.overrun, scene.permit.money.overrun - permit_before.overrun}));
  Supersede(draft, attempt);
  SetState(draft, attempt);
  Answer answer = About(Verdict::kRecorded, scene.call, &attempt, {draft.sequence});
  answer.wrote = answer.keep_evidence = true;
  if (happened && scene.call.contradicted == 0) KeepResult(scene.call, attempt, evidence, answer);
  return answer;
}

// What an attempt's end was, and what was added to it, goes with that end.
void ForgetAnswer(Attempt& attempt) {
  attempt.content = attempt.attached = {};
  attempt.attached_seq = 0;
}

// A verdict that said "happened" was wrong.
Answer TakeBack(Scene& scene, Attempt& attempt, const CorrectRequest& request) {
  Call& call = scene.call;
  attempt.superseded = attempt.state_receipt;
  Count(scene.permit, attempt.state, v1::NOT_HAPPENED);
  attempt.state = v1::NOT_HAPPENED;
  ForgetAnswer(attempt);
  GiveBack(scene, attempt);
  call.contradicted = 0;
  bool another = false;
  for (const Attempt& other : call.attempts) {
    if (other.state != v1::SUCCEEDED) continue;
    another = true;
    if (&other != call.last()) call.contradicted = other.number;
  }
  if (!another) UnmarkDone(scene);
  if (call.result_attempt == attempt.number) call.result_attempt = 0;  // no other's answer was kept beside it
  Draft& draft = WriteCallReceipt(scene, v1::CALL_CORRECTED, &attempt, v1::EFFECT_RESOLVED_NOT_HAPPENED);
  SetEvidence(draft, request.evidence);
  Supersede(draft, attempt);
  SetState(draft, attempt);
  return About(Verdict::kRecorded, call, &attempt, {draft.sequence});
}

Answer PutRight(Scene& scene, Attempt& attempt, const CorrectRequest& request) {
  Answer answer;
  attempt.superseded = attempt.state_receipt;
  ForgetAnswer(attempt);
  StandsAsHappened(scene, attempt, v1::CALL_CORRECTED, SettledAmount(scene, attempt, request.evidence.amount, true),
                   answer);
  v1::ReceiptPayload& payload = scene.world.drafts.back().payload;
  SetEvidence(scene.world.drafts.back(), request.evidence);
  payload.set_effect_known(v1::EFFECT_RESOLVED_HAPPENED);
  answer = About(Verdict::kRecorded, scene.call, &attempt, {attempt.state_seq});
  KeepResult(scene.call, attempt, request.evidence, answer);
  return answer;
}

}  // namespace

Answer Resolve(World& world, const ResolveRequest& request) {
  const Principal& principal = request.principal;
  if (principal.disabled) return Refused(Verdict::kPrincipalDisabled, request.attempt_id);
  if (principal.role != v1::RECONCILER && principal.role != v1::OPERATOR) {
    return Refused(Verdict::kPermissionDenied, request.attempt_id);
  }
  Permit* permit = nullptr;
  Call* call = OwnCall(world, principal, request.call_id, permit);
  if (call == nullptr) return Refused(Verdict::kNotFound, request.attempt_id);
  const bool parked = ParkIfLapsed(world, *permit, *call);

  auto decide = [&]() -> Answer {
    Attempt* attempt = FindAttempt(*call, request.attempt_id);
    if (attempt == nullptr) return About(Verdict::kStaleResolution, *call, nullptr, {});
    if (request.finding != Finding::kCannotTell && SaidBefore(*attempt, request.supersedes, request.finding)) {
      return About(Verdict::kRecorded, *call, attempt, {attempt->state_seq});
    }
    const Answer stale = About(Verdict::kStaleResolution, *call, attempt, {attempt->state_seq});
    if (attempt->state != v1::UNCERTAIN || request.supersedes.empty() || attempt->state_receipt != request.supersedes) {
      return stale;
    }
    if (request.finding == Finding::kCannotTell && attempt->escalated_seq > 0) {
      return About(Verdict::kRecorded, *call, attempt, {attempt->escalated_seq});
    }
    const bool needs_claim = principal.role == v1::RECONCILER || request.claim_id;
    if (needs_claim && !ClaimIsLive(world, *call, request.claim_id)) return stale;
    if (principal.role == v1::RECONCILER && call->claimed_by != principal.id) return stale;
    if (request.finding == Finding::kNotHappened && principal.role == v1::RECONCILER && attempt->escalated_seq > 0) {
      Answer denied = About(Verdict::kPermissionDenied, *call, attempt, {attempt->escalated_seq});
      denied.detail = "after escalation NOT_HAPPENED is a person's word";
      return denied;
    }
    Scene scene{world, *permit, *call, &principal};
    return request.finding == Finding::kCannotTell ? Escalate(scene, *attempt, request.evidence)
                                                   : EndByVerdict(scene, *attempt, request.evidence, request.finding);
  };
  Answer answer = decide();
  answer.wrote |= parked;
  CloseIfDone(world, *permit);
  return answer;
}

Answer Correct(World& world, const CorrectRequest& request) {
  const Principal& principal = request.principal;
  if (principal.disabled) return Refused(Verdict::kPrincipalDisabled, request.attempt_id);
  if (principal.role != v1::OPERATOR) return Refused(Verdict::kPermissionDenied, request.attempt_id);
  Permit* permit = nullptr;
  Call* call = OwnCall(world, principal, request.call_id, permit);
  if (call == nullptr) return Refused(Verdict::kNotFound, request.attempt_id);
  const bool parked = ParkIfLapsed(world, *permit, *call);

  auto decide = [&]() -> Answer {
    Attempt* attempt = FindAttempt(*call, request.attempt_id);
    if (attempt == nullptr) return About(Verdict::kStaleResolution, *call, nullptr, {});
    if (SaidBefore(*attempt, request.supersedes, request.finding)) {
      return About(Verdict::kRecorded, *call, attempt, {attempt->state_seq});
    }
    if (attempt->open()) return About(Verdict::kCommitConflict, *call, attempt, {attempt->state_seq});
    if (request.supersedes.empty() || attempt->state_receipt != request.supersedes) {
      return About(Verdict::kStaleResolution, *call, attempt, {attempt->state_seq});
    }
    const bool succeeded = attempt->state == v1::SUCCEEDED;
    const bool happened = request.finding == Finding::kHappened;
    if (succeeded == happened || (succeeded && !attempt->by_verdict) || (!happened && !succeeded)) {
      return About(Verdict::kCommitConflict, *call, attempt, {attempt->state_seq});
    }
    if (call->attention == "contradicted") call->attention.clear();
    Scene scene{world, *permit, *call, &principal};
    Answer answer = happened ? PutRight(scene, *attempt, request) : TakeBack(scene, *attempt, request);
    answer.wrote = answer.keep_evidence = true;
    return answer;
  };
  Answer answer = decide();
  answer.wrote |= parked;
  CloseIfDone(world, *permit);
  return answer;
}

}  // namespace tally::decide
