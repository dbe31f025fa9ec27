#include "server/ledger/webhooks.h"

#include "lib/keys/text.h"
#include "lib/keys/uuid.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"

namespace tally::ledger {
namespace {

absl::Status NoSuchWebhook() { return absl::NotFoundError("no such webhook"); }

}  // namespace

std::string WebhookContext(const decide::Id& webhook_id) { return keys::Cat("webhook/", Bytes(webhook_id)); }

constexpr Statement kCountWebhooks{"count_webhooks", "SELECT count(*) FROM webhooks WHERE tenant = $1"};
constexpr Statement kInsertWebhook{"insert_webhook",
                                   "INSERT INTO webhooks (webhook_id, tenant, url, sealed_secret, created_at_us)"
                                   " VALUES ($1::uuid, $2, $3, $4::bytea, $5::bigint)"};

absl::StatusOr<decide::Id> CreateWebhook(Connection& connection, const std::string& tenant, const std::string& url,
                                         SealFor seal) {
  decide::Id id{};
  absl::Status status = Write(connection, [&](Tx& tx) -> absl::Status {
    // Two that come at once cannot both be the last: SERIALIZABLE, and one of them is run again.
    if (tx.Exec(kCountWebhooks, tenant)[0][0].as<int>() >= kWebhooksMax) {
      return absl::ResourceExhaustedError("the tenant has all the webhooks it may have");
    }
    id = ToId(keys::NewUuid7(tx.now_us() / 1000, 0));
    const auto sealed = seal(id);
    if (!sealed.ok()) return sealed.status();
    tx.Exec(kInsertWebhook, IdText(id), tenant, url, Binary(*sealed), tx.now_us());
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return id;
}

constexpr Statement kListWebhooks{
    "list_webhooks",
    "SELECT w.webhook_id, w.url, w.created_at_us, o.waiting, o.oldest, w.given_up, w.delivered, w.last_error,"
    " w.last_delivered_us FROM webhooks w CROSS JOIN LATERAL (SELECT count(*) AS waiting, min(created_at_us) AS oldest"
    " FROM outbox o WHERE o.webhook_id = w.webhook_id) o WHERE w.tenant = $1 ORDER BY w.created_at_us, w.webhook_id"};

absl::StatusOr<std::vector<v1::WebhookInfo>> ListWebhooks(Connection& connection, const std::string& tenant) {
  std::vector<v1::WebhookInfo> list;
  absl::Status status = Read(connection, [&](Tx& tx) {
    list.clear();
    for (const pqxx::row& row : tx.Exec(kListWebhooks, tenant)) {
      v1::WebhookInfo& info = list.emplace_back();
      info.set_webhook_id(Text(row[0]));
      info.set_url(Text(row[1]));
      info.set_created_at_us(row[2].as<int64_t>());
      info.set_waiting(row[3].as<int64_t>());
      info.set_oldest_waiting_us(OptionalInt(row[4]).value_or(0));
      info.set_given_up(row[5].as<int64_t>());
      info.set_delivered(row[6].as<int64_t>());
      info.set_last_error(Text(row[7]));
      info.set_last_delivered_us(OptionalInt(row[8]).value_or(0));
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return list;
}

constexpr Statement kDeleteWebhook{"delete_webhook",
                                   "DELETE FROM webhooks WHERE webhook_id = $1::uuid AND tenant = $2"};

absl::Status DeleteWebhook(Connection& connection, const std::string& tenant, const decide::Id& webhook_id) {
  return Write(connection, [&](Tx& tx) {
    const bool deleted = tx.Exec(kDeleteWebhook, IdText(webhook_id), tenant).affected_rows() == 1;
    return deleted ? absl::OkStatus() : NoSuchWebhook();
  });
}

constexpr Statement kRotateWebhook{"rotate_webhook",
                                   "UPDATE webhooks SET sealed_former = sealed_secret, former_until_us = $4::bigint,"
                                   " sealed_secret = $3::bytea WHERE webhook_id = $1::uuid AND tenant = $2"};

absl::Status RotateWebhook(Connection& connection, const std::string& tenant, const decide::Id& webhook_id,
                           SealFor seal) {
  return Write(connection, [&](Tx& tx) -> absl::Status {
    const auto sealed = seal(webhook_id);
    if (!sealed.ok()) return sealed.status();
    const pqxx::result rotated =
        tx.Exec(kRotateWebhook, IdText(webhook_id), tenant, Binary(*sealed), tx.now_us() + kFormerSecretUs);
    return rotated.affected_rows() == 1 ? absl::OkStatus() : NoSuchWebhook();
  });
}

constexpr Statement kFindWebhook{"find_webhook",
                                 "SELECT url, sealed_secret, sealed_former, former_until_us FROM webhooks"
                                 " WHERE webhook_id = $1::uuid AND tenant = $2"};

absl::StatusOr<WebhookTarget> FindWebhook(Connection& connection, const std::string& tenant,
                                          const decide::Id& webhook_id, int64_t* now_us) {
  WebhookTarget target;
  absl::Status status = Read(connection, [&](Tx& tx) {
    const pqxx::result rows = tx.Exec(kFindWebhook, IdText(webhook_id), tenant);
    if (rows.empty()) return NoSuchWebhook();
    target = {webhook_id, Text(rows[0][0]), Bytea(rows[0][1]), Bytea(rows[0][2]), OptionalInt(rows[0][3]).value_or(0)};
    *now_us = tx.now_us();
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return target;
}

}  // namespace tally::ledger
