// How receipts are made: a draft is sealed into its chain (numbered, linked to the one before, serialised, named), and
// signed afterwards, so that a batch can be chained first and signed when it is known to be wanted.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/keys/hash.h"
#include "lib/keys/signer.h"
#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

namespace v1 = ::tally::v1;

// The last receipt of a chain: {0, ""} before the first.
struct ChainHead {
  int64_t sequence = 0;
  std::string id;  // 32 bytes
};

// A receipt that lacks only its signature. Its payload can change no more.
struct Unsigned {
  v1::ReceiptPayload fields;  // as serialised
  keys::Digest id;
  std::string pre_auth;  // what is to be signed; the payload is its tail
  size_t payload_offset = 0;

  std::string_view payload() const { return std::string_view(pre_auth).substr(payload_offset); }
};

// Fills in format_version, issuer, key_id, sequence and previous_receipt_id, and moves the head on. A draft that has a
// sequence already must have the chain's next one: InvalidArgument if not, and the head stays where it was.
absl::StatusOr<Unsigned> Seal(v1::ReceiptPayload draft, ChainHead& head, const keys::Signer& signer);

// PERMIT_HEAD is no link of the chain: it repeats the sequence of the last receipt, has that receipt's id as its
// previous one, and leaves the head where it is.
Unsigned SealPermitHead(v1::ReceiptPayload draft, const ChainHead& head, const keys::Signer& signer);

// With the signer that sealed it: anything else is InvalidArgument. Fails otherwise only as the signer does.
absl::StatusOr<v1::Receipt> Sign(const Unsigned& sealed, const keys::Signer& signer);

}  // namespace tally::receipt
