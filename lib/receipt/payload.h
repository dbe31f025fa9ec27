// The bytes that are signed, and the strict way back. Bytes are stored and replayed; nothing that was signed is ever
// serialised again, except to show that it was in the one allowed form.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

namespace v1 = ::tally::v1;

inline constexpr uint32_t kFormatVersion = 1;
// A receipt larger than this is refused before it is read. The largest honest one is a PERMIT_MINTED with 256 schemas.
inline constexpr size_t kMaxPayloadSize = 128 * 1024 * 1024;

// Fields in order of their numbers, defaults left out: the same message always gives the same bytes.
std::string Serialize(const v1::ReceiptPayload& payload);

// InvalidArgument: not a ReceiptPayload, has fields this format does not know, or is not in the form that Serialize
// gives. Unimplemented: a later format_version, which says nothing about the receipt, only about this program.
absl::StatusOr<v1::ReceiptPayload> Parse(std::string_view bytes);

}  // namespace tally::receipt
