// The keys an auditor trusts: keys.json, or any other published form, and the look-up by what a receipt says.
//
// keys.json:
//   { "format": "tallystick-keys/v1",
//     "keys": [ { "name": "tally.example", "key_id": hex, "vkey": "tally.example+…+…", "public_key": hex,
//                 "not_before_us": 1767225600000000, "not_after_us": null, "status": "active" } ] }
// Times are microseconds since the Unix epoch, both ends included; null or absent is an open end.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/keys/public_key.h"

namespace tally::keys {

enum class KeyStatus {
  kActive,   // signs
  kRetired,  // signs no more; what it signed inside its window stands
  kRevoked,  // in wrong hands: nothing it signed counts, for whoever has it can write any time into a receipt
};
std::string_view KeyStatusName(KeyStatus status);  // active, retired, revoked

struct KnownKey {
  // Empty: the source (PEM, a bare JWK) has none, so it serves any issuer whose key id fits.
  std::string name = {};
  std::string bytes = {};  // 32
  std::optional<int64_t> not_before_us = std::nullopt;
  std::optional<int64_t> not_after_us = std::nullopt;
  KeyStatus status = KeyStatus::kActive;

  bool Covers(int64_t time_us) const {
    return (!not_before_us || time_us >= *not_before_us) && (!not_after_us || time_us <= *not_after_us);
  }
  bool operator==(const KnownKey&) const = default;
};

// Every key here must have a name.
std::string ToKeysJson(const std::vector<KnownKey>& keys);

class KeyRing {
 public:
  // Any of: keys.json, a JWK Set, PEM, vkeys one a line ('#' begins a comment line). The error says which was tried.
  static absl::StatusOr<KeyRing> Parse(std::string_view text);
  explicit KeyRing(std::vector<KnownKey> keys) : keys_(std::move(keys)) {}

  // The key that this issuer signs with under this id; null if it is not among the trusted ones.
  const KnownKey* Find(std::string_view issuer, std::string_view key_id) const;
  const std::vector<KnownKey>& keys() const { return keys_; }

 private:
  std::vector<KnownKey> keys_;
};

}  // namespace tally::keys
