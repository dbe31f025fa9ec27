#ifndef TALLY_SERVER_LEDGER_WEBHOOKS_H_
#define TALLY_SERVER_LEDGER_WEBHOOKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "lib/decide/world.h"
#include "server/ledger/transaction.h"
#include "tally/v1/webhooks.pb.h"

// Where tenants want to be told. A tenant's functions never see another's: a foreign id is NotFound. For their statuses
// see control.h.
namespace tally::ledger {

inline constexpr int kWebhooksMax = 16;                                     // of a tenant
inline constexpr int64_t kFormerSecretUs = int64_t{24} * 3600 * 1'000'000;  // a former secret signs too

// What is needed to send to a webhook.
struct WebhookTarget {
  decide::Id webhook_id{};
  std::string url;
  std::string sealed_secret;  // under WebhookContext
  std::string sealed_former;  // empty: none
  int64_t former_until_us = 0;
};

// What a webhook's secrets are sealed for, so that one webhook's cannot pass for another's.
std::string WebhookContext(const decide::Id& webhook_id);

using SealFor = absl::FunctionRef<absl::StatusOr<std::string>(const decide::Id& webhook_id)>;

// ResourceExhausted: the tenant has kWebhooksMax.
absl::StatusOr<decide::Id> CreateWebhook(Connection& connection, const std::string& tenant, const std::string& url,
                                         SealFor seal);

// Oldest first.
absl::StatusOr<std::vector<v1::WebhookInfo>> ListWebhooks(Connection& connection, const std::string& tenant);

// With all that waits for it.
absl::Status DeleteWebhook(Connection& connection, const std::string& tenant, const decide::Id& webhook_id);

// The present secret becomes the former one; one that was the former till now is gone.
absl::Status RotateWebhook(Connection& connection, const std::string& tenant, const decide::Id& webhook_id,
                           SealFor seal);

absl::StatusOr<WebhookTarget> FindWebhook(Connection& connection, const std::string& tenant,
                                          const decide::Id& webhook_id, int64_t* now_us);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_WEBHOOKS_H_
