#include "lib/keys/hash.h"

#include <cstdio>
#include <cstdlib>

namespace tally::keys {
namespace {

const unsigned char* Bytes(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }

constexpr std::string_view kSeparator{"\0", 1};

}  // namespace

void EnsureSodium() {
  static const int ready = sodium_init();
  if (ready < 0) {
    std::fputs("libsodium could not be initialised (no source of randomness?); stopping before anything is done\n",
               stderr);
    std::abort();
  }
}

Digest Sha256(std::string_view bytes) {
  Digest out;
  crypto_hash_sha256(out.bytes.data(), Bytes(bytes), bytes.size());
  return out;
}

Digest Sha256(std::initializer_list<std::string_view> parts) {
  Sha256Stream stream;
  for (std::string_view part : parts) stream.Add(part);
  return stream.Finish();
}

Sha256Stream::Sha256Stream() { crypto_hash_sha256_init(&state_); }

void Sha256Stream::Add(std::string_view bytes) { crypto_hash_sha256_update(&state_, Bytes(bytes), bytes.size()); }

Digest Sha256Stream::Finish() {
  Digest out;
  crypto_hash_sha256_final(&state_, out.bytes.data());
  return out;
}

Digest HmacSha256(std::string_view key, std::string_view bytes) { return HmacSha256(key, {bytes}); }

Digest HmacSha256(std::string_view key, std::initializer_list<std::string_view> parts) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, Bytes(key), key.size());
  for (std::string_view part : parts) crypto_auth_hmacsha256_update(&state, Bytes(part), part.size());
  Digest out;
  crypto_auth_hmacsha256_final(&state, out.bytes.data());
  sodium_memzero(&state, sizeof state);
  return out;
}

std::string_view DomainName(Domain domain) {
  switch (domain) {
    case Domain::kArguments:
      return "tallystick/args/v1";
    case Domain::kResult:
      return "tallystick/result/v1";
    case Domain::kEvidence:
      return "tallystick/evidence/v1";
    case Domain::kAttempt:
      return "tallystick/attempt/v1";
  }
  std::abort();
}

Digest Commit(Domain domain, std::string_view salt, std::string_view bytes) {
  if (salt.size() != kSaltSize) std::abort();
  return Sha256({DomainName(domain), kSeparator, salt, bytes});
}

Digest AttemptIdHash(std::string_view attempt_id) {
  return Sha256({DomainName(Domain::kAttempt), kSeparator, attempt_id});
}

std::string RandomBytes(size_t size) {
  EnsureSodium();
  std::string out(size, '\0');
  randombytes_buf(out.data(), out.size());
  return out;
}

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace tally::keys
