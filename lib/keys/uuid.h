// UUIDv7 (RFC 9562 section 5.7) as 16 raw bytes, and its text form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tally::keys {

inline constexpr size_t kUuidSize = 16;

// unix_ms: the caller's clock, 48 bits. rand_a: 12 bits of the caller's choice (a shard number, say); the other 62 free
// bits are random. Values out of range are a bug of the caller and abort.
std::string NewUuid7(int64_t unix_ms, uint16_t rand_a);

// Version 7, RFC 9562 variant, 16 bytes.
bool IsUuid7(std::string_view bytes);

// Of a valid UUIDv7.
int64_t Uuid7UnixMs(std::string_view bytes);
uint16_t Uuid7RandA(std::string_view bytes);

// 8-4-4-4-12 lower-case hex, of any 16 bytes; bytes of another length give their plain hex, so that a message about
// them can still be written.
std::string UuidText(std::string_view bytes);

// The exact reverse, either case, of any version; nullopt for everything else.
std::optional<std::string> ParseUuid(std::string_view text);

}  // namespace tally::keys
