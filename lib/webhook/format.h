// What a webhook's receiver gets, by Standard Webhooks: bodies, secrets and signatures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/json/value.h"
#include "lib/keys/secret.h"

namespace tally::webhook {

// Types of messages.
inline constexpr char kParked[] = "call.parked";
inline constexpr char kEscalated[] = "call.escalated";
inline constexpr char kResolved[] = "call.resolved";
inline constexpr char kContradicted[] = "call.contradicted";
inline constexpr char kCorrected[] = "call.corrected";
inline constexpr char kTest[] = "tally.test";

inline constexpr size_t kSecretBytes = 32;

// A secret as receivers are given it, once: "whsec_" and its base64.
std::string SecretText(const keys::Secret& secret);

// {"type": …, "timestamp": RFC 3339, "data": {…}}. The bytes are what is signed and sent, at every try.
std::string Body(std::string_view type, int64_t time_us, json::Object data);

// The header webhook-signature: "v1,BASE64" for each secret, parted by spaces, each the HMAC-SHA-256 of
// "ID.TIMESTAMP.BODY" under the secret's bytes. A receiver takes the message if any of them is right.
std::string SignatureHeader(const std::vector<const keys::Secret*>& secrets, std::string_view id, int64_t timestamp_s,
                            std::string_view body);

}  // namespace tally::webhook
