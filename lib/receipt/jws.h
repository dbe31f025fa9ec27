// A receipt as a compact JWS (RFC 7515), for those whose tools speak JOSE and not DSSE. It is a second signature, over
// the JSON projection of the payload, which carries the receipt's id; the DSSE envelope stays the original.
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/keys/key_file.h"
#include "lib/keys/signer.h"
#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

namespace v1 = ::tally::v1;

inline constexpr std::string_view kJwsType = "tallystick-receipt+json";

// Header: alg "Ed25519" (RFC 9864), kid = the key id in hex, typ. The receipt itself must parse.
absl::StatusOr<std::string> ToJws(const v1::Receipt& receipt, const keys::Signer& signer);

struct JwsReceipt {
  nlohmann::ordered_json payload;
  std::string key_id;  // 32 bytes, as the header says
};

// Strict: three unpadded base64url parts; alg Ed25519 or EdDSA; no crit, no b64; the signature must verify under a key
// of the ring that fits kid and the payload's issuer. Whether the key covers the receipt's time is left to the caller.
// InvalidArgument: malformed, or the signature is wrong. NotFound: no such key.
absl::StatusOr<JwsReceipt> FromJws(std::string_view text, const keys::KeyRing& ring);

}  // namespace tally::receipt
