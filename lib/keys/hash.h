// Digests, commitments, randomness and constant-time comparison. Everything here is safe to call from any thread.
#pragma once

#include <sodium.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tally::keys {

inline constexpr size_t kDigestSize = 32;

// A SHA-256 (or HMAC-SHA-256) value. Reads as bytes wherever a std::string_view is taken.
struct Digest {
  std::array<unsigned char, kDigestSize> bytes{};

  std::string_view view() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
  operator std::string_view() const { return view(); }  // NOLINT(google-explicit-constructor)
  std::string str() const { return std::string(view()); }
  auto operator<=>(const Digest&) const = default;
};

// SHA-256 over the concatenation of the parts, without building it.
Digest Sha256(std::string_view bytes);
Digest Sha256(std::initializer_list<std::string_view> parts);

// For callers that meet their bytes piece by piece.
class Sha256Stream {
 public:
  Sha256Stream();
  void Add(std::string_view bytes);
  Digest Finish();  // once; the stream is spent afterwards

 private:
  crypto_hash_sha256_state state_;
};

// HMAC-SHA-256 under a key of any length, over the concatenation of the parts. The parts are not length-prefixed:
// the caller separates what could run together.
Digest HmacSha256(std::string_view key, std::string_view bytes);
Digest HmacSha256(std::string_view key, std::initializer_list<std::string_view> parts);

// What a commitment is about. Each has its own domain string, so that one kind's commitment never passes for another's.
enum class Domain {
  kArguments,  // tallystick/args/v1
  kResult,     // tallystick/result/v1
  kEvidence,   // tallystick/evidence/v1
  kAttempt,    // tallystick/attempt/v1
};
std::string_view DomainName(Domain domain);

inline constexpr size_t kSaltSize = 32;

// SHA-256(domain ‖ 0x00 ‖ salt ‖ bytes). The salt is 32 random bytes kept in an erasable row: without it, nobody can
// test a guess of the bytes. Any other salt length is a bug of the caller and aborts.
Digest Commit(Domain domain, std::string_view salt, std::string_view bytes);

// SHA-256("tallystick/attempt/v1" ‖ 0x00 ‖ attempt_id). Unsalted: an attempt id is 16 random bytes and needs no salt.
Digest AttemptIdHash(std::string_view attempt_id);

// From the kernel's generator.
std::string RandomBytes(size_t size);

// Equal in length and content; takes the same time wherever the first difference is. The lengths are not secret.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

// Called by everything here that needs it; harmless to repeat. Aborts if the library cannot start, for then nothing
// that follows would be safe.
void EnsureSodium();

}  // namespace tally::keys
