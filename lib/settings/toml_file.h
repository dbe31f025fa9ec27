// A settings file as text and as TOML.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <toml++/toml.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace tally::settings {

inline constexpr size_t kFileBytesMax = 1 << 20;

// The whole file, at most a byte over kFileBytesMax. NotFound or PermissionDenied, with the system's reason, where it
// cannot be read.
absl::StatusOr<std::string> ReadSettingsFile(const std::string& path);

// InvalidArgument says at which line it is not TOML. The parser's own words may quote the text that it could not read;
// where a name in `confidential` stands on that line or above it, they are left out, since what they quote may be a
// secret that somebody forgot to put in quotes.
absl::StatusOr<toml::table> ParseToml(std::string_view text, std::string_view source,
                                      std::initializer_list<std::string_view> confidential);

// `path` as it is meant by a file in `folder`. Empty stays empty.
void MakeAbsolute(const std::string& folder, std::string& path);

}  // namespace tally::settings
