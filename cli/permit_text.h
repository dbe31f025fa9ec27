// A permit as people read it.
#pragma once

#include <string>

#include "tally/v1/permits.pb.h"

namespace tally::cli {

// Money of a permit's unit; the bare number of minor units if the unit cannot be read.
std::string MoneyText(int64_t minor, const std::string& unit);

// "held 10.00 USD, spent 20.00 USD of 500.00 USD", with what is over the limit.
std::string BudgetText(const v1::Usage& usage, const std::string& unit);

std::string CostText(const v1::CostRule& cost, const std::string& unit);
std::string PermitStateText(const v1::PermitInfo& permit);

// Terms, usage and one line a grant.
std::string PermitText(const v1::PermitInfo& permit);

}  // namespace tally::cli
