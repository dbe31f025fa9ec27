#ifndef TALLY_TESTS_DECIDE_HISTORY_H_
#define TALLY_TESTS_DECIDE_HISTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/model.h"

// A history as a script: what the terms are and who says what, when. Everything in it is a choice ("the key's last
// attempt", "the receipt it stands on"), so that a script stays meaningful when steps are taken out of it.
namespace tally::decide::testing {

enum class Op { kAuthorize, kCommit, kExtend, kResolve, kCorrect, kReplay, kClaim, kSweep, kRevoke, kClose };

// Which attempt is meant.
enum class Pick {
  kFresh,    // an id never used before
  kLast,     // the key's last
  kEarlier,  // an earlier one of the key's
  kRecent,   // one that was made lately, for whichever key, acknowledged or not
  kVoided,   // a tombstone
};

// Which receipt a verdict names.
enum class Name { kPresent, kAllowed, kNone };

struct Step {
  Op op = Op::kAuthorize;
  int permit = 0;
  int key = 0;
  Pick pick = Pick::kFresh;
  int nth = 0;            // for kEarlier, kRecent, kVoided
  int who = 0;            // principal, see Principals()
  bool by_id = false;     // the call is named by its id
  int other_meaning = 0;  // 1–4: tool, arguments, amount or explicit intent differ from what the key stands for
  bool repeat = false;
  int lease_s = 0;  // 0: not asked for
  model::Outcome outcome = model::Outcome::kUncertain;
  int result = 0;  // 0: none
  int reported = -1;
  bool no_effect = false, undelivered = false;
  Name name = Name::kPresent;
  bool right_claim = true;
  model::Finding finding = model::Finding::kCannotTell;
};

struct Batch {
  int64_t pass_s = 0;  // before it
  bool crash = false;  // after it was decided and before it was stored
  std::vector<Step> steps;
};

struct PermitPlan {
  int tenant = 0, subject = 0;
  model::Permit terms;
  std::vector<int> scopes;  // of its grants: 1 permit, 2 subject, 3 tenant
};

// What a key stands for, in whichever permit.
struct KeyPlan {
  int core = 0;   // what is to be done
  int noise = 0;  // a part of the arguments that the intent ignores
  int amount = 0;
  bool explicit_amount = false;
  int explicit_intent = -1;
  bool violated = false, unenforceable = false;
};

struct History {
  uint64_t seed = 0;
  std::vector<KeyPlan> keys;
  std::vector<PermitPlan> permits;
  std::vector<Batch> batches;
};

inline constexpr int kFirstGateway = 0, kOtherGateway = 1, kReconciler = 2, kOtherReconciler = 3, kOperator = 4,
                     kAuditor = 5, kDisabledGateway = 6, kHardDisabledGateway = 7;
model::Who WhoIs(int who);

// The same history for the same seed, on every machine.
History Generate(uint64_t seed);

std::string Print(const History& history);
std::string PrintStep(const Step& step);

}  // namespace tally::decide::testing

#endif  // TALLY_TESTS_DECIDE_HISTORY_H_
