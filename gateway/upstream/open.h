// An upstream by its configuration.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "gateway/config/config.h"
#include "gateway/upstream/read.h"
#include "gateway/upstream/session.h"

namespace tally::gateway {

// A new session, nothing said yet. Fails for a command that cannot be started or a file of secrets that cannot be read.
absl::StatusOr<SharedUpstream> OpenUpstream(const asio::any_io_executor& loop, const std::string& name,
                                            const UpstreamConfig& config, int64_t answer_bytes_max, UpstreamSink sink);

ReadPolicy ReadPolicyOf(const UpstreamConfig& config);

}  // namespace tally::gateway
