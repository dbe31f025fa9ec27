#include "lib/decide/change.h"
#include "lib/decide/decide.h"

// What a reconciler says before it knows what became of a call.
namespace tally::decide {
namespace {

// A replay is a send, so it needs what a grant needs of the permit. In the order of Authorize's guards.
Verdict MaySendNow(const Permit& permit, Time now) {
  if (permit.revoked) return Verdict::kPermitRevoked;
  if (permit.closing || permit.closed) return Verdict::kPermitClosed;
  if (now < permit.terms->not_before) return Verdict::kPermitNotYetValid;
  return now >= permit.terms->expires_at ? Verdict::kPermitExpired : Verdict::kRecorded;
}

Answer Replay(World& world, Permit& permit, Call& call, const ReplayRequest& request) {
  Attempt* attempt = FindAttempt(call, request.attempt_id);
  if (attempt == nullptr) return About(Verdict::kStaleResolution, call, nullptr, {});
  const bool parked =
      attempt->state == v1::UNCERTAIN && !request.supersedes.empty() && attempt->state_receipt == request.supersedes;
  if (!parked || !ClaimIsLive(world, call, request.claim_id) || call.claimed_by != request.principal.id) {
    return About(Verdict::kStaleResolution, call, attempt, {attempt->state_seq});
  }
  if (call.contradicted > 0) {
    // As an attempt that is granted and not yet sent: it must not be any more.
    Answer stale = About(Verdict::kStaleResolution, call, attempt, {attempt->state_seq});
    stale.detail = "an earlier attempt of it turned out to have happened, so it must not be sent again";
    return stale;
  }
  const Verdict verdict = MaySendNow(permit, world.now);
  if (verdict != Verdict::kRecorded) return About(verdict, call, attempt, {attempt->state_seq});
  Scene scene{world, permit, call, &request.principal};
  const Draft& draft = WriteCallReceipt(scene, v1::CALL_REPLAY_SENT, attempt, v1::UNKNOWN);
  Answer answer = About(Verdict::kRecorded, call, attempt, {draft.sequence});
  answer.wrote = true;
  return answer;
}

}  // namespace

Answer Claim(World& world, const ClaimRequest& request) {
  Answer answer;
  const Principal& principal = request.principal;
  answer.verdict = principal.disabled ? Verdict::kPrincipalDisabled : Verdict::kPermissionDenied;
  if (principal.disabled || principal.role != v1::RECONCILER) return answer;
  Permit* permit = nullptr;
  Call* call = OwnCall(world, principal, request.call_id, permit);
  answer.verdict = Verdict::kNotFound;
  if (call == nullptr) return answer;
  const bool parked = ParkIfLapsed(world, *permit, *call);
  const Attempt* attempt = call->last();
  if (attempt == nullptr || attempt->state != v1::UNCERTAIN) {
    answer = About(Verdict::kStaleResolution, *call, attempt, {});
  } else if (call->claim_id && world.now < call->claim_until) {
    answer = About(Verdict::kClaimed, *call, attempt, {});
  } else {
    call->claim_id = request.new_claim_id;
    call->claim_until = world.now + request.claim;
    call->claimed_by = principal.id;
    call->dirty = true;
    answer = About(Verdict::kRecorded, *call, attempt, {attempt->state_seq});
    answer.wrote = true;
  }
  answer.wrote |= parked;
  CloseIfDone(world, *permit);
  return answer;
}

Answer BeginReplay(World& world, const ReplayRequest& request) {
  Answer refused;
  refused.attempt_id = request.attempt_id;
  const Principal& principal = request.principal;
  refused.verdict = principal.disabled ? Verdict::kPrincipalDisabled : Verdict::kPermissionDenied;
  if (principal.disabled || principal.role != v1::RECONCILER) return refused;
  Permit* permit = nullptr;
  Call* call = OwnCall(world, principal, request.call_id, permit);
  refused.verdict = Verdict::kNotFound;
  if (call == nullptr) return refused;
  const bool parked = ParkIfLapsed(world, *permit, *call);
  Answer answer = Replay(world, *permit, *call, request);
  answer.wrote |= parked;
  CloseIfDone(world, *permit);
  return answer;
}

}  // namespace tally::decide
