#include "bench/plain/pool.h"

#include <algorithm>
#include <chrono>

#include "bench/plain/carry.h"
#include "server/ledger/calls.h"

namespace tally::plain {
namespace {

using lane::Fate;
using lane::Job;

constexpr size_t kWaitingMax = 8192;
constexpr int kTriesMax = 10;
// Before a try is repeated: a random time up to this, doubled each time.
constexpr std::chrono::microseconds kPauseFirst{1000};
constexpr std::chrono::microseconds kPauseMax{64'000};

}  // namespace

Pool::Pool(int connections, const std::string& conninfo, const keys::Signer& signer, ledger::TermsCache& terms,
           OnFailure on_failure)
    : signer_(signer), terms_(terms), on_failure_(std::move(on_failure)), until_(Job::Clock::time_point::max()) {
  for (int i = 0; i < connections; ++i) threads_.emplace_back([this, conninfo] { Loop(conninfo); });
}

Pool::~Pool() { Drain(Job::Clock::now()); }

void Pool::Submit(std::unique_ptr<Job> job) {
  Fate refused = Fate::kShuttingDown;
  {
    const std::lock_guard lock(mutex_);
    if (!closed_ && waiting_.size() < kWaitingMax) {
      waiting_.push_back(std::move(job));
      changed_.notify_one();
      return;
    }
    if (!closed_) refused = Fate::kOverloaded;
  }
  job->Finish(refused);
}

void Pool::Drain(Job::Clock::time_point until) {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    until_ = std::min(until_, until);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

std::unique_ptr<Job> Pool::Take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
  if (waiting_.empty()) return nullptr;
  std::unique_ptr<Job> job = std::move(waiting_.front());
  waiting_.pop_front();
  return job;
}

void Pool::Loop(const std::string& conninfo) {
  ledger::Connection connection(conninfo);
  std::minstd_rand random(std::random_device{}());
  while (std::unique_ptr<Job> job = Take()) job->Finish(Carry(connection, *job, random));
}

Fate Pool::Carry(ledger::Connection& connection, Job& job, std::minstd_rand& random) {
  auto pause = kPauseFirst;
  for (int tried = 0; tried < kTriesMax; ++tried) {
    if (tried > 0) {
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, pause.count())(random)));
      pause = std::min(2 * pause, kPauseMax);
    }
    const auto now = Job::Clock::now();
    if (now >= job.deadline()) return Fate::kExpired;
    {
      const std::lock_guard lock(mutex_);
      if (now >= until_) return Fate::kShuttingDown;
    }
    const ledger::TxResult result = plain::Carry(connection, signer_, terms_, static_cast<ledger::CallJob&>(job));
    switch (result.end) {
      case ledger::TxEnd::kCommitted:
        return Fate::kDone;
      case ledger::TxEnd::kDown:
        return Fate::kDown;
      case ledger::TxEnd::kInDoubt:
        return Fate::kInDoubt;
      case ledger::TxEnd::kLostRace:
        break;
      case ledger::TxEnd::kConstraint:
      case ledger::TxEnd::kError:
        on_failure_(result);
        return Fate::kFailed;
    }
  }
  return Fate::kContended;
}

}  // namespace tally::plain
