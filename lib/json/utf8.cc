#include "lib/json/utf8.h"

#include <algorithm>
#include <cstddef>

namespace tally::json {
namespace {

uint8_t Byte(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

// U+E000 to U+FFFF (lead bytes EE, EF) come after the surrogates that begin supplementary characters (F0 to F4).
int Utf16Rank(uint8_t byte) { return byte == 0xEE || byte == 0xEF ? byte + 0x10 : byte; }

}  // namespace

size_t Utf8SequenceLength(std::string_view text) {
  if (text.empty()) return 0;
  const uint8_t lead = Byte(text, 0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  if (length == 0 || text.size() < length) return 0;
  if (Byte(text, 1) < low || Byte(text, 1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((Byte(text, i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

char32_t TakeCodePoint(std::string_view* text) {
  const uint8_t lead = Byte(*text, 0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t code_point = length == 1 ? lead : lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) code_point = code_point << 6 | (Byte(*text, i) & 0x3Fu);
  text->remove_prefix(length);
  return code_point;
}

void AppendUtf8(char32_t code_point, std::string* out) {
  const auto continuation = [&](int shift) { out->push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3F))); };
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out->push_back(static_cast<char>(0xC0 | code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

size_t CountCodePoints(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

bool Utf16Less(std::string_view a, std::string_view b) {
  const size_t common = std::min(a.size(), b.size());
  const auto [end_a, end_b] = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(common), b.begin());
  const size_t at = static_cast<size_t>(end_a - a.begin());
  if (at == common) return a.size() < b.size();
  // Well-formed texts first differ either in a lead byte or, below equal lead bytes, in a continuation byte.
  return Utf16Rank(Byte(a, at)) < Utf16Rank(Byte(b, at));
}

}  // namespace tally::json
