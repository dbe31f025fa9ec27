#include "lib/keys/key_file.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "lib/keys/encoding.h"
#include "lib/keys/published.h"
#include "lib/keys/strict_json.h"
#include "lib/keys/text.h"

namespace tally::keys {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "tallystick-keys/v1";
constexpr std::array kStatuses = {KeyStatus::kActive, KeyStatus::kRetired, KeyStatus::kRevoked};

absl::StatusOr<std::string> Text(const Json& object, const char* member) {
  const auto found = object.find(member);
  if (found == object.end() || !found->is_string()) {
    return absl::InvalidArgumentError(Cat("keys.json: a key without the text `", member, "`"));
  }
  return found->get<std::string>();
}

absl::StatusOr<std::optional<int64_t>> Time(const Json& object, const char* member) {
  const auto found = object.find(member);
  if (found == object.end() || found->is_null()) return std::optional<int64_t>();
  // Anything an int64 cannot hold would turn into another time.
  if (!found->is_number_integer() || (found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX)) {
    return absl::InvalidArgumentError(Cat("keys.json: `", member, "` is neither null nor whole microseconds"));
  }
  return std::optional<int64_t>(found->get<int64_t>());
}

absl::StatusOr<KnownKey> FromEntry(const Json& entry) {
  if (!entry.is_object()) return absl::InvalidArgumentError("keys.json: a key that is not an object");
  const auto vkey = Text(entry, "vkey");
  if (!vkey.ok()) return vkey.status();
  const auto key = FromVkey(*vkey);
  if (!key.ok()) return absl::InvalidArgumentError(Cat("keys.json: ", key.status().message()));
  const std::pair<const char*, std::string> repeated[] = {
      {"name", key->name()}, {"key_id", HexEncode(key->id())}, {"public_key", HexEncode(key->bytes())}};
  for (const auto& [member, expected] : repeated) {
    const auto said = Text(entry, member);
    if (!said.ok()) return said.status();
    if (*said != expected) {
      return absl::InvalidArgumentError(Cat("keys.json: `", member, "` does not fit the vkey beside it"));
    }
  }
  KnownKey out{.name = key->name(), .bytes = key->bytes()};
  const auto not_before = Time(entry, "not_before_us");
  const auto not_after = Time(entry, "not_after_us");
  if (!not_before.ok()) return not_before.status();
  if (!not_after.ok()) return not_after.status();
  out.not_before_us = *not_before;
  out.not_after_us = *not_after;
  const auto status = Text(entry, "status");
  if (!status.ok()) return status.status();
  for (KeyStatus candidate : kStatuses) {
    if (*status == KeyStatusName(candidate)) {
      out.status = candidate;
      return out;
    }
  }
  return absl::InvalidArgumentError("keys.json: `status` is one of active, retired, revoked");
}

absl::StatusOr<std::vector<KnownKey>> FromKeysJson(const Json& document) {
  if (document["format"] != kFormat) {
    return absl::InvalidArgumentError(Cat("a key file of another format than ", kFormat));
  }
  const auto list = document.find("keys");
  if (list == document.end() || !list->is_array()) return absl::InvalidArgumentError("keys.json has no array `keys`");
  std::vector<KnownKey> out;
  for (const Json& entry : *list) {
    auto key = FromEntry(entry);
    if (!key.ok()) return key.status();
    out.push_back(*std::move(key));
  }
  return out;
}

absl::StatusOr<std::vector<KnownKey>> FromJsonText(std::string_view text) {
  const auto document = ParseStrictJson(text, "the key file");
  if (!document.ok()) return document.status();
  if (document->is_object() && document->contains("format")) return FromKeysJson(*document);
  const auto jwks = FromJwks(text);
  if (!jwks.ok()) return jwks.status();
  std::vector<KnownKey> out;
  for (const JwksKey& key : *jwks) out.push_back({.name = key.name, .bytes = key.bytes});
  return out;
}

absl::StatusOr<std::vector<KnownKey>> FromPemText(std::string_view text) {
  const auto blocks = FromPem(text);
  if (!blocks.ok()) return blocks.status();
  std::vector<KnownKey> out;
  for (const std::string& bytes : *blocks) out.push_back({.bytes = bytes});
  return out;
}

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = line.find_first_not_of(kBlank);
  return begin == std::string_view::npos ? std::string_view()
                                         : line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

absl::StatusOr<std::vector<KnownKey>> FromVkeyLines(std::string_view text) {
  std::vector<KnownKey> out;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const auto key = FromVkey(line);
    if (!key.ok()) return absl::InvalidArgumentError(Cat("line ", number, ": ", key.status().message()));
    out.push_back({.name = key->name(), .bytes = key->bytes()});
  }
  return out;
}

}  // namespace

std::string_view KeyStatusName(KeyStatus status) {
  switch (status) {
    case KeyStatus::kActive:
      return "active";
    case KeyStatus::kRetired:
      return "retired";
    case KeyStatus::kRevoked:
      return "revoked";
  }
  std::abort();
}

std::string ToKeysJson(const std::vector<KnownKey>& keys) {
  nlohmann::ordered_json out = {{"format", kFormat}, {"keys", nlohmann::ordered_json::array()}};
  const auto time = [](const std::optional<int64_t>& us) {
    return us ? nlohmann::ordered_json(*us) : nlohmann::ordered_json();
  };
  for (const KnownKey& known : keys) {
    const auto key = PublicKey::Create(known.name, known.bytes);
    if (!key.ok()) std::abort();
    out["keys"].push_back({{"name", key->name()},
                           {"key_id", HexEncode(key->id())},
                           {"vkey", ToVkey(*key)},
                           {"public_key", HexEncode(key->bytes())},
                           {"not_before_us", time(known.not_before_us)},
                           {"not_after_us", time(known.not_after_us)},
                           {"status", KeyStatusName(known.status)}});
  }
  return out.dump(2) + "\n";
}

absl::StatusOr<KeyRing> KeyRing::Parse(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  auto keys = start != std::string_view::npos && text[start] == '{' ? FromJsonText(text)
              : text.find("-----BEGIN ") != std::string_view::npos  ? FromPemText(text)
                                                                    : FromVkeyLines(text);
  if (!keys.ok()) return keys.status();
  if (keys->empty()) return absl::InvalidArgumentError("the key file holds no key");
  return KeyRing(*std::move(keys));
}

const KnownKey* KeyRing::Find(std::string_view issuer, std::string_view key_id) const {
  for (const KnownKey& key : keys_) {
    if ((key.name.empty() || key.name == issuer) && KeyId(issuer, key.bytes) == key_id) return &key;
  }
  return nullptr;
}

}  // namespace tally::keys
