#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reconciler/lookup/replay.h"

namespace tally::reconciler {
namespace {

using std::chrono::milliseconds;

RC_GTEST_PROP(ReplayWindow, LetsNothingBeSentWhoseAnswerCouldComeAfterTheProviderForgot, ()) {
  const auto granted = *rc::gen::inRange<int64_t>(0, 4'000'000'000'000'000);
  const milliseconds window(*rc::gen::inRange<int64_t>(0, 100'000'000));
  const milliseconds timeout(*rc::gen::inRange<int64_t>(0, 1'000'000));
  const milliseconds margin(*rc::gen::inRange<int64_t>(0, 1'000'000));
  const auto claim = *rc::gen::inRange<int64_t>(0, 200'000'000'000);
  const auto later = *rc::gen::inRange<int64_t>(0, 110'000'000'000);
  const ReplayWindow replay{granted, granted + claim, window, margin, timeout};
  const int64_t now = granted + later;
  const bool may = replay.WhyNot(now).empty();
  const bool known = now + (timeout.count() + margin.count()) * 1'000 <= granted + window.count() * 1'000;
  const bool claimed = granted + claim == 0 || now + timeout.count() * 1'000 <= granted + claim;
  RC_ASSERT(may == (known && claimed));
}

// The first grant counts, whichever attempts there are besides.
RC_GTEST_PROP(ReplayWindow, IsCountedFromTheEarliestAttemptThatMayHaveBeenSent, ()) {
  v1::ParkedCall parked;
  int64_t earliest = parked.granted_at_us();
  const auto grants = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int64_t, bool>>>(
      rc::gen::pair(rc::gen::inRange<int64_t>(1, 1'000'000), rc::gen::arbitrary<bool>())));
  parked.set_granted_at_us(grants.back().first);
  earliest = grants.back().first;
  for (const auto& [granted, released] : grants) {
    v1::AttemptInfo& attempt = *parked.mutable_call()->add_attempts();
    attempt.set_granted_at_us(granted);
    attempt.set_state(released ? v1::RELEASED : v1::NOT_HAPPENED);
    if (!released) earliest = std::min(earliest, granted);
  }
  RC_ASSERT(WindowOf(parked, gateway::ToolConfig(), milliseconds(0), milliseconds(0)).first_granted_us == earliest);
}

}  // namespace
}  // namespace tally::reconciler
