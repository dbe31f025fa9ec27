#ifndef TALLY_SERVER_LEDGER_OUTBOX_H_
#define TALLY_SERVER_LEDGER_OUTBOX_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/decide/world.h"
#include "server/ledger/transaction.h"
#include "server/ledger/webhooks.h"

// The outbox as those see it who deliver. Any number of replicas share it: a message is claimed by putting its next try
// off to the end of a lease, and whoever claimed it last says what became of it. All of it is READ COMMITTED: rows are
// taken one by one, and nothing that decisions rest on is read or written.
namespace tally::ledger {

struct OutboxMessage {
  int64_t message = 0;
  decide::Id message_id{};  // webhook-id
  decide::Id call_id{};
  int64_t created_at_us = 0;
  std::string body;
  int32_t tries = 0;  // this one included; tells this claim from a later one
  WebhookTarget target;
};

// Webhooks that have a message to be tried now. At most 4096 of them.
TxResult FindWaiting(Connection& connection, std::vector<decide::Id>* webhooks);

struct Share {
  decide::Id webhook_id{};
  int32_t messages_max = 0;
};

// Claims messages for `lease`: of each call and webhook only the oldest, so that a later one waits for it. `now_us`:
// the database's clock.
TxResult ClaimMessages(Connection& connection, const std::vector<Share>& shares, std::chrono::microseconds lease,
                       std::vector<OutboxMessage>* messages, int64_t* now_us);

struct Outcome {
  int64_t message = 0;
  int32_t tries = 0;  // as claimed
  decide::Id webhook_id{};
  decide::Id call_id{};
  int64_t created_at_us = 0;
  bool taken = false;
  bool gone = false;  // not taken, and not to be tried again
  std::string error;  // why not taken
  std::chrono::microseconds retry_after{};
};

// What became of claimed messages: those taken go, the others wait, or go where they are `give_up_after` old. Says of
// each whether it was given up. An outcome of a claim that has run out and been claimed anew changes nothing, except
// that a message that was taken goes.
TxResult EndMessages(Connection& connection, const std::vector<Outcome>& outcomes,
                     std::chrono::microseconds give_up_after, std::vector<bool>* given_up);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_OUTBOX_H_
