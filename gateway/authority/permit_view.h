// What a permit says, as a gateway looks at it for lists of tools. It decides about nothing: every call asks tallyd.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "lib/client/answer.h"
#include "lib/keys/hash.h"
#include "tally/v1/permits.pb.h"

namespace tally::gateway {

using PermitView = std::shared_ptr<const v1::PermitInfo>;

// The grant that Authorize would take for this tool: the exact name, else the longest prefix. Null: none.
const v1::GrantUsage* GrantFor(const v1::PermitInfo& permit, std::string_view tool);

// Views for a short while, by SHA-256 of the permit token; the token itself is not kept. Tokens that tallyd does not
// know are remembered likewise, so that one that is wrong is not asked about at every request.
class PermitViews {
 public:
  using Clock = std::chrono::steady_clock;

  PermitViews(std::chrono::milliseconds ttl, size_t count_max) : ttl_(ttl), count_max_(count_max) {}

  // What was put less than the ttl before `now`.
  std::optional<client::Answer<PermitView>> Find(const keys::Digest& token, Clock::time_point now) const;
  // Keeps views and `unauthorized`; any other failure says nothing about the permit.
  void Put(const keys::Digest& token, const client::Answer<PermitView>& answer, Clock::time_point now);
  void Forget(const keys::Digest& token) { views_.erase(token); }
  size_t size() const { return views_.size(); }

 private:
  struct Kept {
    client::Answer<PermitView> answer;
    Clock::time_point until;
  };

  const std::chrono::milliseconds ttl_;
  const size_t count_max_;
  std::map<keys::Digest, Kept> views_;
};

}  // namespace tally::gateway
