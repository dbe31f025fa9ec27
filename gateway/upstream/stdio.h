// An upstream that is a command: one JSON object a line on its standard streams. Its stderr goes to the log, bounded.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "gateway/upstream/session.h"
#include "lib/process/child.h"

namespace tally::gateway {

// Starts the process. It is stopped by Close(): stdin is closed, then SIGTERM, then SIGKILL to its group; a session
// that is dropped without Close() goes on. `name` is the upstream's, for the log.
absl::StatusOr<SharedUpstream> StartStdioUpstream(const asio::any_io_executor& loop, std::string name,
                                                  const process::Command& command, UpstreamSink sink,
                                                  const UpstreamLimits& limits = {});

}  // namespace tally::gateway
