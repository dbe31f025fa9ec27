#include "lib/receipt/jws.h"

#include "lib/keys/encoding.h"
#include "lib/keys/strict_json.h"
#include "lib/keys/text.h"
#include "lib/receipt/json.h"
#include "lib/receipt/payload.h"

namespace tally::receipt {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Malformed(std::string_view why) {
  return absl::InvalidArgumentError(keys::Cat("not a receipt's JWS: ", why));
}

std::string Text(const nlohmann::json& object, const char* member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The key id that the header names.
absl::StatusOr<std::string> CheckHeader(const nlohmann::json& header) {
  if (!header.is_object()) return Malformed("its header is not an object");
  const std::string alg = Text(header, "alg");
  if (alg != "Ed25519" && alg != "EdDSA") return Malformed("its alg is neither Ed25519 nor EdDSA");
  if (Text(header, "typ") != kJwsType) return Malformed(keys::Cat("its typ is not ", kJwsType));
  if (header.contains("crit") || header.contains("b64")) return Malformed("its header asks for extensions");
  const auto key_id = keys::HexDecode(Text(header, "kid"));
  if (!key_id || key_id->size() != keys::kDigestSize) return Malformed("its kid is not a key id");
  return *key_id;
}

}  // namespace

absl::StatusOr<std::string> ToJws(const v1::Receipt& receipt, const keys::Signer& signer) {
  const auto payload = Parse(receipt.payload());
  if (!payload.ok()) return payload.status();
  const Json header = {{"alg", "Ed25519"}, {"kid", keys::HexEncode(signer.public_key().id())}, {"typ", kJwsType}};
  const std::string signed_part = keys::Cat(keys::Base64UrlEncode(header.dump()), ".",
                                            keys::Base64UrlEncode(ToJson(*payload, receipt.receipt_id()).dump()));
  const auto signature = signer.Sign(signed_part);
  if (!signature.ok()) return signature.status();
  return keys::Cat(signed_part, ".",
                   keys::Base64UrlEncode({reinterpret_cast<const char*>(signature->data()), signature->size()}));
}

absl::StatusOr<JwsReceipt> FromJws(std::string_view text, const keys::KeyRing& ring) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const size_t first = text.find('.');
  const size_t second = first == std::string_view::npos ? first : text.find('.', first + 1);
  if (second == std::string_view::npos) return Malformed("it does not have three parts");
  const auto header_text = keys::Base64UrlDecode(text.substr(0, first));
  const auto payload_text = keys::Base64UrlDecode(text.substr(first + 1, second - first - 1));
  const auto signature = keys::Base64UrlDecode(text.substr(second + 1));
  if (!header_text || !payload_text || !signature) return Malformed("a part is not unpadded base64url");

  const auto header = keys::ParseStrictJson(*header_text, "the JWS header");
  if (!header.ok()) return header.status();
  auto key_id = CheckHeader(*header);
  if (!key_id.ok()) return key_id.status();
  const auto payload = keys::ParseStrictJson(*payload_text, "the JWS payload");
  if (!payload.ok()) return payload.status();
  if (!payload->is_object()) return Malformed("its payload is not an object");

  const keys::KnownKey* key = ring.Find(Text(*payload, "issuer"), *key_id);
  if (key == nullptr) return absl::NotFoundError("the JWS is signed by a key that is not among the trusted ones");
  if (!keys::VerifySignature(key->bytes, text.substr(0, second), *signature)) {
    return absl::InvalidArgumentError("the JWS signature is wrong");
  }
  return JwsReceipt{Json::parse(*payload_text), *std::move(key_id)};
}

}  // namespace tally::receipt
