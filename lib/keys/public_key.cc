#include "lib/keys/public_key.h"

#include "lib/keys/text.h"
#include "lib/keys/utf8.h"

namespace tally::keys {

Digest KeyId(std::string_view name, std::string_view public_key) {
  return Sha256({name, std::string_view("\n\x01", 2), public_key});
}

absl::Status CheckKeyName(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameSize) {
    return absl::InvalidArgumentError(Cat("a key name has 1 to ", kMaxNameSize, " bytes, not ", name.size()));
  }
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f || c == '+') {
      return absl::InvalidArgumentError("a key name has no spaces, control characters or '+'");
    }
  }
  if (!IsPlainUtf8(name)) return absl::InvalidArgumentError("a key name is UTF-8 without Unicode spaces");
  return absl::OkStatus();
}

bool VerifySignature(std::string_view public_key, std::string_view message, std::string_view signature) {
  if (public_key.size() != kPublicKeySize || signature.size() != kSignatureSize) return false;
  EnsureSodium();
  const auto bytes = [](std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); };
  return crypto_sign_verify_detached(bytes(signature), bytes(message), message.size(), bytes(public_key)) == 0;
}

absl::StatusOr<PublicKey> PublicKey::Create(std::string_view name, std::string_view bytes) {
  if (absl::Status status = CheckKeyName(name); !status.ok()) return status;
  if (bytes.size() != kPublicKeySize) {
    return absl::InvalidArgumentError(Cat("an Ed25519 public key has 32 bytes, not ", bytes.size()));
  }
  return PublicKey(name, bytes);
}

}  // namespace tally::keys
