#include "server/lane/lane.h"

#include <algorithm>
#include <utility>

namespace tally::lane {

Lane::Lane(LaneOptions options, std::unique_ptr<Store> store)
    : options_(options), queue_(options.queue_max), store_(std::move(store)), random_(std::random_device{}()) {
  thread_ = std::thread([this] { Loop(); });
}

Lane::~Lane() { Drain(Job::Clock::now()); }

void Lane::Submit(std::unique_ptr<Job> job) {
  if (const auto refused = queue_.Put(job)) Finish(job, *refused);
}

void Lane::Drain(Job::Clock::time_point until) {
  Close();
  {
    std::unique_lock lock(drained_mutex_);
    drained_changed_.wait_until(lock, until, [&] { return drained_; });
  }
  abandoned_ = true;
  const std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

Counts Lane::counts() const {
  Counts counts = counters_.Read();
  counts.queue_depth = queue_.depth();
  return counts;
}

void Lane::Loop() {
  const size_t batch_max = std::max<size_t>(options_.batch_max, 1);
  for (;;) {
    auto jobs = queue_.Take(batch_max);
    if (jobs.empty()) break;
    patience_end_ = Job::Clock::now() + options_.patience;
    give_up_ = false;
    if (const size_t size = ToBegin(jobs).size(); size > 0) {
      Counters::Add(counters_.batches);
      Counters::Add(counters_.batch_jobs, size);
    }
    Carry(jobs, /*under_lock=*/false);
  }
  const std::lock_guard lock(drained_mutex_);
  drained_ = true;
  drained_changed_.notify_all();
}

// Every way out of here has finished every job.
void Lane::Carry(Jobs jobs, bool under_lock) {
  for (int losses = 0;;) {
    const auto batch = ToBegin(jobs);
    if (batch.empty()) return;
    const bool alone = batch.size() == 1;

    switch (Run(batch, under_lock)) {
      case BatchEnd::kCommitted:
        return FinishAll(jobs, Fate::kDone);
      case BatchEnd::kInDoubt:
        return FinishAll(jobs, Fate::kInDoubt);
      case BatchEnd::kRejected:
        if (alone) return FinishAll(jobs, Fate::kFailed);
        return CarryHalves(jobs, under_lock);
      case BatchEnd::kDown:
        // Nothing was committed, and a restart of the database is felt first as a dead connection: try once on a new
        // one. While the database stays away nobody waits for a second try.
        give_up_ = std::exchange(down_, true);
        continue;
      case BatchEnd::kLostRace:
        ++losses;
        if (Job::Clock::now() >= patience_end_ || (alone && losses >= options_.alone_tries)) {
          return FinishAll(jobs, Fate::kContended);
        }
        Pause(losses);
        if (under_lock && !alone) return CarryHalves(jobs, under_lock);
        under_lock = true;
        continue;
    }
    // Not one of the five: as with an exception, nothing is known.
    return FinishAll(jobs, Fate::kInDoubt);
  }
}

void Lane::CarryHalves(Jobs jobs, bool under_lock) {
  Counters::Add(counters_.splits);
  const size_t half = jobs.size() / 2;
  Carry(jobs.first(half), under_lock);
  Carry(jobs.subspan(half), under_lock);
}

BatchEnd Lane::Run(std::span<Job* const> batch, bool under_lock) {
  Counters::Add(counters_.transactions);
  BatchEnd end = BatchEnd::kInDoubt;
  try {
    end = store_->Run(batch, under_lock);
  } catch (...) {
    // It may have been thrown after COMMIT was sent.
    Counters::Add(counters_.exceptions);
  }
  if (end == BatchEnd::kLostRace) Counters::Add(counters_.lost_races);
  if (end != BatchEnd::kDown) down_ = false;
  return end;
}

// Those to carry out; answers those that are not to be begun, or not to be begun again.
std::vector<Job*> Lane::ToBegin(Jobs jobs) {
  std::vector<Job*> batch;
  batch.reserve(jobs.size());
  const auto now = Job::Clock::now();
  for (auto& job : jobs) {
    if (job == nullptr) continue;
    if (give_up_) {
      Finish(job, Fate::kDown);
    } else if (job->deadline() <= now) {
      Finish(job, Fate::kExpired);
    } else if (abandoned_) {
      Finish(job, Fate::kShuttingDown);
    } else {
      batch.push_back(job.get());
    }
  }
  return batch;
}

void Lane::Pause(int losses) {
  const auto longest = options_.pause_max.count() << std::min(losses - 1, 6);
  if (longest <= 0) return;
  std::uniform_int_distribution<int64_t> pause(0, longest);
  std::this_thread::sleep_for(std::chrono::microseconds(pause(random_)));
}

void Lane::Finish(std::unique_ptr<Job>& job, Fate fate) {
  Counters::Add(counters_.fates[static_cast<size_t>(fate)]);
  job->Finish(fate);
  job.reset();
}

void Lane::FinishAll(Jobs jobs, Fate fate) {
  for (auto& job : jobs) {
    if (job != nullptr) Finish(job, fate);
  }
}

}  // namespace tally::lane
