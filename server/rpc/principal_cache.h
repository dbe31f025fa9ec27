#ifndef TALLY_SERVER_RPC_PRINCIPAL_CACHE_H_
#define TALLY_SERVER_RPC_PRINCIPAL_CACHE_H_

#include <chrono>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "server/ledger/principals.h"

namespace tally::rpc {

// Principals by credential, for the hot path. What it says may be a moment old, so whether a principal is disabled is
// read again by the transaction that decides. Unknown credentials are not kept. Thread-safe.
class PrincipalCache {
 public:
  using Clock = std::chrono::steady_clock;

  // nullopt: the caller must look it up, then Put or Drop. Of those who ask when an entry has become old, one is sent
  // to look, and the others are given what there is.
  std::optional<ledger::PrincipalRow> Find(const ledger::Credential& credential, Clock::time_point now);
  void Put(const ledger::Credential& credential, const ledger::PrincipalRow& principal, Clock::time_point now);
  void Drop(const ledger::Credential& credential);

 private:
  struct Entry {
    ledger::PrincipalRow principal;
    Clock::time_point fresh_until;
    Clock::time_point usable_until;
  };

  absl::Mutex mutex_;
  absl::flat_hash_map<ledger::Credential, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_PRINCIPAL_CACHE_H_
