#include "lib/keys/encoding.h"

#include <sodium.h>

#include <algorithm>

#include "lib/keys/hash.h"

namespace tally::keys {
namespace {

std::string Encode(std::string_view bytes, int variant) {
  std::string out(sodium_base64_ENCODED_LEN(bytes.size(), variant), '\0');
  sodium_bin2base64(out.data(), out.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    variant);
  out.pop_back();  // the terminating zero
  return out;
}

std::optional<std::string> Decode(std::string_view text, int variant) {
  // libsodium 1.0.18 takes some bytes over 0x7f for digits ("aaa\xca" as "aaa/").
  if (!std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) > 0; })) {
    return std::nullopt;
  }
  std::string out(text.size() / 4 * 3 + 3, '\0');
  size_t size = 0;
  const char* end = nullptr;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(out.data()), out.size(), text.data(), text.size(), nullptr,
                        &size, &end, variant) != 0 ||
      end != text.data() + text.size()) {
    return std::nullopt;
  }
  out.resize(size);
  return out;
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string HexEncode(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

std::optional<std::string> HexDecode(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexValue(text[i]);
    const int low = HexValue(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high << 4 | low));
  }
  return out;
}

std::string Base64Encode(std::string_view bytes) { return Encode(bytes, sodium_base64_VARIANT_ORIGINAL); }

std::optional<std::string> Base64Decode(std::string_view text) { return Decode(text, sodium_base64_VARIANT_ORIGINAL); }

std::string Base64UrlEncode(std::string_view bytes) { return Encode(bytes, sodium_base64_VARIANT_URLSAFE_NO_PADDING); }

std::optional<std::string> Base64UrlDecode(std::string_view text) {
  return Decode(text, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

std::optional<std::string> Base64DecodeAny(std::string_view text) {
  if (auto out = Base64Decode(text)) return out;
  if (text.find('=') != std::string_view::npos) return Decode(text, sodium_base64_VARIANT_URLSAFE);
  return Base64UrlDecode(text);
}

}  // namespace tally::keys
