#include <algorithm>

#include "lib/decide/change.h"
#include "lib/decide/decide.h"

namespace tally::decide {

Answer Extend(World& world, const ExtendRequest& request) {
  Answer refused;
  refused.attempt_id = request.attempt_id;
  refused.verdict = Verdict::kPermissionDenied;
  if (request.principal.role != v1::GATEWAY) return refused;
  refused.verdict = Verdict::kPrincipalDisabled;
  if (request.principal.disabled) return refused;
  refused.verdict = Verdict::kNotFound;
  Call* call = FindCall(world, request.call);
  call = FindHolder(world, call, request.attempt_id);
  if (call == nullptr) return refused;
  Permit* permit = FindPermit(world, call->permit_id);
  Attempt* attempt = FindAttempt(*call, request.attempt_id);
  if (permit == nullptr || permit->terms->tenant != request.principal.tenant || attempt == nullptr ||
      attempt->principal_id != request.principal.id) {
    return refused;
  }
  const bool parked = ParkIfLapsed(world, *permit, *call);
  Answer answer;
  if (attempt->state == v1::AUTHORIZED) {
    const Time wanted = std::min(world.now + request.lease, attempt->granted_at + kLeaseMax);
    if (wanted > attempt->lease_end) {
      attempt->lease_end = wanted;
      attempt->dirty = call->dirty = true;
      Scene scene{world, *permit, *call, &request.principal};
      TouchLease(scene, *attempt);
    }
    answer = About(Verdict::kRecorded, *call, attempt, {attempt->allowed_seq});
    answer.wrote = attempt->lease_end == wanted;
  } else if (attempt->state == v1::UNCERTAIN || attempt->read_no_answer) {
    answer = About(Verdict::kLeaseOver, *call, attempt, {attempt->state_seq});
  } else {
    answer = About(Verdict::kCommitConflict, *call, attempt, {attempt->state_seq});
    answer.detail = "it ended " + v1::CallState_Name(attempt->state);
  }
  answer.wrote |= parked;
  CloseIfDone(world, *permit);
  return answer;
}

Answer Sweep(World& world, const SweepRequest& request) {
  Answer answer;
  Call* call = FindCall(world, CallName::OfCall(request.call_id));
  Permit* permit = call != nullptr ? FindPermit(world, call->permit_id) : nullptr;
  if (permit == nullptr) return answer;
  const bool parked = ParkIfLapsed(world, *permit, *call);
  CloseIfDone(world, *permit);
  answer = About(Verdict::kRecorded, *call, call->last(), {});
  answer.wrote = parked;
  return answer;
}

}  // namespace tally::decide
