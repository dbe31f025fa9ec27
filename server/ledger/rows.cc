#include <algorithm>

#include "lib/keys/uuid.h"
#include "server/ledger/batch.h"

namespace tally::ledger {

decide::Id IdOf(const pqxx::field& uuid) {
  decide::Id id{};
  size_t digits = 0;
  for (const char c : std::string_view(uuid.c_str(), uuid.size())) {
    if (c == '-') continue;
    const int nibble = c <= '9' ? c - '0' : c - 'a' + 10;
    id[digits / 2] = static_cast<uint8_t>(id[digits / 2] << 4 | nibble);
    if (++digits == 2 * id.size()) break;
  }
  return id;
}

std::optional<decide::Id> OptionalId(const pqxx::field& uuid) {
  if (uuid.is_null()) return std::nullopt;
  return IdOf(uuid);
}

decide::Hash HashOf(const pqxx::field& bytea) {
  decide::Hash hash{};
  const std::string bytes = Bytea(bytea);
  if (bytes.size() == hash.size()) std::copy(bytes.begin(), bytes.end(), hash.begin());
  return hash;
}

std::optional<decide::Hash> OptionalHash(const pqxx::field& bytea) {
  if (bytea.is_null()) return std::nullopt;
  return HashOf(bytea);
}

std::optional<decide::Hash> NonZero(const decide::Hash& hash) {
  return hash == decide::Hash{} ? std::nullopt : std::optional(hash);
}

int16_t ShardOf(std::string_view tenant, std::string_view subject) {
  // FNV-1a: the same in every replica and for ever.
  uint64_t hash = 14695981039346656037u;
  auto mix = [&hash](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
    hash = (hash ^ 0xff) * 1099511628211u;
  };
  mix(tenant);
  mix(subject);
  return static_cast<int16_t>((hash ^ hash >> 32) % kShards);
}

int16_t ShardOf(const decide::Id& id) { return static_cast<int16_t>(keys::Uuid7RandA(View(id)) % kShards); }

}  // namespace tally::ledger
