// JSON from strangers: one document, nothing after it, no member named twice, bounded in size and depth.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string_view>

namespace tally::keys {

inline constexpr size_t kMaxJsonSize = 64 * 1024 * 1024;
inline constexpr int kMaxJsonDepth = 16;

// what: for the message, "keys.json".
absl::StatusOr<nlohmann::json> ParseStrictJson(std::string_view text, std::string_view what);

}  // namespace tally::keys
