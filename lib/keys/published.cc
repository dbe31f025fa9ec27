#include "lib/keys/published.h"

#include <absl/strings/ascii.h>

#include "lib/keys/encoding.h"
#include "lib/keys/strict_json.h"
#include "lib/keys/text.h"

namespace tally::keys {
namespace {

constexpr char kEd25519 = 1;  // C2SP signature type
// SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING of 32 bytes }
constexpr std::string_view kSpkiPrefix{"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", 12};
constexpr std::string_view kPemBegin = "-----BEGIN ";
constexpr std::string_view kPublicBegin = "-----BEGIN PUBLIC KEY-----";
constexpr std::string_view kPublicEnd = "-----END PUBLIC KEY-----";

std::string Hint(const PublicKey& key) { return HexEncode(key.id().view().substr(0, 4)); }

}  // namespace

std::string ToVkey(const PublicKey& key) {
  return Cat(key.name(), "+", Hint(key), "+", Base64Encode(kEd25519 + key.bytes()));
}

absl::StatusOr<PublicKey> FromVkey(std::string_view text) {
  const size_t first = text.find('+');
  const size_t second = first == std::string_view::npos ? first : text.find('+', first + 1);
  if (second == std::string_view::npos) return absl::InvalidArgumentError("not a vkey: expected NAME+HASH+BASE64");
  const auto raw = Base64Decode(text.substr(second + 1));
  if (!raw || raw->empty()) return absl::InvalidArgumentError("not a vkey: its last part is not base64");
  if (raw->front() != kEd25519) return absl::InvalidArgumentError("a vkey of another signature type than Ed25519");
  auto key = PublicKey::Create(text.substr(0, first), std::string_view(*raw).substr(1));
  if (!key.ok()) return key.status();
  if (text.substr(first + 1, second - first - 1) != Hint(*key)) {
    return absl::InvalidArgumentError("a vkey whose hash does not fit its name and key; it was altered or mistyped");
  }
  return key;
}

std::string ToPem(const PublicKey& key) {
  return Cat("Key ", HexEncode(key.id()), " of ", key.name(), "\n", kPublicBegin, "\n",
             Base64Encode(Cat(kSpkiPrefix, key.bytes())), "\n", kPublicEnd, "\n");
}

absl::StatusOr<std::vector<std::string>> FromPem(std::string_view text) {
  std::vector<std::string> out;
  for (;;) {
    const size_t begin = text.find(kPemBegin);
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin);
    if (!text.starts_with(kPublicBegin)) {
      const std::string_view line = text.substr(0, text.find('\n'));
      return absl::InvalidArgumentError(
          line.find("PRIVATE") != std::string_view::npos
              ? "the PEM text holds a private key, which has no place here; give the public key alone"
              : "the PEM text holds something other than a PUBLIC KEY");
    }
    text.remove_prefix(kPublicBegin.size());
    const size_t end = text.find(kPublicEnd);
    if (end == std::string_view::npos) return absl::InvalidArgumentError("a PEM block without its END line");
    std::string body;
    for (char c : text.substr(0, end)) {
      if (!absl::ascii_isspace(static_cast<unsigned char>(c))) body.push_back(c);
    }
    text.remove_prefix(end + kPublicEnd.size());
    const auto der = Base64Decode(body);
    if (!der || der->size() != kSpkiPrefix.size() + kPublicKeySize || !der->starts_with(kSpkiPrefix)) {
      return absl::InvalidArgumentError("a PEM block that is not an Ed25519 public key");
    }
    out.push_back(der->substr(kSpkiPrefix.size()));
  }
  if (out.empty()) return absl::InvalidArgumentError("no PUBLIC KEY block in the PEM text");
  return out;
}

std::string ToJwks(const std::vector<PublicKey>& keys) {
  nlohmann::ordered_json out = {{"keys", nlohmann::ordered_json::array()}};
  for (const PublicKey& key : keys) {
    out["keys"].push_back({{"kty", "OKP"},
                           {"crv", "Ed25519"},
                           {"alg", "Ed25519"},
                           {"use", "sig"},
                           {"kid", HexEncode(key.id())},
                           {"x", Base64UrlEncode(key.bytes())},
                           {"name", key.name()}});
  }
  return out.dump(2) + "\n";
}

namespace {

absl::StatusOr<JwksKey> FromJwk(const nlohmann::json& jwk) {
  const auto text = [&](const char* member) {
    const auto found = jwk.find(member);
    return found != jwk.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (jwk.contains("d")) return absl::InvalidArgumentError("a JWK with a private key, which has no place here");
  if (text("kty") != "OKP" || text("crv") != "Ed25519") return absl::InvalidArgumentError("a JWK that is not Ed25519");
  const auto bytes = Base64UrlDecode(text("x"));
  if (!bytes || bytes->size() != kPublicKeySize) return absl::InvalidArgumentError("a JWK without a 32-byte x");
  const std::string name = text("name");
  if (name.empty()) return JwksKey{"", *bytes};
  const auto key = PublicKey::Create(name, *bytes);
  if (!key.ok()) return key.status();
  if (jwk.contains("kid") && text("kid") != HexEncode(key->id())) {
    return absl::InvalidArgumentError("a JWK whose kid does not fit its name and key; it was altered");
  }
  return JwksKey{name, *bytes};
}

}  // namespace

absl::StatusOr<std::vector<JwksKey>> FromJwks(std::string_view text) {
  const auto document = ParseStrictJson(text, "the JWK Set");
  if (!document.ok()) return document.status();
  if (!document->is_object() || !document->contains("keys") || !(*document)["keys"].is_array()) {
    return absl::InvalidArgumentError("a JWK Set is an object with an array `keys`");
  }
  std::vector<JwksKey> out;
  for (const nlohmann::json& jwk : (*document)["keys"]) {
    if (!jwk.is_object()) return absl::InvalidArgumentError("a JWK that is not an object");
    auto key = FromJwk(jwk);
    if (!key.ok()) return key.status();
    out.push_back(*std::move(key));
  }
  return out;
}

}  // namespace tally::keys
