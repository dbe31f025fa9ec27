#ifndef TALLY_BENCH_PLAIN_WORK_H_
#define TALLY_BENCH_PLAIN_WORK_H_

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/decide/world.h"
#include "lib/keys/uuid.h"
#include "server/ledger/calls.h"
#include "server/ledger/ids.h"
#include "server/ledger/transaction.h"

// Inside bench/plain only: one request on its way from loading to storing.
namespace tally::plain {

using decide::Hash;
using decide::Id;

// Not for this service; nothing was written.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Work {
  ledger::CallJob& job;
  decide::World world;
  absl::flat_hash_map<Hash, int16_t> intent_shards;
  absl::flat_hash_map<Hash, decide::Time> claimed;  // intents inserted for this request, with their lease's end
  absl::flat_hash_map<Id, bool> had_attempt;        // of calls as loaded
  std::vector<v1::Receipt> receipts;                // one for each of world.drafts
};

// ---- load.cc ----
void Load(ledger::Tx& tx, Work& work, ledger::TermsCache& terms);
// True if the attempt id is used somewhere: the world knows it then.
bool LoadAttemptId(ledger::Tx& tx, Work& work, const Id& attempt_id);

// ---- store.cc ----
void Store(ledger::Tx& tx, Work& work);

// A bytea parameter as text; null where absent.
std::string Hex(std::string_view bytes);
inline std::optional<std::string> HexOrNull(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  return Hex(bytes);
}
inline std::string Hex(const Hash& hash) { return Hex(ledger::Bytes(hash)); }
inline std::optional<std::string> HexOrNull(const Hash& hash) {
  return hash == Hash{} ? std::nullopt : std::optional(Hex(hash));
}
inline std::optional<std::string> HexOrNull(const std::optional<Hash>& hash) {
  return hash ? std::optional(Hex(*hash)) : std::nullopt;
}
inline std::optional<std::string> IdOrNull(const std::optional<Id>& id) {
  return id ? std::optional(ledger::IdText(*id)) : std::nullopt;
}
inline std::optional<std::string> TextOrNull(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

}  // namespace tally::plain

#endif  // TALLY_BENCH_PLAIN_WORK_H_
