#ifndef TALLY_LIB_DECIDE_VERDICT_H_
#define TALLY_LIB_DECIDE_VERDICT_H_

#include <optional>
#include <string_view>

#include "tally/v1/common.pb.h"

namespace tally::decide {

// Every outcome of a decision, one name each. Refusals of Authorize stand in the order in which its guards run; a test
// pins that order.
enum class Verdict {
  // Authorize grants or repeats.
  kDispatch,
  kReplay,
  // Errors: nothing is written.
  kPrincipalDisabled,
  kPermissionDenied,
  kNotFound,
  kAttemptUsed,
  kKeyReused,
  // An open attempt answers for the key.
  kSendWindowOver,
  kPendingRevoked,
  kPendingClosed,
  kPendingExpired,
  kPendingContradicted,
  kStillAuthorized,
  kStillPending,
  // Guards of Authorize.
  kPermitRevoked,
  kPermitClosed,
  kPermitNotYetValid,
  kPermitExpired,
  kToolNotGranted,
  kConstraintUnenforceable,
  kConstraintViolated,
  kAttemptsExhausted,
  kAmountOverCallLimit,
  kIntentPending,
  kAlreadyDone,
  kOpenCalls,
  kCallCap,
  kToolBudget,
  kPermitBudget,
  // Commit, Extend, Resolve, Correct.
  kRecorded,
  kNoAnswer,
  kLeaseOver,
  kReadNoAnswer,
  kCommitConflict,
  kStaleResolution,
  kClaimed,
};

struct VerdictInfo {
  Verdict verdict;
  v1::Disposition disposition;  // of an Authorize that ends so
  v1::Kind kind;
  std::string_view code;
  v1::Retry retry;
  // A refusal for a fixed reason is given again without deciding; one for a passing reason is decided again.
  bool fixed;
  // What happened, whether anything was done, what to do next.
  std::string_view message;
};

// The one place where a verdict gets its kind, code, advice and words.
const VerdictInfo& Info(Verdict verdict);

// The refusal with this code, or nullopt: codes are what the store keeps.
std::optional<Verdict> VerdictOfCode(std::string_view code);

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_VERDICT_H_
