#include "server/rpc/principal_cache.h"

namespace tally::rpc {
namespace {

constexpr size_t kPrincipalsMax = 4096;
constexpr std::chrono::milliseconds kFresh{1000};
// How long a look-up that is under way may keep the others waiting with what there is.
constexpr std::chrono::milliseconds kRefresh{1000};
constexpr std::chrono::milliseconds kUsable{5000};

}  // namespace

std::optional<ledger::PrincipalRow> PrincipalCache::Find(const ledger::Credential& credential, Clock::time_point now) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(credential);
  if (found == entries_.end() || now >= found->second.usable_until) return std::nullopt;
  if (now < found->second.fresh_until) return found->second.principal;
  found->second.fresh_until = now + kRefresh;
  return std::nullopt;
}

void PrincipalCache::Put(const ledger::Credential& credential, const ledger::PrincipalRow& principal,
                         Clock::time_point now) {
  absl::MutexLock lock(&mutex_);
  if (entries_.size() >= kPrincipalsMax && !entries_.contains(credential)) entries_.clear();
  entries_[credential] = {principal, now + kFresh, now + kUsable};
}

void PrincipalCache::Drop(const ledger::Credential& credential) {
  absl::MutexLock lock(&mutex_);
  entries_.erase(credential);
}

}  // namespace tally::rpc
