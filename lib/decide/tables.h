#ifndef TALLY_LIB_DECIDE_TABLES_H_
#define TALLY_LIB_DECIDE_TABLES_H_

#include "lib/decide/request.h"

// The two tables of a call's life, as tables. Everything that may be said of an attempt, and every way in which a key
// may be asked again, is one cell; the decisions look the cell up and carry it out.
namespace tally::decide {

// Where an attempt stands when something is said about it.
enum class AttemptIs {
  kUnseen,
  kVoided,
  kLeased,     // AUTHORIZED, lease running
  kUncertain,  // UNCERTAIN; an AUTHORIZED attempt whose lease is over becomes so first
  kReleased,
  kSucceeded,  // by the gateway, or by a verdict to which the answer has been attached
  kHappened,   // SUCCEEDED by a verdict, its answer not known
  kToolError,
  kReadNoAnswer,  // TOOL_ERROR for want of an answer
  kNotHappened,
};
inline constexpr int kAttemptIsCount = 10;

enum class CommitAction {
  kRelease,
  kPark,
  kSucceed,
  kToolError,
  kVoid,  // write a tombstone
  kNotFound,
  kRefuseLeaseOver,  // and note it for the reconciler
  kTheEndItHad,      // the original receipt, whatever was said
  kAddToUncertain,   // the original receipt; send time and partial answer are added if new
  kIfSameContent,    // the original receipt, else COMMIT_CONFLICT
  kAttach,           // to a verdict
  kAttachAndCall,    // likewise, and a person is called
  kContradict,
  kReplaceRead,  // a late answer to a READ
  kConflict,
};

CommitAction OnCommit(Outcome said, AttemptIs attempt);

// What a key's record says when Authorize comes.
enum class KeyIs {
  kUnknown,
  kOtherFingerprint,
  kAttemptUsed,         // the attempt_id has ended, is a tombstone or belongs elsewhere
  kAuthorizedSame,      // same attempt_id, send window running, permit active
  kAuthorizedSameLate,  // same attempt_id otherwise
  kAuthorizedOther,     // another attempt_id, lease running
  kAnswered,            // SUCCEEDED or TOOL_ERROR
  kUncertain,           // or AUTHORIZED past its lease, which becomes so first
  kGivenBack,           // RELEASED or NOT_HAPPENED
  kRefusedFixed,
  kRefusedPassing,
};
inline constexpr int kKeyIsCount = 11;

enum class KeyAction {
  kDecide,
  kKeyReused,
  kAttemptUsed,
  kOriginalAnswer,
  kPendingWindowOver,
  kPendingOther,
  kReplay,
  kPendingUncertain,
  kSameRefusal,
};

KeyAction OnSameKey(KeyIs key);

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_TABLES_H_
