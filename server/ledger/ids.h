#ifndef TALLY_SERVER_LEDGER_IDS_H_
#define TALLY_SERVER_LEDGER_IDS_H_

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>

#include "lib/decide/world.h"
#include "lib/keys/uuid.h"
#include "server/ledger/transaction.h"

// Ids and hashes between their array form and the wire.
namespace tally::ledger {

template <size_t N>
std::string_view Bytes(const std::array<uint8_t, N>& array) {
  return {reinterpret_cast<const char*>(array.data()), N};
}

// `bytes` must have the array's size; anything else is a bug of the caller and aborts.
template <typename Array>
Array FromBytes(std::string_view bytes) {
  Array array{};
  if (bytes.size() != array.size()) std::abort();
  std::copy(bytes.begin(), bytes.end(), array.begin());
  return array;
}
inline decide::Id ToId(std::string_view bytes) { return FromBytes<decide::Id>(bytes); }
inline decide::Hash ToHash(std::string_view bytes) { return FromBytes<decide::Hash>(bytes); }

inline std::string IdText(const decide::Id& id) { return keys::UuidText(Bytes(id)); }

// Text as a stranger sent it.
inline std::optional<decide::Id> ParseId(std::string_view text) {
  const std::optional<std::string> bytes = keys::ParseUuid(text);
  if (!bytes) return std::nullopt;
  return ToId(*bytes);
}

// Of a uuid column; nullopt for null.
inline std::optional<decide::Id> OptionalId(const pqxx::field& field) {
  if (field.is_null()) return std::nullopt;
  return ParseId(std::string_view(field.c_str(), field.size()));
}

inline std::string Text(const pqxx::field& field) {
  return field.is_null() ? std::string() : std::string(field.c_str(), field.size());
}

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_IDS_H_
