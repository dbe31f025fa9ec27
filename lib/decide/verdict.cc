#include "lib/decide/verdict.h"

#include <cassert>
#include <iterator>

namespace tally::decide {
namespace {

using enum Verdict;

constexpr VerdictInfo kTable[] = {
    {kDispatch, v1::DISPATCH, v1::KIND_UNSPECIFIED, "", v1::RETRY_UNSPECIFIED, false,
     "Granted: send the call once, within the send window."},
    {kReplay, v1::REPLAY, v1::KIND_UNSPECIFIED, "", v1::RETRY_UNSPECIFIED, false,
     "Already answered; this is the stored answer. Do not send."},

    {kPrincipalDisabled, v1::DENIED, v1::KIND_UNAUTHORIZED, "UNAUTHENTICATED", v1::RETRY_FIX_CREDENTIAL, false,
     "This principal is disabled. Nothing was done. Ask an admin for a new credential."},
    {kPermissionDenied, v1::DENIED, v1::KIND_UNAUTHORIZED, "PERMISSION_DENIED", v1::RETRY_FIX_CREDENTIAL, false,
     "This principal's role may not do that. Nothing was done."},
    {kNotFound, v1::DENIED, v1::KIND_UNAUTHORIZED, "NOT_FOUND", v1::RETRY_FIX_CREDENTIAL, false,
     "There is no such thing, or it is not yours. Nothing was done. Check the id and the credential."},
    {kAttemptUsed, v1::DENIED, v1::KIND_INVALID, "ATTEMPT_USED", v1::RETRY_NEVER, false,
     "This attempt_id has been used. Nothing was granted. Make a new attempt_id for a new attempt."},
    {kKeyReused, v1::DENIED, v1::KIND_INVALID, "KEY_REUSED", v1::RETRY_NEVER, false,
     "This idempotency key stands for another call. Nothing was done. Use the key only for what it was first used "
     "for."},

    {kSendWindowOver, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "SEND_WINDOW_OVER", v1::RETRY_WAIT, false,
     "The time to send this attempt is over. Do not send; commit NOT_SENT if not one byte was written."},
    {kPendingRevoked, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "PERMIT_REVOKED", v1::RETRY_WAIT, false,
     "The permit was revoked after this attempt was granted. Do not send; commit NOT_SENT if not one byte was "
     "written."},
    {kPendingClosed, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "PERMIT_CLOSED", v1::RETRY_WAIT, false,
     "The permit was closed after this attempt was granted. Do not send; commit NOT_SENT if not one byte was written."},
    {kPendingExpired, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "PERMIT_EXPIRED", v1::RETRY_WAIT, false,
     "The permit expired after this attempt was granted. Do not send; commit NOT_SENT if not one byte was written."},
    {kPendingContradicted, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "CALL_CONTRADICTED", v1::RETRY_WAIT, false,
     "An earlier attempt of this call turned out to have happened. Do not send; commit NOT_SENT if not one byte was "
     "written."},
    {kStillAuthorized, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "STILL_PENDING", v1::RETRY_WAIT, false,
     "Another attempt of this call is under way. Do not send; ask again later with the same key."},
    {kStillPending, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "STILL_PENDING", v1::RETRY_WAIT, false,
     "The outcome of this call is not known: it may have been carried out. Do not send; wait for its resolution."},

    {kPermitRevoked, v1::DENIED, v1::KIND_DENIED, "PERMIT_REVOKED", v1::RETRY_NEVER, true,
     "The permit is revoked. Nothing was done."},
    {kPermitClosed, v1::DENIED, v1::KIND_DENIED, "PERMIT_CLOSED", v1::RETRY_NEVER, true,
     "The permit is closed. Nothing was done."},
    {kPermitNotYetValid, v1::DENIED, v1::KIND_DENIED, "PERMIT_NOT_YET_VALID", v1::RETRY_NEVER, false,
     "The permit is not valid yet. Nothing was done."},
    {kPermitExpired, v1::DENIED, v1::KIND_DENIED, "PERMIT_EXPIRED", v1::RETRY_NEVER, true,
     "The permit has expired. Nothing was done."},
    {kToolNotGranted, v1::DENIED, v1::KIND_DENIED, "TOOL_NOT_GRANTED", v1::RETRY_NEVER, true,
     "The permit does not grant this tool. Nothing was done."},
    {kConstraintUnenforceable, v1::DENIED, v1::KIND_DENIED, "CONSTRAINT_UNENFORCEABLE", v1::RETRY_NEVER, true,
     "A constraint of the grant cannot be enforced on these arguments, so they are refused. Nothing was done."},
    {kConstraintViolated, v1::DENIED, v1::KIND_DENIED, "CONSTRAINT_VIOLATED", v1::RETRY_NEVER, true,
     "The arguments break a constraint of the grant. Nothing was done."},
    {kAttemptsExhausted, v1::DENIED, v1::KIND_DENIED, "ATTEMPTS_EXHAUSTED", v1::RETRY_NEVER, true,
     "This call has had all its attempts. Nothing more was done."},
    {kAmountOverCallLimit, v1::DENIED, v1::KIND_DENIED, "AMOUNT_OVER_CALL_LIMIT", v1::RETRY_NEVER, true,
     "The amount is over the limit for one call. Nothing was done."},
    {kIntentPending, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "INTENT_PENDING", v1::RETRY_WAIT, false,
     "The same act is under way, or its outcome is not known, under another key. Do not send; wait for its "
     "resolution."},
    {kAlreadyDone, v1::REPLAY, v1::KIND_ALREADY_DONE, "ALREADY_DONE", v1::RETRY_NEVER, false,
     "The same act was already done under another key. Nothing new was done; go on."},
    {kOpenCalls, v1::DENIED, v1::KIND_DENIED, "OPEN_CALLS", v1::RETRY_NEVER, false,
     "The permit has as many open calls as it may have. Nothing was done; commit or resolve open calls first."},
    {kCallCap, v1::CAP_EXCEEDED, v1::KIND_CAP_EXCEEDED, "CALL_CAP", v1::RETRY_NEVER, false,
     "All calls that the grant allows are taken. Nothing new was done; earlier calls were."},
    {kToolBudget, v1::CAP_EXCEEDED, v1::KIND_CAP_EXCEEDED, "TOOL_BUDGET", v1::RETRY_NEVER, false,
     "The tool's budget does not cover this call. Nothing new was done; earlier calls were."},
    {kPermitBudget, v1::CAP_EXCEEDED, v1::KIND_CAP_EXCEEDED, "PERMIT_BUDGET", v1::RETRY_NEVER, false,
     "The permit's budget does not cover this call. Nothing new was done; earlier calls were."},

    {kRecorded, v1::DISPOSITION_UNSPECIFIED, v1::KIND_UNSPECIFIED, "", v1::RETRY_UNSPECIFIED, false, "Recorded."},
    {kNoAnswer, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "NO_ANSWER", v1::RETRY_WAIT, false,
     "The call was sent and not answered: it may have been carried out. It is parked until it is resolved."},
    {kLeaseOver, v1::PENDING, v1::KIND_DELIVERY_UNCERTAIN, "LEASE_OVER", v1::RETRY_WAIT, false,
     "The attempt is parked: its lease ended, or it was reported uncertain. This report changes nothing any more."},
    {kReadNoAnswer, v1::REPLAY, v1::KIND_READ_FAILED, "READ_NO_ANSWER", v1::RETRY_CALL_AGAIN, false,
     "The read was not answered. Nothing that matters happened; it may be called again."},
    {kCommitConflict, v1::DENIED, v1::KIND_CONFLICT, "COMMIT_CONFLICT", v1::RETRY_NEVER, false,
     "The attempt has ended otherwise, as recorded. Nothing was changed; read the call."},
    {kStaleResolution, v1::DENIED, v1::KIND_CONFLICT, "STALE_RESOLUTION", v1::RETRY_NEVER, false,
     "The call has moved on since. Nothing was changed; read the call."},
    {kClaimed, v1::DENIED, v1::KIND_CONFLICT, "CLAIMED", v1::RETRY_NEVER, false,
     "Another reconciler has claimed this call. Nothing was changed; take another, or wait until the claim ends."},
};

constexpr bool InEnumOrder() {
  for (size_t i = 0; i < std::size(kTable); ++i) {
    if (static_cast<size_t>(kTable[i].verdict) != i) return false;
  }
  return std::size(kTable) == static_cast<size_t>(kClaimed) + 1;
}
static_assert(InEnumOrder());

}  // namespace

const VerdictInfo& Info(Verdict verdict) { return kTable[static_cast<size_t>(verdict)]; }

std::optional<Verdict> VerdictOfCode(std::string_view code) {
  for (const VerdictInfo& info : kTable) {
    if (!code.empty() && info.code == code && info.verdict >= kPermitRevoked && info.verdict <= kPermitBudget) {
      return info.verdict;
    }
  }
  return std::nullopt;
}

}  // namespace tally::decide
