// How public keys are handed to the world, and read back. Readers take untrusted text.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "lib/keys/public_key.h"

namespace tally::keys {

// C2SP signed-note verifier key: name "+" first 4 bytes of the key id in hex "+" base64(0x01 ‖ public key).
std::string ToVkey(const PublicKey& key);
absl::StatusOr<PublicKey> FromVkey(std::string_view text);

// SubjectPublicKeyInfo (RFC 8410), after a line of text (RFC 7468 allows it) with the key id and the name, by which a
// person or a script finds the right block in a file of several.
std::string ToPem(const PublicKey& key);
// The raw 32 bytes of every block in the text; a PEM key has no name. Private keys and other key types are refused.
absl::StatusOr<std::vector<std::string>> FromPem(std::string_view text);

// A JWK Set (RFC 8037): kty OKP, crv Ed25519, alg Ed25519 (RFC 9864), kid = the key id in hex, and `name`.
std::string ToJwks(const std::vector<PublicKey>& keys);
// name is empty where the set names none; a kid beside a name must be the id of both.
struct JwksKey {
  std::string name;
  std::string bytes;
};
absl::StatusOr<std::vector<JwksKey>> FromJwks(std::string_view text);

}  // namespace tally::keys
