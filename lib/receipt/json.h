// A receipt's payload as JSON with stable names, for people, scripts and the JWS export.
//
// Member names are the proto's. Enumerators are their names without the prefix that keeps them apart in the proto;
// effect_known is in the words of the contract (none, not_sent, answered, answered_error, unknown, resolved_happened,
// resolved_not_happened, contradicted). Bytes are hex, ids UUID text, a limit a number or "unlimited". A time `x_us` is
// given twice: as it is, and as RFC 3339 text under `x`. What is unset is left out, except the numbers of a call's
// receipt and of a usage, which are given even when they are 0.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

namespace v1 = ::tally::v1;

// `receipt_id` first, then the payload's fields in the order of the proto.
nlohmann::ordered_json ToJson(const v1::ReceiptPayload& payload, std::string_view receipt_id);

// 2026-01-01T00:00:00.000000Z
std::string Rfc3339(int64_t time_us);

// The name as ToJson gives it.
std::string KindName(v1::ReceiptKind kind);
std::string EffectKnownName(v1::EffectKnown effect);

}  // namespace tally::receipt
