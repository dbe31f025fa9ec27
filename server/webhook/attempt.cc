#include "server/webhook/attempt.h"

#include <optional>
#include <utility>
#include <vector>

#include "lib/keys/text.h"
#include "lib/outbound/request.h"
#include "lib/webhook/format.h"
#include "server/ledger/ids.h"

namespace tally::webhook {
namespace {

constexpr size_t kAnswerBytesMax = 256 << 10;  // nothing of it is used

Sent Unsendable(std::string_view why) {
  return {.end = Pace::End::kError, .http_status = 0, .error = std::string(why)};
}

}  // namespace

Sent SendOnce(const ledger::WebhookTarget& target, const keys::Sealer& sealer, const decide::Id& message_id,
              const std::string& body, int64_t now_us, const SendOptions& options) {
  const auto secret = sealer.Unseal(target.sealed_secret, ledger::WebhookContext(target.webhook_id));
  if (!secret.ok()) return Unsendable("its secret cannot be opened with this key-encryption key; rotate it");
  std::vector<const keys::Secret*> secrets = {&*secret};
  std::optional<keys::Secret> former;
  if (!target.sealed_former.empty() && now_us < target.former_until_us) {
    if (auto opened = sealer.Unseal(target.sealed_former, ledger::WebhookContext(target.webhook_id)); opened.ok()) {
      former = *std::move(opened);
      secrets.push_back(&*former);
    }
  }

  const std::string id = ledger::IdText(message_id);
  const int64_t timestamp_s = now_us / 1'000'000;
  outbound::Request request;
  request.method = "POST";
  request.url = target.url;
  request.headers = {{"Content-Type", "application/json"},
                     {"webhook-id", id},
                     {"webhook-timestamp", std::to_string(timestamp_s)},
                     {"webhook-signature", SignatureHeader(secrets, id, timestamp_s, body)}};
  request.body = body;
  request.timeout = options.timeout;
  request.answer_bytes_max = kAnswerBytesMax;
  request.allow_private = options.allow_private;
  request.allow_http = options.allow_http;
  const auto answer = outbound::Send(request);
  if (!answer.ok()) {
    Sent sent = Unsendable(std::string_view(answer.status().message().data(), answer.status().message().size()));
    // What was refused before any waiting costs nobody a sender.
    const bool waited = !absl::IsInvalidArgument(answer.status()) && !absl::IsPermissionDenied(answer.status());
    if (waited) sent.end = Pace::End::kNoAnswer;
    return sent;
  }
  const bool taken = answer->status >= 200 && answer->status < 300;
  return {.end = taken ? Pace::End::kTaken : Pace::End::kError,
          .http_status = answer->status,
          .error = taken ? "" : keys::Cat("HTTP ", answer->status)};
}

}  // namespace tally::webhook
