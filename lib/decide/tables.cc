#include "lib/decide/tables.h"

namespace tally::decide {
namespace {

using enum CommitAction;

// Rows: what Commit says. Columns: where the attempt stands, in the order of AttemptIs.
constexpr CommitAction kCommitTable[4][kAttemptIsCount] = {
    // clang-format off
    //  unseen     voided        leased      uncertain          released        succeeded       happened        tool error      read no answer     not happened
    {   kVoid,     kTheEndItHad, kRelease,   kRefuseLeaseOver,  kTheEndItHad,   kConflict,      kConflict,      kConflict,      kRefuseLeaseOver,  kConflict    },  // NOT_SENT
    {   kNotFound, kConflict,    kPark,      kAddToUncertain,   kTheEndItHad,   kTheEndItHad,   kTheEndItHad,   kTheEndItHad,   kTheEndItHad,      kTheEndItHad },  // UNCERTAIN
    {   kNotFound, kConflict,    kSucceed,   kSucceed,          kContradict,    kIfSameContent, kAttach,        kContradict,    kReplaceRead,      kContradict  },  // SUCCEEDED
    {   kNotFound, kConflict,    kToolError, kToolError,        kConflict,      kConflict,      kAttachAndCall, kIfSameContent, kReplaceRead,      kAttach      },  // TOOL_ERROR
    // clang-format on
};

constexpr KeyAction kKeyTable[kKeyIsCount] = {
    KeyAction::kDecide,             // unknown
    KeyAction::kKeyReused,          // other fingerprint
    KeyAction::kAttemptUsed,        // attempt used
    KeyAction::kOriginalAnswer,     // authorized, same attempt, in time
    KeyAction::kPendingWindowOver,  // authorized, same attempt, otherwise
    KeyAction::kPendingOther,       // authorized, other attempt
    KeyAction::kReplay,             // answered
    KeyAction::kPendingUncertain,   // uncertain
    KeyAction::kDecide,             // given back
    KeyAction::kSameRefusal,        // refused, fixed
    KeyAction::kDecide,             // refused, passing
};

}  // namespace

CommitAction OnCommit(Outcome said, AttemptIs attempt) {
  return kCommitTable[static_cast<int>(said)][static_cast<int>(attempt)];
}

KeyAction OnSameKey(KeyIs key) { return kKeyTable[static_cast<int>(key)]; }

}  // namespace tally::decide
