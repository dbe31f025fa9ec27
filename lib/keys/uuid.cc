#include "lib/keys/uuid.h"

#include <sodium.h>

#include <cstdlib>

#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"

namespace tally::keys {
namespace {

constexpr size_t kTextSize = 36;

bool IsDash(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

uint8_t At(std::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

}  // namespace

std::string NewUuid7(int64_t unix_ms, uint16_t rand_a) {
  if (unix_ms < 0 || unix_ms >> 48 != 0 || rand_a >> 12 != 0) std::abort();
  EnsureSodium();
  std::string out(kUuidSize, '\0');
  randombytes_buf(out.data() + 8, 8);
  for (int i = 0; i < 6; ++i) out[static_cast<size_t>(i)] = static_cast<char>(unix_ms >> (40 - 8 * i));
  out[6] = static_cast<char>(0x70 | rand_a >> 8);
  out[7] = static_cast<char>(rand_a & 0xff);
  out[8] = static_cast<char>((At(out, 8) & 0x3f) | 0x80);
  return out;
}

bool IsUuid7(std::string_view bytes) {
  return bytes.size() == kUuidSize && At(bytes, 6) >> 4 == 7 && At(bytes, 8) >> 6 == 2;
}

int64_t Uuid7UnixMs(std::string_view bytes) {
  int64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = ms << 8 | At(bytes, i);
  return ms;
}

uint16_t Uuid7RandA(std::string_view bytes) { return static_cast<uint16_t>((At(bytes, 6) & 0x0f) << 8 | At(bytes, 7)); }

std::string UuidText(std::string_view bytes) {
  const std::string hex = HexEncode(bytes);
  if (bytes.size() != kUuidSize) return hex;
  return hex.substr(0, 8) + '-' + hex.substr(8, 4) + '-' + hex.substr(12, 4) + '-' + hex.substr(16, 4) + '-' +
         hex.substr(20);
}

std::optional<std::string> ParseUuid(std::string_view text) {
  if (text.size() != kTextSize) return std::nullopt;
  std::string hex;
  hex.reserve(kUuidSize * 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsDash(i) != (text[i] == '-')) return std::nullopt;
    if (!IsDash(i)) hex.push_back(text[i]);
  }
  return HexDecode(hex);
}

}  // namespace tally::keys
