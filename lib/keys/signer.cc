#include "lib/keys/signer.h"

#include <utility>

#include "lib/keys/text.h"

namespace tally::keys {

absl::StatusOr<std::unique_ptr<Ed25519Signer>> Ed25519Signer::Create(std::string_view name, const Secret& seed) {
  if (seed.size() != kSeedSize) {
    return absl::InvalidArgumentError(Cat("an Ed25519 seed has 32 bytes, not ", seed.size()));
  }
  EnsureSodium();
  std::array<unsigned char, kPublicKeySize> public_bytes{};
  std::string expanded(crypto_sign_SECRETKEYBYTES, '\0');
  crypto_sign_seed_keypair(public_bytes.data(), reinterpret_cast<unsigned char*>(expanded.data()),
                           reinterpret_cast<const unsigned char*>(seed.Expose().data()));
  Secret kept = Secret::Take(expanded);
  auto public_key = PublicKey::Create(name, {reinterpret_cast<const char*>(public_bytes.data()), public_bytes.size()});
  if (!public_key.ok()) return public_key.status();
  return std::unique_ptr<Ed25519Signer>(new Ed25519Signer(*std::move(public_key), std::move(kept)));
}

absl::StatusOr<Signature> Ed25519Signer::Sign(std::string_view message) const {
  Signature out;
  crypto_sign_detached(out.data(), nullptr, reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                       reinterpret_cast<const unsigned char*>(expanded_.Expose().data()));
  return out;
}

}  // namespace tally::keys
