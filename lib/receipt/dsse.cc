#include "lib/receipt/dsse.h"

#include <optional>

#include "lib/keys/encoding.h"
#include "lib/keys/public_key.h"
#include "lib/keys/strict_json.h"
#include "lib/keys/text.h"

namespace tally::receipt {
namespace {

using Json = nlohmann::json;

std::string PreAuthPrefix(size_t payload_size) {
  return keys::Cat("DSSEv1 ", kPayloadType.size(), " ", kPayloadType, " ", payload_size, " ");
}

// An object with exactly these text members, or nothing.
template <typename... Names>
bool HasOnly(const Json& object, Names... names) {
  return object.is_object() && object.size() == sizeof...(names) && (object.contains(names) && ...);
}

std::optional<std::string> Bytes(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  return keys::Base64DecodeAny(value.get_ref<const std::string&>());
}

}  // namespace

std::string PreAuthEncoding(std::string_view payload) { return PreAuthPrefix(payload.size()).append(payload); }

keys::Digest ReceiptId(std::string_view payload) { return keys::Sha256({PreAuthPrefix(payload.size()), payload}); }

std::string ToDsseJson(const v1::Receipt& receipt) {
  const nlohmann::ordered_json out = {
      {"payload", keys::Base64Encode(receipt.payload())},
      {"payloadType", kPayloadType},
      {"signatures",
       {{{"keyid", keys::HexEncode(receipt.key_id())}, {"sig", keys::Base64Encode(receipt.signature())}}}}};
  return out.dump() + "\n";
}

absl::StatusOr<v1::Receipt> FromDsseJson(std::string_view text) {
  const auto document = keys::ParseStrictJson(text, "the receipt");
  if (!document.ok()) return document.status();
  if (!HasOnly(*document, "payload", "payloadType", "signatures")) {
    return absl::InvalidArgumentError(
        "not a DSSE envelope: expected the members payload, payloadType and signatures only");
  }
  if ((*document)["payloadType"] != kPayloadType) {
    return absl::InvalidArgumentError(keys::Cat("the envelope's payloadType is not ", kPayloadType));
  }
  const Json& signatures = (*document)["signatures"];
  if (!signatures.is_array() || signatures.size() != 1) {
    return absl::InvalidArgumentError("a receipt has exactly one signature");
  }
  if (!HasOnly(signatures[0], "keyid", "sig") || !signatures[0]["keyid"].is_string()) {
    return absl::InvalidArgumentError("a signature has the members keyid and sig only");
  }
  const auto payload = Bytes((*document)["payload"]);
  const auto signature = Bytes(signatures[0]["sig"]);
  const auto key_id = keys::HexDecode(signatures[0]["keyid"].get_ref<const std::string&>());
  if (!payload) return absl::InvalidArgumentError("the payload is not base64");
  if (!signature || signature->size() != keys::kSignatureSize) {
    return absl::InvalidArgumentError("the signature is not base64 of 64 bytes");
  }
  if (!key_id || key_id->size() != keys::kDigestSize) {
    return absl::InvalidArgumentError("the keyid is not hex of 32 bytes");
  }
  v1::Receipt out;
  out.set_receipt_id(ReceiptId(*payload).str());
  out.set_payload(*payload);
  out.set_key_id(*key_id);
  out.set_signature(*signature);
  return out;
}

}  // namespace tally::receipt
