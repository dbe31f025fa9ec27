// Pure: may this URL be asked at all, before any name is resolved?
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tally::outbound {

inline constexpr size_t kUrlBytesMax = 2048;

// InvalidArgument, in words that hold nothing of the URL: not http or https, or http where it is not allowed; longer
// than kUrlBytesMax; user or password in it; a fragment; no host; a port that is none; spaces, control or non-ASCII
// characters, backslashes.
absl::Status CheckUrl(std::string_view url, bool allow_http);

// scheme://host[:port] of a URL that CheckUrl accepts, for errors and logs: paths and queries may be secret.
std::string Origin(std::string_view url);

// The same, for a URL with a host that is an address already: false if that address is not public. True for names: what
// they resolve to is checked when they are connected to.
bool MayBePublic(std::string_view url);

}  // namespace tally::outbound
