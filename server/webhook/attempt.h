#ifndef TALLY_SERVER_WEBHOOK_ATTEMPT_H_
#define TALLY_SERVER_WEBHOOK_ATTEMPT_H_

#include <chrono>
#include <string>

#include "lib/decide/world.h"
#include "lib/keys/sealed.h"
#include "server/ledger/webhooks.h"
#include "server/webhook/pace.h"

namespace tally::webhook {

struct SendOptions {
  std::chrono::milliseconds timeout{10'000};
  bool allow_private = false;
  bool allow_http = false;
};

struct Sent {
  Pace::End end = Pace::End::kNoAnswer;
  int http_status = 0;  // 0: no answer
  std::string error;    // empty: taken. Holds nothing of the answer's body, and of the URL only its origin

  bool taken() const { return end == Pace::End::kTaken; }
  bool gone() const { return http_status == 410; }  // the receiver wants it no more
};

// Sends one message once, signed. 2xx takes it; everything else, redirects included, does not. Blocks, at most for the
// timeout.
Sent SendOnce(const ledger::WebhookTarget& target, const keys::Sealer& sealer, const decide::Id& message_id,
              const std::string& body, int64_t now_us, const SendOptions& options);

}  // namespace tally::webhook

#endif  // TALLY_SERVER_WEBHOOK_ATTEMPT_H_
