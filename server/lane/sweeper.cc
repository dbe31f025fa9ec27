#include "server/lane/sweeper.h"

#include <utility>

namespace tally::lane {

struct Sweeper::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;  // by mutex, as below
  bool round_open = false;
};

Sweeper::Sweeper(std::chrono::milliseconds interval, Find find, Submit submit)
    : interval_(interval), find_(std::move(find)), submit_(std::move(submit)), shared_(std::make_shared<Shared>()) {
  thread_ = std::thread([this] { Loop(); });
}

Sweeper::~Sweeper() { Stop(); }

void Sweeper::Stop() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  const std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

Sweeper::Counts Sweeper::counts() const { return {rounds_, failed_rounds_, jobs_}; }

bool Sweeper::stopping() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->stopping;
}

void Sweeper::Loop() {
  while (!stopping()) {
    Round();
    std::unique_lock lock(shared_->mutex);
    // First the round, then the pause: a slow database is never asked for more while it still works on the last round.
    shared_->changed.wait(lock, [&] { return shared_->stopping || !shared_->round_open; });
    shared_->changed.wait_for(lock, interval_, [&] { return shared_->stopping; });
  }
}

void Sweeper::Round() {
  ++rounds_;
  std::vector<std::unique_ptr<Job>> found;
  try {
    found = find_();
  } catch (...) {
    ++failed_rounds_;
    return;
  }
  if (found.empty()) return;
  jobs_ += found.size();

  {
    const std::lock_guard lock(shared_->mutex);
    shared_->round_open = true;
  }
  // Its last holder, the last job of the round, closes the round.
  std::shared_ptr<const void> round(nullptr, [shared = shared_](const void*) {
    const std::lock_guard lock(shared->mutex);
    shared->round_open = false;
    shared->changed.notify_all();
  });
  for (auto& job : found) {
    job->Hold(round);
    submit_(std::move(job));
  }
}

}  // namespace tally::lane
