// TOML as the JSON value it stands for, so that one reader serves both.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "lib/json/value.h"

namespace tally::cli {

// Times become strings (RFC 3339); one without an offset is refused, since it means another moment on every machine.
// InvalidArgument names the line of what TOML does not allow.
absl::StatusOr<json::Value> ParseToml(std::string_view text);

}  // namespace tally::cli
