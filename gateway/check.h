// tally-gateway check: what the config says, tried out.
#pragma once

#include <string>

#include "gateway/config/config.h"

namespace tally::gateway {

struct CheckOptions {
  bool json = false;
  // Where the permit token is whose grants are compared: "env:NAME" or "file:PATH" as for permit.stdio. Empty:
  // TALLY_PERMIT_TOKEN where the environment has it, else no permit.
  std::string permit;
};

// Connects to every upstream, prints its tools, and what the permit says of each. Calls no tool, asks tallyd for
// nothing but the permit, writes no file. The exit code: see check_report.h.
int Check(const Config& config, const CheckOptions& options);

}  // namespace tally::gateway
