#ifndef TALLY_TESTS_DECIDE_RUN_H_
#define TALLY_TESTS_DECIDE_RUN_H_

#include <cstdint>
#include <map>
#include <string>

#include "tests/decide/history.h"

namespace tally::decide::testing {

// What was seen on the way, so that a generator that stops reaching something is noticed.
struct Seen {
  std::map<std::string, int64_t> count;
};

// Runs a history against lib/decide and the model side by side and checks the rules after every batch. Empty, or what
// is wrong and at which step. `trace`, where not null, gets a line for each message.
std::string RunHistory(const History& history, Seen* seen, std::string* trace);

// The smallest history found by leaving things out that still fails.
History Shrink(History history);

}  // namespace tally::decide::testing

#endif  // TALLY_TESTS_DECIDE_RUN_H_
