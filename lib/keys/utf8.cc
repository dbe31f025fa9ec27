#include "lib/keys/utf8.h"

#include <cstdint>
#include <optional>

namespace tally::keys {
namespace {

// Takes one character off the front; nullopt if it is malformed.
std::optional<uint32_t> Next(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t length = first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
  if (length == 0 || text.size() < length) return std::nullopt;
  uint32_t value = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >> 6 != 2) return std::nullopt;
    value = value << 6 | (byte & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

bool IsSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    if (!Next(text)) return false;
  }
  return true;
}

bool IsPlainUtf8(std::string_view text) {
  while (!text.empty()) {
    const auto c = Next(text);
    if (!c || IsSpace(*c)) return false;
  }
  return true;
}

}  // namespace tally::keys
