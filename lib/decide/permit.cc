#include "lib/decide/change.h"
#include "lib/decide/decide.h"

namespace tally::decide {
namespace {

// The permit, if this operator may act on it.
Permit* Own(World& world, const PermitRequest& request, Answer& refused) {
  refused.verdict = request.principal.disabled ? Verdict::kPrincipalDisabled : Verdict::kPermissionDenied;
  if (request.principal.disabled || request.principal.role != v1::OPERATOR) return nullptr;
  refused.verdict = Verdict::kNotFound;
  Permit* permit = FindPermit(world, request.permit_id);
  if (permit == nullptr || permit->terms->tenant != request.principal.tenant) return nullptr;
  return permit;
}

Answer Recorded(const PermitRequest& request, int64_t sequence, bool wrote) {
  Answer answer;
  answer.receipts.push_back({request.permit_id, sequence});
  answer.wrote = wrote;
  return answer;
}

}  // namespace

Answer Revoke(World& world, const PermitRequest& request) {
  Answer refused;
  Permit* permit = Own(world, request, refused);
  if (permit == nullptr) return refused;
  if (permit->revoked) return Recorded(request, permit->revoked_seq, false);
  if (permit->closed) return Recorded(request, permit->closed_seq, false);  // grants nothing any more
  permit->revoked = true;
  Draft& draft = WriteReceipt(world, *permit, v1::PERMIT_REVOKED, &request.principal);
  permit->revoked_seq = draft.sequence;
  return Recorded(request, draft.sequence, true);
}

Answer Close(World& world, const PermitRequest& request) {
  Answer refused;
  Permit* permit = Own(world, request, refused);
  if (permit == nullptr) return refused;
  if (permit->closed) return Recorded(request, permit->closed_seq, false);
  if (permit->closing) return Recorded(request, permit->closing_seq, false);
  permit->closing = true;
  Draft& draft = WriteReceipt(world, *permit, v1::PERMIT_CLOSING, &request.principal);
  permit->closing_seq = draft.sequence;
  Answer answer = Recorded(request, draft.sequence, true);
  CloseIfDone(world, *permit);
  if (permit->closed) answer.receipts.push_back({request.permit_id, permit->closed_seq});
  return answer;
}

}  // namespace tally::decide
