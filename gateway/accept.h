// tally-gateway accept: what has changed is meant to be so.
#pragma once

#include <string>

#include "gateway/config/config.h"

namespace tally::gateway {

// Connects to the upstream and pins its tools, or one of them (by its own name, or as UPSTREAM__TOOL), as they are now.
// Without a tool, pins of tools that are no longer there go. A gateway that is running takes it up by itself. Returns
// the program's exit code.
int Accept(const Config& config, const std::string& upstream, const std::string& tool);

}  // namespace tally::gateway
