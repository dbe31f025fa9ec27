// DSSE (the Dead Simple Signing Envelope, v1.0): what exactly is signed, a receipt's id, and the envelope's JSON form.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "lib/keys/hash.h"
#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

namespace v1 = ::tally::v1;

inline constexpr std::string_view kPayloadType = "application/vnd.tallystick.receipt.v1+protobuf";

// "DSSEv1 " ‖ length of the type ‖ " " ‖ type ‖ " " ‖ length of the payload ‖ " " ‖ payload, lengths in ASCII decimal.
// This is what is signed.
std::string PreAuthEncoding(std::string_view payload);

// SHA-256 of the pre-authentication encoding: recomputable from any encoding of the envelope, and independent of the
// signature.
keys::Digest ReceiptId(std::string_view payload);

// {"payload": base64, "payloadType": …, "signatures": [{"keyid": hex, "sig": base64}]}
std::string ToDsseJson(const v1::Receipt& receipt);

// Strict: these members and no others, this payload type, one signature of 64 bytes. Base64 may be standard or
// URL-safe, as DSSE demands of readers. The receipt id is computed, never taken from the text. The signature is not
// checked here.
absl::StatusOr<v1::Receipt> FromDsseJson(std::string_view text);

}  // namespace tally::receipt
