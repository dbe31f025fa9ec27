#include "server/ledger/terms_cache.h"

#include <utility>

namespace tally::ledger {

TermsCache::TermsCache(size_t permits_max) : permits_max_(permits_max) {}

std::shared_ptr<const decide::PermitTerms> TermsCache::Touch(Entries::iterator entry) {
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->terms;
}

std::shared_ptr<const decide::PermitTerms> TermsCache::ById(const decide::Id& permit_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_id_.find(permit_id);
  return found == by_id_.end() ? nullptr : Touch(found->second);
}

std::shared_ptr<const decide::PermitTerms> TermsCache::ByToken(const decide::Hash& token_sha256) {
  absl::MutexLock lock(&mutex_);
  const auto found = by_token_.find(token_sha256);
  return found == by_token_.end() ? nullptr : Touch(found->second);
}

void TermsCache::Put(const decide::Hash& token_sha256, std::shared_ptr<const decide::PermitTerms> terms) {
  absl::MutexLock lock(&mutex_);
  if (by_id_.contains(terms->permit_id)) return;
  if (entries_.size() >= permits_max_) {
    by_id_.erase(entries_.back().terms->permit_id);
    by_token_.erase(entries_.back().token);
    entries_.pop_back();
  }
  entries_.push_front({token_sha256, std::move(terms)});
  by_id_[entries_.front().terms->permit_id] = entries_.begin();
  by_token_[token_sha256] = entries_.begin();
}

}  // namespace tally::ledger
