#include "reconciler/engine/engine.h"

#include <absl/time/clock.h>

#include <algorithm>
#include <random>

#include "server/ops/log.h"

namespace tally::reconciler {
namespace {

constexpr int kPageSize = 200;
constexpr int kPagesMax = 25;  // of one round; the next goes on from there
constexpr size_t kWaitingMax = 1000;
constexpr milliseconds kAwayFirst{1'000};
constexpr milliseconds kAwayMax{30'000};
constexpr milliseconds kPatience{30'000};

}  // namespace

Engine::Engine(const Config& config, client::Client& tallyd, Work& work, Metrics& metrics)
    : config_(config),
      tallyd_(tallyd),
      work_(work),
      metrics_(metrics),
      queue_(config.providers, kWaitingMax),
      answered_ms_(MonotonicNow().count()) {}

Engine::~Engine() { Stop(); }

void Engine::Start() {
  threads_.emplace_back([this] { Poll(); });
  for (int i = 0; i < config_.reconciler.workers; ++i) threads_.emplace_back([this] { WorkOn(); });
}

void Engine::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  queue_.Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool Engine::Healthy() const {
  const milliseconds silent = MonotonicNow() - milliseconds(answered_ms_.load());
  return silent < std::max(kPatience, config_.reconciler.poll * 3);
}

bool Engine::Sleep(milliseconds pause) {
  std::unique_lock lock(mutex_);
  return stop_.wait_for(lock, pause, [this] { return stopping_; });
}

void Engine::Poll() {
  std::minstd_rand chance{std::random_device{}()};
  milliseconds away{0};  // how long to wait while tallyd does not answer
  while (true) {
    milliseconds pause = config_.reconciler.poll;
    if (ListOnce()) {
      if (away.count() > 0) ops::LogInfo("tallyd_is_back");
      away = milliseconds(0);
      answered_ms_ = MonotonicNow().count();
      metrics_.Listed(static_cast<double>(absl::GetCurrentTimeNanos()) / 1e9);
    } else {
      away = std::min(kAwayMax, std::max(kAwayFirst, away * 2));
      // Jittered, so that replicas do not all come at once when it is back.
      pause = away / 2 + milliseconds(std::uniform_int_distribution<int64_t>(0, away.count() / 2)(chance));
    }
    metrics_.Load(queue_.waiting(), queue_.in_hand());
    if (Sleep(pause)) return;
  }
}

bool Engine::ListOnce() {
  v1::ListParkedRequest request;
  request.set_claimable_only(true);
  request.set_page_size(kPageSize);
  client::CallOptions options;
  options.timeout = config_.tallyd.timeout;
  for (int page = 0; page < kPagesMax; ++page) {
    if (Sleep(milliseconds(0))) return true;
    request.set_page_token(cursor_);
    const auto list = tallyd_.ListParked(request, options);
    if (!list.ok()) {
      metrics_.TallydFailed("list");
      ops::LogWarning("list_failed", {{"code", list.failure().code}, {"error", list.failure().message}});
      return false;
    }
    for (const v1::ParkedCall& parked : list.value().parked()) {
      if (!work_.MayNeed(parked)) continue;
      const ToolConfig& tool = config_.ForTool(parked.call().tool());
      // Full: this page again next time, when those of it that were taken are in hand or done.
      if (!queue_.Offer({parked.call().call_id(), tool.provider})) return true;
    }
    cursor_ = list.value().next_page_token();
    if (cursor_.empty()) return true;
  }
  return true;
}

void Engine::WorkOn() {
  // Ends when the queue is stopped.
  while (const std::optional<Job> job = queue_.Take()) {
    work_.Handle(job->call_id);
    queue_.Done(*job);
  }
}

}  // namespace tally::reconciler
