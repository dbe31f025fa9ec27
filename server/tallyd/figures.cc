#include "server/tallyd/figures.h"

#include <algorithm>
#include <utility>

#include "server/ops/log.h"

namespace tally::tallyd {

Figures::Figures(Read read) : read_(std::move(read)), thread_([this] { Loop(); }) {}

Figures::~Figures() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Figures::Get(Done done) {
  Shared kept;
  {
    absl::MutexLock lock(&mutex_);
    if (Clock::now() >= kept_until_) {
      waiting_.push_back(std::move(done));
      return;
    }
    kept = last_;
  }
  done(std::move(kept));
}

Figures::Shared Figures::Recent() {
  absl::MutexLock lock(&mutex_);
  return Clock::now() - read_at_ <= kLateMax ? last_ : nullptr;
}

void Figures::Loop() {
  const auto asked = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || !waiting_.empty(); };
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&asked));
      if (stopping_) return;
    }
    const Clock::time_point began = Clock::now();
    absl::StatusOr<ledger::Figures> figures = read_();
    if (!figures.ok()) {
      ops::LogWarning("figures_not_read", {{"code", absl::StatusCodeToString(figures.status().code())}});
    }
    const Clock::time_point ended = Clock::now();
    Shared shared = figures.ok() ? std::make_shared<const ledger::Figures>(*std::move(figures)) : nullptr;
    std::vector<Done> waiting;
    {
      absl::MutexLock lock(&mutex_);
      last_ = shared;
      read_at_ = began;
      const Clock::duration kept = std::clamp<Clock::duration>((ended - began) * kKeptPerCost, kKeptMin, kKeptMax);
      kept_until_ = ended + (shared == nullptr ? Clock::duration(kFailedKept) : kept);
      waiting.swap(waiting_);
    }
    for (const Done& done : waiting) done(shared);
  }
}

}  // namespace tally::tallyd
