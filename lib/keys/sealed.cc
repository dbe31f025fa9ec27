#include "lib/keys/sealed.h"

#include <sodium.h>

#include <utility>

#include "lib/keys/hash.h"
#include "lib/keys/text.h"

namespace tally::keys {
namespace {

constexpr std::string_view kMagic = "TSEAL";
constexpr char kVersion = 1;
constexpr size_t kPrefixSize = kMagic.size() + 2;
constexpr size_t kArgon2HeaderSize = kPrefixSize + 8 + crypto_pwhash_SALTBYTES;
constexpr size_t kMinPassphraseSize = 8;
// A blob is not trusted before it opens: it must not be able to ask for more than this.
constexpr Argon2Cost kMaxCost{16, 1024 * 1024};

unsigned char* Out(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }
const unsigned char* In(std::string_view s) { return reinterpret_cast<const unsigned char*>(s.data()); }

std::string BigEndian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}

uint32_t BigEndian(std::string_view four) {
  uint32_t out = 0;
  for (unsigned char c : four) out = out << 8 | c;
  return out;
}

}  // namespace

absl::StatusOr<Sealer> Sealer::FromKey(Secret key_encryption_key) {
  if (key_encryption_key.size() != crypto_secretbox_KEYBYTES) {
    return absl::InvalidArgumentError("a key-encryption key has 32 bytes");
  }
  return Sealer(Kdf::kKey, std::move(key_encryption_key), {});
}

absl::StatusOr<Sealer> Sealer::FromPassphrase(Secret passphrase, Argon2Cost cost) {
  if (passphrase.size() < kMinPassphraseSize) {
    return absl::InvalidArgumentError(Cat("a passphrase has at least ", kMinPassphraseSize, " bytes"));
  }
  if (cost.operations < crypto_pwhash_OPSLIMIT_MIN || cost.operations > kMaxCost.operations ||
      cost.memory_kib < crypto_pwhash_MEMLIMIT_MIN / 1024 || cost.memory_kib > kMaxCost.memory_kib) {
    return absl::InvalidArgumentError("Argon2id takes 1 to 16 operations and 8 KiB to 1 GiB of memory");
  }
  return Sealer(Kdf::kArgon2id, std::move(passphrase), cost);
}

absl::StatusOr<Secret> Sealer::BoxKey(std::string_view header, std::string_view context) const {
  std::string master(crypto_secretbox_KEYBYTES, '\0');
  if (kdf_ == Kdf::kArgon2id) {
    const std::string_view cost = header.substr(kPrefixSize);
    if (crypto_pwhash(Out(master), master.size(), secret_.Expose().data(), secret_.size(), In(cost.substr(8)),
                      BigEndian(cost.substr(0, 4)), size_t{BigEndian(cost.substr(4, 4))} * 1024,
                      crypto_pwhash_ALG_ARGON2ID13) != 0) {
      return absl::ResourceExhaustedError(
          Cat("Argon2id could not get its ", BigEndian(cost.substr(4, 4)), " KiB of memory"));
    }
  } else {
    master.assign(secret_.Expose());
  }
  const Secret kept = Secret::Take(master);
  Digest key = HmacSha256(kept.Expose(), {std::string_view("tallystick/seal/v1\0", 19), header, context});
  Secret out = Secret::Copy(key);
  sodium_memzero(key.bytes.data(), key.bytes.size());
  return out;
}

absl::StatusOr<std::string> Sealer::Seal(const Secret& plaintext, std::string_view context) const {
  std::string header(kMagic);
  header.push_back(kVersion);
  header.push_back(static_cast<char>(kdf_));
  if (kdf_ == Kdf::kArgon2id) {
    header += Cat(BigEndian(cost_.operations), BigEndian(cost_.memory_kib), RandomBytes(crypto_pwhash_SALTBYTES));
  }
  auto key = BoxKey(header, context);
  if (!key.ok()) return key.status();
  const std::string nonce = RandomBytes(crypto_secretbox_NONCEBYTES);
  std::string box(plaintext.size() + crypto_secretbox_MACBYTES, '\0');
  crypto_secretbox_easy(Out(box), In(plaintext.Expose()), plaintext.size(), In(nonce), In(key->Expose()));
  return Cat(header, nonce, box);
}

absl::StatusOr<Secret> Sealer::Unseal(std::string_view blob, std::string_view context) const {
  if (!blob.starts_with(kMagic) || blob.size() < kPrefixSize) {
    return absl::InvalidArgumentError("not a sealed key: it does not begin as one");
  }
  if (blob[kMagic.size()] != kVersion) {
    return absl::InvalidArgumentError(Cat("a sealed key of version ", int{blob[kMagic.size()]},
                                          ", which this program does not know; use a newer one"));
  }
  if (blob[kMagic.size() + 1] != static_cast<char>(kdf_)) {
    return absl::InvalidArgumentError(kdf_ == Kdf::kKey
                                          ? "this key is sealed with a passphrase, not with a key-encryption key"
                                          : "this key is sealed with a key-encryption key, not with a passphrase");
  }
  const size_t header_size = kdf_ == Kdf::kKey ? kPrefixSize : kArgon2HeaderSize;
  if (blob.size() < header_size + crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES) {
    return absl::InvalidArgumentError("a sealed key that was cut short");
  }
  const std::string_view header = blob.substr(0, header_size);
  if (kdf_ == Kdf::kArgon2id) {
    const uint32_t operations = BigEndian(header.substr(kPrefixSize, 4));
    const uint32_t memory_kib = BigEndian(header.substr(kPrefixSize + 4, 4));
    if (operations < crypto_pwhash_OPSLIMIT_MIN || operations > kMaxCost.operations ||
        memory_kib < crypto_pwhash_MEMLIMIT_MIN / 1024 || memory_kib > kMaxCost.memory_kib) {
      return absl::InvalidArgumentError("a sealed key that asks Argon2id for more than is reasonable; it was altered");
    }
  }
  auto key = BoxKey(header, context);
  if (!key.ok()) return key.status();
  const std::string_view nonce = blob.substr(header_size, crypto_secretbox_NONCEBYTES);
  const std::string_view box = blob.substr(header_size + crypto_secretbox_NONCEBYTES);
  std::string plaintext(box.size() - crypto_secretbox_MACBYTES, '\0');
  if (crypto_secretbox_open_easy(Out(plaintext), In(box), box.size(), In(nonce), In(key->Expose())) != 0) {
    return absl::FailedPreconditionError(
        "the sealed key does not open: wrong key-encryption key or passphrase, or it belongs to another key id, or it "
        "was "
        "altered. Nothing was changed");
  }
  return Secret::Take(plaintext);
}

}  // namespace tally::keys
