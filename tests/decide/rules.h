#ifndef TALLY_TESTS_DECIDE_RULES_H_
#define TALLY_TESTS_DECIDE_RULES_H_

#include <string>

#include "tests/decide/store.h"

// The rules that must hold at every moment, told over what is stored and what was acknowledged, with no model between.
namespace tally::decide::testing {

// Empty, or which rule is broken and where.
std::string BrokenRule(const Store& store);

// Watches the receipts as they come: what may follow what (rules 1 and 4), and what may raise an overrun.
std::string BrokenStep(const Store& before, const World& after, Time now);

}  // namespace tally::decide::testing

#endif  // TALLY_TESTS_DECIDE_RULES_H_
