// An Ed25519 public key with the name its owner signs under, and the id made of both.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "lib/keys/hash.h"

namespace tally::keys {

inline constexpr size_t kPublicKeySize = 32;
inline constexpr size_t kSignatureSize = 64;
inline constexpr size_t kMaxNameSize = 255;

// SHA-256(name ‖ 0x0A ‖ 0x01 ‖ public key): the C2SP signed-note key id, not cut short.
Digest KeyId(std::string_view name, std::string_view public_key);

// A name that C2SP's text form can carry: 1–255 bytes of UTF-8 without spaces, control characters or '+'.
absl::Status CheckKeyName(std::string_view name);

// libsodium's rule (RFC 8032 without cofactor; non-canonical S, small-order points and non-canonical public keys are
// refused). False for wrong lengths.
bool VerifySignature(std::string_view public_key, std::string_view message, std::string_view signature);

class PublicKey {
 public:
  static absl::StatusOr<PublicKey> Create(std::string_view name, std::string_view bytes);

  const std::string& name() const { return name_; }
  const std::string& bytes() const { return bytes_; }
  const Digest& id() const { return id_; }
  bool operator==(const PublicKey&) const = default;

 private:
  PublicKey(std::string_view name, std::string_view bytes) : name_(name), bytes_(bytes), id_(KeyId(name, bytes)) {}

  std::string name_;
  std::string bytes_;
  Digest id_;
};

}  // namespace tally::keys
