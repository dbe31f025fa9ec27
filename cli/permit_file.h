// A permit file: TOML, or the same as JSON (a file whose first character is '{'). What operators write and
// `tally permit mint -f` reads; docs/permit-file.md describes it to people.
//
// Nothing is guessed. Every key that is not known is refused, `cap`, `budget` and `cost` must be written out, and
// errors name the place: `grant 2 (payments__refund): …`. What only the server can judge (whether a schema can be
// enforced) is left to it.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "tally/v1/permits.pb.h"

namespace tally::cli {

inline constexpr size_t kPermitFileBytesMax = 1 << 20;
inline constexpr int kGrantsMax = 256;

// Takes any bytes. InvalidArgument with a sentence for the person who wrote the file.
absl::StatusOr<v1::MintRequest> ParsePermitFile(std::string_view text);

// `250ms`, `120s`, `10m`, `24h`, `7d`, or `0`: milliseconds.
absl::StatusOr<int64_t> ParseDuration(std::string_view text);

}  // namespace tally::cli
