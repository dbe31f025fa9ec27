#include "gateway/call/settler.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using std::chrono::milliseconds;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr milliseconds kAgainFirst{500};
constexpr milliseconds kAgainMax{30'000};
constexpr int kVoidTries = 3;

// Whether saying it again could be answered otherwise. A credential can be put right; a conflict cannot.
bool Final(const client::Failure& failure) {
  return failure.kind == v1::KIND_CONFLICT || failure.kind == v1::KIND_INVALID;
}

}  // namespace

asio::awaitable<std::optional<v1::CommitResponse>> Settlement::Wait(milliseconds at_most) {
  if (!ended_) {
    changed_.expires_after(at_most);
    co_await changed_.async_wait(kTuple);
  }
  co_return response_;
}

SharedSettlement Settler::Settle(v1::CommitRequest commit) {
  auto settlement = std::make_shared<Settlement>(loop_);
  Start(std::move(commit), settlement, milliseconds(0), false);
  return settlement;
}

void Settler::Start(v1::CommitRequest commit, SharedSettlement settlement, milliseconds wait, bool journaled) {
  SharedSettlement& current = under_way_[commit.attempt_id()];
  if (current) {
    current->replaced_ = true;
    current->changed_.cancel();
  }
  current = settlement;
  asio::co_spawn(loop_, Deliver(std::move(commit), std::move(settlement), wait, journaled), asio::detached);
}

void Settler::TakeLeftovers() {
  for (Leftover& left : journal_.TakeLeftovers()) {
    ops::LogInfo("journal_leftover",
                 {{"call_id", left.commit.call_id()}, {"outcome", v1::CommitOutcome_Name(left.commit.outcome())}});
    Start(std::move(left.commit), std::make_shared<Settlement>(loop_), left.wait, true);
  }
}

asio::awaitable<void> Settler::Deliver(v1::CommitRequest commit, SharedSettlement settlement, milliseconds wait,
                                       bool journaled) {
  const std::string attempt = commit.attempt_id();
  asio::steady_timer timer(loop_, wait);
  if (wait.count() > 0) co_await timer.async_wait(kTuple);
  // Not one after the other: until tallyd has answered, the journal's word is what counts after a crash, and whatever
  // it has by then is right. `sending` alone is committed as uncertain, which tallyd takes for the end that it knows.
  if (!journaled) asio::co_spawn(loop_, Keep(commit), asio::detached);
  for (milliseconds again = kAgainFirst; !settlement->replaced_; again = std::min(again * 2, kAgainMax)) {
    const client::Answer<v1::CommitResponse> answer = co_await authority_.Commit(commit);
    if (answer.ok() || Final(answer.failure())) {
      if (answer.ok()) {
        settlement->response_ = answer.value();
      } else {
        ops::LogError("commit_refused", {{"call_id", commit.call_id()}, {"code", answer.failure().code}});
      }
      // A later one for this attempt has its own line in the journal, which this would take away.
      if (!settlement->replaced_) journal_.Delivered(attempt);
      break;
    }
    ops::LogWarning("commit_not_delivered", {{"call_id", commit.call_id()}, {"code", answer.failure().code}});
    timer.expires_after(again);
    co_await timer.async_wait(kTuple);
  }
  settlement->ended_ = true;
  settlement->changed_.cancel();
  if (const auto found = under_way_.find(attempt); found != under_way_.end() && found->second == settlement) {
    under_way_.erase(found);
  }
}

asio::awaitable<void> Settler::Keep(v1::CommitRequest commit) {
  const std::string call_id = commit.call_id();
  if (const absl::Status kept = co_await journal_.Outcome(std::move(commit)); !kept.ok()) {
    ops::LogError("outcome_not_in_journal", {{"call_id", call_id}, {"why", std::string(kept.message())}});
  }
}

void Settler::Void(const std::string& permit_token, const std::string& key, const std::string& attempt_id) {
  v1::CommitRequest commit;
  commit.set_permit_token(permit_token);
  commit.set_key(key);
  commit.set_attempt_id(attempt_id);
  commit.set_outcome(v1::OUTCOME_NOT_SENT);
  asio::co_spawn(
      loop_,
      [this, commit = std::move(commit)]() -> asio::awaitable<void> {
        for (int i = 0; i < kVoidTries; ++i) {
          const auto answer = co_await authority_.Commit(commit);
          if (answer.ok() || Final(answer.failure())) co_return;
        }
      },
      asio::detached);
}

}  // namespace tally::gateway
