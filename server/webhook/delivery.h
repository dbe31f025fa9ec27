#ifndef TALLY_SERVER_WEBHOOK_DELIVERY_H_
#define TALLY_SERVER_WEBHOOK_DELIVERY_H_

#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "lib/keys/sealed.h"
#include "server/ledger/outbox.h"
#include "server/ledger/transaction.h"
#include "server/webhook/attempt.h"
#include "server/webhook/pace.h"
#include "server/webhook/senders.h"

namespace tally::webhook {

struct DeliveryOptions {
  SendOptions send;
  std::chrono::milliseconds retry_first{5'000};
  std::chrono::milliseconds retry_longest{3'600'000};
  std::chrono::milliseconds give_up_after = std::chrono::hours(72);
};

// Sends what stands in the outbox, from its making to its Stop. One thread, with one connection, claims messages and
// stores what became of them; others send.
//
// At least once: a message is sent, and only then is its row taken away. A process that dies in between, or that is
// stopped for longer than the claim's lease, leaves a row that is sent again by whoever comes next, with the same id,
// by which receivers know it again.
class Delivery {
 public:
  static constexpr size_t kSenders = 16;

  Delivery(const std::string& conninfo, const keys::Sealer& sealer, DeliveryOptions options);
  ~Delivery();  // Stop

  // Claims nothing more, waits for the sends under way (at most their timeout) and stores what became of them.
  void Stop();

  const keys::Sealer& sealer() const { return sealer_; }
  const SendOptions& send_options() const { return options_.send; }

  // Sends a message that stands nowhere, once, at once; `done` is called on a sender's thread. False: none is free.
  bool SendNow(ledger::WebhookTarget target, std::string body, int64_t now_us,
               absl::AnyInvocable<void(const Sent&)> done);

 private:
  void Loop();
  // True if there was something to do.
  bool Claim();
  // False: the database did not take it; the outcomes are kept.
  bool Store();
  void Hand(ledger::OutboxMessage message, int64_t now_us, Clock::time_point good_until);
  std::vector<ledger::Share> Shares(const std::vector<decide::Id>& waiting);
  double Chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool Awake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !ended_.empty(); }

  struct Ended {
    ledger::Outcome outcome;
    bool sent = false;  // false: too late, nothing was
    Pace::End end = Pace::End::kNoAnswer;
  };

  const keys::Sealer& sealer_;
  const DeliveryOptions options_;
  Senders senders_;

  // Of the thread.
  ledger::Connection connection_;
  Pace pace_;
  std::minstd_rand random_;
  decide::Id last_served_{};
  std::vector<ledger::Outcome> unstored_;

  absl::Mutex mutex_;
  std::vector<Ended> ended_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tally::webhook

#endif  // TALLY_SERVER_WEBHOOK_DELIVERY_H_
