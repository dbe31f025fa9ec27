#include "gateway/authority/permit_view.h"

namespace tally::gateway {

const v1::GrantUsage* GrantFor(const v1::PermitInfo& permit, std::string_view tool) {
  const v1::GrantUsage* best = nullptr;
  size_t best_size = 0;
  for (const v1::GrantUsage& grant : permit.grants()) {
    std::string_view pattern = grant.terms().tool();
    if (pattern == tool) return &grant;
    if (!pattern.ends_with('*')) continue;
    pattern.remove_suffix(1);
    if (tool.starts_with(pattern) && (best == nullptr || pattern.size() > best_size)) {
      best = &grant;
      best_size = pattern.size();
    }
  }
  return best;
}

std::optional<client::Answer<PermitView>> PermitViews::Find(const keys::Digest& token, Clock::time_point now) const {
  const auto found = views_.find(token);
  if (found == views_.end() || now >= found->second.until) return std::nullopt;
  return found->second.answer;
}

void PermitViews::Put(const keys::Digest& token, const client::Answer<PermitView>& answer, Clock::time_point now) {
  views_.erase(token);
  if (ttl_.count() <= 0 || (!answer.ok() && answer.failure().kind != v1::KIND_UNAUTHORIZED)) return;
  if (views_.size() >= count_max_) {
    std::erase_if(views_, [&](const auto& view) { return now >= view.second.until; });
  }
  // All of them are fresh: rather ask again than grow.
  if (views_.size() >= count_max_) views_.clear();
  views_.insert({token, Kept{answer, now + ttl_}});
}

}  // namespace tally::gateway
