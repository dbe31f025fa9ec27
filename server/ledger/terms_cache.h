#ifndef TALLY_SERVER_LEDGER_TERMS_CACHE_H_
#define TALLY_SERVER_LEDGER_TERMS_CACHE_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "lib/decide/world.h"

namespace tally::ledger {

// Permit terms, which never change, by permit id and by the SHA-256 of the permit token. Bounded; the least recently
// used goes first. Thread-safe. What it does not hold is to be read from `permits` and put here.
class TermsCache {
 public:
  explicit TermsCache(size_t permits_max);

  std::shared_ptr<const decide::PermitTerms> ById(const decide::Id& permit_id);
  std::shared_ptr<const decide::PermitTerms> ByToken(const decide::Hash& token_sha256);
  void Put(const decide::Hash& token_sha256, std::shared_ptr<const decide::PermitTerms> terms);

 private:
  struct Entry {
    decide::Hash token;
    std::shared_ptr<const decide::PermitTerms> terms;
  };
  using Entries = std::list<Entry>;  // most recently used first

  std::shared_ptr<const decide::PermitTerms> Touch(Entries::iterator entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t permits_max_;
  absl::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<decide::Id, Entries::iterator> by_id_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<decide::Hash, Entries::iterator> by_token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_TERMS_CACHE_H_
