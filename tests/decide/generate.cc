#include <algorithm>
#include <random>

#include "tests/decide/history.h"

namespace tally::decide::testing {
namespace {

// std::mt19937_64 is the same everywhere; the standard distributions are not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int Below(int n) { return static_cast<int>(engine_() % static_cast<uint64_t>(n)); }
  bool Percent(int p) { return Below(100) < p; }
  template <typename T>
  T Of(std::initializer_list<T> choices) {
    return choices.begin()[Below(static_cast<int>(choices.size()))];
  }

 private:
  std::mt19937_64 engine_;
};

constexpr int64_t kSecondUs = 1'000'000;

// Small enough to be met soon, and now and then nothing at all.
model::Limit SmallLimit(Dice& dice, int unlimited_percent, int least, int most) {
  if (dice.Percent(unlimited_percent)) return std::nullopt;
  if (dice.Percent(4)) return 0;
  return least + dice.Below(most - least + 1);
}

model::Grant MakeGrant(Dice& dice) {
  model::Grant grant;
  grant.cap = SmallLimit(dice, 40, 1, 4);
  grant.budget = SmallLimit(dice, 50, 5, 25);
  grant.per_call = SmallLimit(dice, 85, 5, 9);
  grant.read = dice.Percent(20);
  grant.repeat_window = dice.Of<int64_t>({0, 60, 600, 600, 172'800}) * kSecondUs;
  grant.keep_on_error = dice.Percent(60);
  grant.reported = dice.Percent(35);
  grant.lease = dice.Of<int64_t>({5, 30, 120, 120}) * kSecondUs;
  grant.send_within = dice.Of<int64_t>({2, 10, 10, 60}) * kSecondUs;
  grant.max_attempts = dice.Of({1, 2, 3, 5, 5});
  return grant;
}

PermitPlan MakePermit(Dice& dice, const std::vector<int>& scopes) {
  PermitPlan plan;
  plan.tenant = dice.Percent(85) ? 0 : 1;
  plan.subject = dice.Percent(70) ? 0 : 1;
  plan.terms.budget = SmallLimit(dice, 50, 8, 40);
  plan.terms.from = dice.Percent(6) ? 20 * kSecondUs : 0;
  plan.terms.until = (dice.Percent(12) ? 100 : 10'000'000) * kSecondUs;
  plan.scopes = scopes;
  for (size_t i = 0; i < scopes.size(); ++i) plan.terms.grants.push_back(MakeGrant(dice));
  return plan;
}

Pick PickAttempt(Dice& dice) {
  const int roll = dice.Below(100);
  if (roll < 72) return Pick::kLast;
  if (roll < 84) return Pick::kEarlier;
  if (roll < 94) return Pick::kRecent;
  return roll < 97 ? Pick::kVoided : Pick::kFresh;
}

int PickGateway(Dice& dice) {
  const int roll = dice.Below(200);
  if (roll < 193) return kFirstGateway;
  if (roll < 197) return kOtherGateway;
  if (roll < 198) return kDisabledGateway;
  return roll < 199 ? kHardDisabledGateway : dice.Below(6);
}

void MakeAuthorize(Dice& dice, Step& step) {
  step.who = PickGateway(dice);
  step.pick = dice.Percent(65) ? Pick::kFresh : PickAttempt(dice);
  step.other_meaning = dice.Percent(2) ? 1 + dice.Below(4) : 0;
  step.repeat = dice.Percent(12);
  step.lease_s = dice.Of({0, 0, 0, 1, 20, 600});
}

void MakeCommit(Dice& dice, Step& step) {
  step.who = PickGateway(dice);
  step.pick = PickAttempt(dice);
  step.by_id = dice.Percent(40);
  step.outcome = dice.Of({model::Outcome::kNotSent, model::Outcome::kNotSent, model::Outcome::kUncertain,
                          model::Outcome::kUncertain, model::Outcome::kSucceeded, model::Outcome::kSucceeded,
                          model::Outcome::kSucceeded, model::Outcome::kToolError});
  if (step.outcome == model::Outcome::kSucceeded || step.outcome == model::Outcome::kToolError) {
    step.result = dice.Percent(85) ? 1 + (dice.Percent(25) ? 1 : 0) : 0;
    step.reported = dice.Percent(50) ? dice.Of({0, 1, 3, 7, 12, 95, 1000}) : -1;
    step.no_effect = step.outcome == model::Outcome::kToolError && dice.Percent(30);
    step.undelivered = dice.Percent(20);
  }
}

void MakeVerdict(Dice& dice, Step& step) {
  step.who = step.op == Op::kCorrect || dice.Percent(35) ? kOperator : kReconciler;
  if (dice.Percent(6)) step.who = dice.Below(8);
  step.pick = dice.Percent(85) ? Pick::kLast : PickAttempt(dice);
  step.name = dice.Percent(88) ? Name::kPresent : dice.Of({Name::kAllowed, Name::kNone});
  step.right_claim = dice.Percent(step.who == kOperator ? 30 : 92);
  step.finding = dice.Of({model::Finding::kHappened, model::Finding::kNotHappened, model::Finding::kCannotTell});
  if (step.op == Op::kCorrect && step.finding == model::Finding::kCannotTell) step.finding = model::Finding::kHappened;
  step.reported = dice.Percent(25) ? dice.Of({0, 2, 15, 120}) : -1;
  step.result = dice.Percent(25) ? 1 : 0;
}

// Where the history looks just now: most messages are about the same call.
struct Focus {
  int permit = 0, key = 0;
};

void AddSteps(Dice& dice, const History& history, const Focus& focus, std::vector<Step>& steps) {
  Step step;
  const bool focused = dice.Percent(75);
  step.permit = focused ? focus.permit : dice.Below(static_cast<int>(history.permits.size()));
  step.key = focused ? focus.key : dice.Below(static_cast<int>(history.keys.size()));
  step.nth = dice.Below(6);
  const int roll = dice.Below(1000);
  if (roll < 360) {
    MakeAuthorize(dice, step);
  } else if (roll < 700) {
    step.op = Op::kCommit;
    MakeCommit(dice, step);
  } else if (roll < 740) {
    step.op = Op::kExtend;
    step.who = PickGateway(dice);
    step.pick = PickAttempt(dice);
    step.by_id = dice.Percent(50);
    step.lease_s = dice.Of({1, 30, 300, 86'400});
  } else if (roll < 860) {
    step.op = Op::kResolve;
    MakeVerdict(dice, step);
    if (step.who == kReconciler && dice.Percent(70)) {
      Step claim = step;
      claim.op = Op::kClaim;
      claim.result = 0;
      claim.reported = -1;
      claim.lease_s = dice.Of({1, 60, 600});
      steps.push_back(claim);
    }
  } else if (roll < 935) {
    step.op = Op::kCorrect;
    MakeVerdict(dice, step);
  } else if (roll < 950) {
    step.op = Op::kReplay;
    step.who = dice.Percent(92) ? kReconciler : dice.Below(8);
    step.pick = dice.Percent(92) ? Pick::kLast : PickAttempt(dice);
    step.name = dice.Percent(92) ? Name::kPresent : dice.Of({Name::kAllowed, Name::kNone});
    step.right_claim = dice.Percent(92);
    if (dice.Percent(80)) {
      Step claim = step;
      claim.op = Op::kClaim;
      claim.lease_s = dice.Of({1, 60, 600});
      steps.push_back(claim);
    }
  } else if (roll < 970) {
    step.op = Op::kClaim;
    step.who = dice.Percent(70) ? kReconciler : dice.Percent(80) ? kOtherReconciler : dice.Below(8);
    step.lease_s = dice.Of({1, 60, 600});
  } else if (roll < 987) {
    step.op = Op::kSweep;
  } else {
    step.op = roll < 991 ? Op::kRevoke : Op::kClose;
    step.who = dice.Percent(95) ? kOperator : dice.Below(8);
  }
  steps.push_back(step);
}

}  // namespace

model::Who WhoIs(int who) {
  using model::Role;
  constexpr Role kRoles[] = {Role::kGateway,  Role::kGateway, Role::kReconciler, Role::kReconciler,
                             Role::kOperator, Role::kAuditor, Role::kGateway,    Role::kGateway};
  // The disabled ones are the first gateway after it was disabled: attempts that it made are its own.
  const bool disabled = who >= kDisabledGateway;
  return {disabled ? kFirstGateway : who, kRoles[who], disabled, who == kHardDisabledGateway};
}

History Generate(uint64_t seed) {
  Dice dice(seed * 0x9E3779B97F4A7C15u + 1);
  History history;
  history.seed = seed;
  std::vector<int> scopes(1 + dice.Below(2));
  for (int& scope : scopes) scope = 1 + dice.Below(3);
  const int permits = 1 + dice.Below(3);
  for (int i = 0; i < permits; ++i) history.permits.push_back(MakePermit(dice, scopes));
  const int intents = 1 + dice.Below(3);
  const int keys = 1 + dice.Below(5);
  for (int i = 0; i < keys; ++i) {
    KeyPlan key{.core = dice.Below(intents), .noise = dice.Below(2), .amount = dice.Below(10)};
    key.explicit_amount = dice.Percent(40);
    key.explicit_intent = dice.Percent(25) ? dice.Below(2) : -1;
    key.violated = dice.Percent(2);
    key.unenforceable = dice.Percent(1);
    history.keys.push_back(key);
  }
  const size_t most = static_cast<size_t>(dice.Of({1, 2, 4, 8}));
  // Each history has a pace of its own.
  std::vector<int64_t> paces(3);
  for (int64_t& pace : paces) pace = dice.Of<int64_t>({0, 1, 1, 3, 3, 10, 10, 40, 150, 700, 90'000});
  size_t left = 15 + static_cast<size_t>(dice.Below(30));
  Focus focus;
  while (left > 0) {
    if (dice.Percent(30)) focus = {dice.Below(permits), dice.Below(keys)};
    Batch batch;
    batch.pass_s = dice.Percent(30) ? 0 : paces[static_cast<size_t>(dice.Below(3))];
    batch.crash = dice.Percent(10);
    const size_t size = 1 + static_cast<size_t>(dice.Below(static_cast<int>(most)));
    while (batch.steps.size() < size) AddSteps(dice, history, focus, batch.steps);
    left -= std::min(left, batch.steps.size());
    history.batches.push_back(std::move(batch));
  }
  return history;
}

}  // namespace tally::decide::testing
