// Seeds at rest: sealed so that a copy of the database does not give the keys away.
//
// A sealed blob is
//   "TSEAL" ‖ version 0x01 ‖ kdf ‖ [kdf 2: opslimit u32, memory KiB u32, salt 16] ‖ nonce 24 ‖ secretbox(plaintext)
// (integers big-endian), where
//   kdf 1: master = the key-encryption key          kdf 2: master = Argon2id(passphrase, salt)
//   secretbox key = HMAC-SHA-256(master, "tallystick/seal/v1" ‖ 0x00 ‖ everything before the nonce ‖ context)
// so that a blob opens only under the context it was sealed for, and its header cannot be altered.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/keys/secret.h"

namespace tally::keys {

// What Argon2id costs. The default takes 256 MiB and about a second.
struct Argon2Cost {
  uint32_t operations = 3;
  uint32_t memory_kib = 256 * 1024;
};

class Sealer {
 public:
  // 32 bytes.
  static absl::StatusOr<Sealer> FromKey(Secret key_encryption_key);
  // At least 8 bytes. Every Seal and Unseal costs one Argon2id.
  static absl::StatusOr<Sealer> FromPassphrase(Secret passphrase, Argon2Cost cost = {});

  // context: what the plaintext belongs to (for a signing seed its key id), so that blobs cannot be swapped.
  // Fails only if Argon2id cannot get its memory.
  absl::StatusOr<std::string> Seal(const Secret& plaintext, std::string_view context) const;

  // InvalidArgument: not a sealed blob, or of another kind or a later version. FailedPrecondition: it does not open:
  // wrong key or passphrase, wrong context, or altered; these cannot be told apart.
  absl::StatusOr<Secret> Unseal(std::string_view blob, std::string_view context) const;

 private:
  enum class Kdf : unsigned char { kKey = 1, kArgon2id = 2 };

  Sealer(Kdf kdf, Secret secret, Argon2Cost cost) : kdf_(kdf), secret_(std::move(secret)), cost_(cost) {}
  absl::StatusOr<Secret> BoxKey(std::string_view header, std::string_view context) const;

  Kdf kdf_;
  Secret secret_;
  Argon2Cost cost_;
};

}  // namespace tally::keys
