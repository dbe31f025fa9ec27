// A gateway from its start to its end.
#pragma once

#include "gateway/config/config.h"

namespace tally::gateway {

// Each returns the program's exit code when it was told to stop (SIGTERM, SIGINT) or its client went; 1: it could not
// start, and has said why.
int ServeHttp(const Config& config);
int ServeStdio(const Config& config);

}  // namespace tally::gateway
