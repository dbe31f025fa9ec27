#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/decide/run.h"

// TALLY_HISTORIES: how many for this half (50,000 unless told). TALLY_SEED: where to begin, 0 in CI. TALLY_HISTORY:
// only that one, with every message and answer printed.
namespace tally::decide::testing {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string Explain(const History& history, const std::string& wrong) {
  const History small = Shrink(history);
  std::string trace;
  const std::string of_small = RunHistory(small, nullptr, &trace);
  return wrong + "\nThe smallest that fails:\n" + Print(small) + "what was said:\n" + trace + of_small +
         "\nRun it alone with TALLY_HISTORY=" + std::to_string(history.seed);
}

TEST(Histories, KeepTheRulesAndAnswerAsTheModelDoes) {
  if (const uint64_t only = FromEnvironment("TALLY_HISTORY", UINT64_MAX); only != UINT64_MAX) {
    const History history = Generate(only);
    const std::string wrong = RunHistory(history, nullptr, nullptr);
    ASSERT_EQ(wrong, "") << Print(history) << Explain(history, wrong);
    return;
  }
  const uint64_t count = FromEnvironment("TALLY_HISTORIES", 50'000);
  const uint64_t first = FromEnvironment("TALLY_SEED", 0);
  Seen seen;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t seed = first + 2 * i + TALLY_HALF;
    const History history = Generate(seed);
    const std::string wrong = RunHistory(history, &seen, nullptr);
    ASSERT_EQ(wrong, "") << Explain(history, wrong);
  }
  for (const auto& [what, times] : seen.count) {
    if (std::getenv("TALLY_SHOW_SEEN") != nullptr)
      std::printf("%9lld %s\n", static_cast<long long>(times), what.c_str());
  }
}

}  // namespace
}  // namespace tally::decide::testing
