// Whoever holds a private key and signs with it. The seam for a key management service.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <memory>
#include <string_view>

#include "lib/keys/public_key.h"
#include "lib/keys/secret.h"

namespace tally::keys {

using Signature = std::array<unsigned char, kSignatureSize>;

class Signer {
 public:
  virtual ~Signer() = default;

  // An Ed25519 signature over exactly these bytes, which verifies under public_key(). Safe to call from any thread.
  // Fails only if the key cannot be reached (a remote service); the local one never does.
  virtual absl::StatusOr<Signature> Sign(std::string_view message) const = 0;

  // Name, bytes and id; the same for as long as the signer lives.
  virtual const PublicKey& public_key() const = 0;
};

inline constexpr size_t kSeedSize = 32;

// Signs in memory, from a 32-byte seed (RFC 8032).
class Ed25519Signer final : public Signer {
 public:
  static absl::StatusOr<std::unique_ptr<Ed25519Signer>> Create(std::string_view name, const Secret& seed);

  absl::StatusOr<Signature> Sign(std::string_view message) const override;
  const PublicKey& public_key() const override { return public_key_; }

 private:
  Ed25519Signer(PublicKey public_key, Secret expanded)
      : public_key_(std::move(public_key)), expanded_(std::move(expanded)) {}

  PublicKey public_key_;
  Secret expanded_;  // seed ‖ public key, as libsodium wants it
};

}  // namespace tally::keys
