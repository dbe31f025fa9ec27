// Text forms of bytes. Decoders take untrusted input: they are strict, and nullopt is their only failure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tally::keys {

std::string HexEncode(std::string_view bytes);                // lower case
std::optional<std::string> HexDecode(std::string_view text);  // either case, even length, nothing else

std::string Base64Encode(std::string_view bytes);                // RFC 4648 section 4, padded
std::optional<std::string> Base64Decode(std::string_view text);  // padded; unused bits must be zero

std::string Base64UrlEncode(std::string_view bytes);                // RFC 4648 section 5, not padded (JOSE)
std::optional<std::string> Base64UrlDecode(std::string_view text);  // not padded

// Standard or URL-safe, as DSSE readers must accept; URL-safe text may leave the padding out.
std::optional<std::string> Base64DecodeAny(std::string_view text);

}  // namespace tally::keys
