// tally-gateway check: what the config says, tried out.
#pragma once

#include "gateway/config/config.h"

namespace tally::gateway {

// Connects to every upstream and prints its tools. 0: all is well; 1: an upstream cannot be had. Calls no tool, asks
// tallyd for nothing.
int Check(const Config& config);

}  // namespace tally::gateway
