#include "server/webhook/delivery.h"

#include <algorithm>
#include <utility>

#include "lib/keys/uuid.h"
#include "server/ledger/ids.h"
#include "server/ops/log.h"

namespace tally::webhook {
namespace {

constexpr absl::Duration kPoll = absl::Seconds(1);
// Beyond the timeout of a send: for the database before and after it.
constexpr std::chrono::seconds kLeaseMargin{30};
constexpr int kLastStoresMax = 3;  // when stopping

std::vector<decide::Id> RotatedBehind(std::vector<decide::Id> ids, const decide::Id& last) {
  std::sort(ids.begin(), ids.end());
  std::rotate(ids.begin(), std::upper_bound(ids.begin(), ids.end(), last), ids.end());
  return ids;
}

}  // namespace

Delivery::Delivery(const std::string& conninfo, const keys::Sealer& sealer, DeliveryOptions options)
    : sealer_(sealer),
      options_(options),
      senders_(kSenders),
      connection_(conninfo),
      random_(std::random_device{}()),
      thread_([this] { Loop(); }) {}

Delivery::~Delivery() { Stop(); }

void Delivery::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Delivery::SendNow(ledger::WebhookTarget target, std::string body, int64_t now_us,
                       absl::AnyInvocable<void(const Sent&)> done) {
  const decide::Id message_id = ledger::ToId(keys::NewUuid7(now_us / 1000, 0));
  return senders_.Run(
      [this, target = std::move(target), body = std::move(body), message_id, now_us, done = std::move(done)]() mutable {
        done(SendOnce(target, sealer_, message_id, body, now_us, options_.send));
      });
}

void Delivery::Loop() {
  bool down = false;
  while (true) {
    bool stored = Store();
    const bool busy = stored && Claim();
    if (down == stored) {
      down = !stored;
      if (down) ops::LogWarning("webhooks_wait", {{"why", "the database does not take what became of messages"}});
    }
    absl::MutexLock lock(&mutex_);
    if (!busy && !stopping_) mutex_.AwaitWithTimeout(absl::Condition(this, &Delivery::Awake), kPoll);
    if (stopping_) break;
  }
  senders_.Stop();
  for (int i = 0; i < kLastStoresMax && !Store(); ++i) absl::SleepFor(absl::Milliseconds(100));
}

// A turn for each webhook that has room, again and again until the free senders are used up; the next time those after
// the last one come first.
std::vector<ledger::Share> Delivery::Shares(const std::vector<decide::Id>& waiting) {
  struct Candidate {
    ledger::Share share;
    size_t room;
  };
  std::vector<Candidate> candidates;
  const Clock::time_point now = Clock::now();
  for (const decide::Id& id : RotatedBehind(waiting, last_served_)) {
    if (const size_t room = pace_.Room(id, now); room > 0) candidates.push_back({{id, 0}, room});
  }
  size_t free = senders_.free();
  for (size_t turn = 0; turn < Pace::kAtOnceMax; ++turn) {
    for (Candidate& candidate : candidates) {
      if (free == 0 || candidate.room <= turn) continue;
      --free;
      ++candidate.share.messages_max;
      if (turn == 0) last_served_ = candidate.share.webhook_id;
    }
  }
  std::vector<ledger::Share> shares;
  for (const Candidate& candidate : candidates) {
    if (candidate.share.messages_max > 0) shares.push_back(candidate.share);
  }
  return shares;
}

bool Delivery::Claim() {
  if (senders_.free() == 0) return false;
  std::vector<decide::Id> waiting;
  if (!ledger::FindWaiting(connection_, &waiting).ok() || waiting.empty()) return false;
  const std::vector<ledger::Share> shares = Shares(waiting);
  if (shares.empty()) return false;
  std::vector<ledger::OutboxMessage> messages;
  int64_t now_us = 0;
  // From before the database's clock is read, so that ours is over first.
  const Clock::time_point good_until = Clock::now() + kLeaseMargin / 2;
  // A commit in doubt is treated like one that failed: what it claimed is tried when the lease is over.
  if (!ledger::ClaimMessages(connection_, shares, options_.send.timeout + kLeaseMargin, &messages, &now_us).ok()) {
    return false;
  }
  for (ledger::OutboxMessage& message : messages) Hand(std::move(message), now_us, good_until);
  return !messages.empty();
}

void Delivery::Hand(ledger::OutboxMessage message, int64_t now_us, Clock::time_point good_until) {
  const decide::Id webhook = message.target.webhook_id;
  pace_.Begin(webhook);
  Ended ended;
  ended.outcome.message = message.message;
  ended.outcome.tries = message.tries;
  ended.outcome.webhook_id = webhook;
  ended.outcome.call_id = message.call_id;
  ended.outcome.created_at_us = message.created_at_us;
  const bool taken = senders_.Run([this, message = std::move(message), ended, now_us, good_until]() mutable {
    // This process was stopped after it had claimed: another replica may be sending by now.
    ended.sent = Clock::now() < good_until;
    if (ended.sent) {
      const Sent sent = SendOnce(message.target, sealer_, message.message_id, message.body, now_us, options_.send);
      // A crash here: the message was taken, the row stands, and it is sent again with the same id.
      ended.end = sent.end;
      ended.outcome.taken = sent.taken();
      ended.outcome.gone = sent.gone();
      ended.outcome.error = sent.error;
    }
    absl::MutexLock lock(&mutex_);
    ended_.push_back(std::move(ended));
  });
  // Test messages took the sender meanwhile: it is tried when the lease is over, or by another replica.
  if (!taken) pace_.Ended(webhook, Pace::End::kTaken, Clock::now(), 0);
}

bool Delivery::Store() {
  std::vector<Ended> ended;
  {
    absl::MutexLock lock(&mutex_);
    ended.swap(ended_);
  }
  for (Ended& one : ended) {
    ledger::Outcome& outcome = one.outcome;
    if (!one.sent) {
      pace_.Ended(outcome.webhook_id, Pace::End::kTaken, Clock::now(), 0);
      continue;
    }
    pace_.Ended(outcome.webhook_id, one.end, Clock::now(), Chance());
    outcome.retry_after = RetryDelay(outcome.tries, options_.retry_first, options_.retry_longest, Chance());
    unstored_.push_back(std::move(outcome));
  }
  if (unstored_.empty()) return true;
  // Replicas update the same webhooks: in one order, so that they do not wait for each other in a circle.
  std::stable_sort(unstored_.begin(), unstored_.end(),
                   [](const auto& a, const auto& b) { return a.webhook_id < b.webhook_id; });
  std::vector<bool> given_up;
  // Again after a doubt as well: an outcome that was stored finds its claim gone, and changes nothing.
  if (!ledger::EndMessages(connection_, unstored_, options_.give_up_after, &given_up).ok()) return false;
  for (size_t i = 0; i < given_up.size(); ++i) {
    if (!given_up[i]) continue;
    ops::LogWarning("webhook_message_given_up", {{"webhook_id", ledger::IdText(unstored_[i].webhook_id)},
                                                 {"call_id", ledger::IdText(unstored_[i].call_id)},
                                                 {"why", unstored_[i].error}});
  }
  unstored_.clear();
  return true;
}

}  // namespace tally::webhook
