// The rules that must hold at every moment, asked of the database in SQL that shares nothing with the product's code.
#pragma once

#include <string>

namespace tally::test {

// One value of one row, as text; empty for none.
std::string Query(const std::string& conninfo, const std::string& sql);

// Says what does not hold, and for which row; empty: all does.
std::string BrokenRule(const std::string& conninfo);

}  // namespace tally::test
