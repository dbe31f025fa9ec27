// Histories of looks, judged one after the other as an engine does, against the rules said again in another way: over
// the whole history, as sets.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "reconciler/engine/judge.h"

namespace tally::reconciler {
namespace {

using What = Decision::What;

struct Step {
  int finding = 0;
  int gap_ms = 0;  // before it begins
  int took_ms = 0;
  int amount = 0;    // 0: none
  int id = 0;        // 0: none
  bool mine = true;  // else another process's, of which only the finding is known
};

struct History {
  Limits limits;
  Parked parked;
  std::vector<Step> steps;
};

rc::Gen<Step> AStep() {
  return rc::gen::build<Step>(
      rc::gen::set(&Step::finding, rc::gen::weightedElement<int>({{1, 1}, {1, 2}, {6, 3}, {2, 4}, {3, 5}})),
      rc::gen::set(&Step::gap_ms, rc::gen::inRange(0, 400)), rc::gen::set(&Step::took_ms, rc::gen::inRange(0, 100)),
      rc::gen::set(&Step::amount, rc::gen::weightedElement<int>({{4, 0}, {2, 7}, {1, 8}})),
      rc::gen::set(&Step::id, rc::gen::weightedElement<int>({{4, 0}, {2, 1}, {1, 2}})),
      rc::gen::set(&Step::mine, rc::gen::weightedElement<bool>({{4, true}, {1, false}})));
}

History AHistory() {
  History history;
  history.limits = {.absent_is_final_after = milliseconds(*rc::gen::inRange(1, 1500)),
                    .absent_spacing = milliseconds(*rc::gen::inRange(1, 500)),
                    .give_up_after = milliseconds(*rc::gen::inRange(500, 5000)),
                    .look_after_escalation = milliseconds(10'000),
                    .backoff_min = milliseconds(20),
                    .backoff_max = milliseconds(600)};
  history.parked.parked_at_us = 1'000'000;
  history.parked.quiet_from_us = *rc::gen::inRange<int64_t>(500'000, 2'000'000);
  history.parked.escalated = *rc::gen::weightedElement<bool>({{4, false}, {1, true}});
  history.steps = *rc::gen::container<std::vector<Step>>(AStep());
  return history;
}

v1::Finding FindingOf(const Step& step) { return static_cast<v1::Finding>(step.finding); }

// The rules, as the contract has them.
What Expected(const History& history, const std::vector<Step>& before, const std::vector<Sighting>& mine,
              const Step& now, const Sighting& present) {
  std::set<v1::Finding> seen;
  for (const Step& step : before) seen.insert(FindingOf(step));
  const v1::Finding finding = FindingOf(now);
  std::set<v1::Finding> clash;
  if (finding == v1::FINDING_ABSENT) clash = {v1::FINDING_HAPPENED, v1::FINDING_PENDING, v1::FINDING_NOT_HAPPENED};
  if (finding == v1::FINDING_NOT_HAPPENED) clash = {v1::FINDING_HAPPENED};
  if (finding == v1::FINDING_HAPPENED) clash = {v1::FINDING_NOT_HAPPENED};
  if (finding == v1::FINDING_PENDING) clash = {v1::FINDING_HAPPENED, v1::FINDING_NOT_HAPPENED};
  bool contradicted = false;
  for (const v1::Finding other : clash) contradicted |= seen.contains(other);
  std::set<int64_t> amounts;
  std::set<std::string> ids;
  for (const Sighting& sighting : mine) {
    if (sighting.amount) amounts.insert(*sighting.amount);
    if (!sighting.provider_id.empty()) ids.insert(sighting.provider_id);
  }
  if (present.amount) {
    amounts.erase(*present.amount);
    contradicted |= !amounts.empty();
  }
  if (!present.provider_id.empty()) {
    ids.erase(present.provider_id);
    contradicted |= !ids.empty();
  }
  const bool escalated = history.parked.escalated;
  if (contradicted) return escalated ? What::kLookAgain : What::kEscalate;
  if (finding == v1::FINDING_HAPPENED) return What::kHappened;
  if (escalated) return What::kLookAgain;
  if (finding == v1::FINDING_NOT_HAPPENED) return What::kNotHappened;
  const int64_t counts_from = history.parked.quiet_from_us + history.limits.absent_is_final_after.count() * 1000;
  if (finding == v1::FINDING_ABSENT && present.server_us >= counts_from) {
    for (const Sighting& first : mine) {
      if (first.finding == v1::FINDING_ABSENT && first.server_us >= counts_from &&
          first.ended + history.limits.absent_spacing <= present.began) {
        return What::kNotHappened;
      }
    }
  }
  const int64_t over = history.parked.parked_at_us + history.limits.give_up_after.count() * 1000;
  return present.server_us >= over ? What::kEscalate : What::kLookAgain;
}

RC_GTEST_PROP(Judge, FollowsTheRulesOverWholeHistories, ()) {
  History history = AHistory();
  std::vector<Sighting> own, mine;
  std::vector<Step> before;
  milliseconds now{1'000};
  for (const Step& step : history.steps) {
    now += milliseconds(step.gap_ms);
    Sighting present;
    present.finding = FindingOf(step);
    present.began = now;
    present.server_us = now.count() * 1000;
    now += milliseconds(step.took_ms);
    present.ended = now;
    if (step.finding == v1::FINDING_HAPPENED && step.amount > 0) present.amount = step.amount;
    if (step.finding <= 2 && step.id > 0) present.provider_id = std::to_string(step.id);
    if (step.mine) {
      const Decision decision = Judge(history.limits, history.parked, own, present);
      const What expected = Expected(history, before, mine, step, present);
      RC_ASSERT(decision.what == expected);
      if (decision.what == What::kLookAgain) {
        RC_ASSERT(decision.wait_min >= milliseconds(1));
        RC_ASSERT(decision.wait_min <= decision.wait_max);
        RC_ASSERT(decision.wait_max <= std::max(history.limits.backoff_max, history.limits.absent_spacing * 5 / 4));
      } else {
        RC_ASSERT(!decision.reason.empty());
      }
      own.push_back(present);
      mine.push_back(present);
    }
    // What is noted is known to all.
    before.push_back(step);
    history.parked.noted.push_back(FindingOf(step));
  }
}

// The one that money hangs on: whatever else is said, an error, a timeout or something unreadable releases nothing.
RC_GTEST_PROP(Judge, UnclearNeverReleasesAHold, ()) {
  History history = AHistory();
  std::vector<Sighting> own;
  milliseconds now{*rc::gen::inRange(1'000, 100'000)};
  for (const Step& step : history.steps) {
    Sighting sighting;
    sighting.finding = FindingOf(step);
    sighting.began = sighting.ended = now += milliseconds(step.gap_ms);
    sighting.server_us = now.count() * 1000;
    own.push_back(sighting);
  }
  Sighting unclear;
  unclear.began = unclear.ended = now + milliseconds(100'000);
  unclear.server_us = unclear.began.count() * 1000;
  const Decision decision = Judge(history.limits, history.parked, own, unclear);
  RC_ASSERT(decision.what == What::kLookAgain || decision.what == What::kEscalate);
}

}  // namespace
}  // namespace tally::reconciler
