// Lists what is parked, and has it worked on. Keeps nothing on disk: all that must outlive this process is at tallyd.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "reconciler/engine/queue.h"
#include "reconciler/engine/work.h"

namespace tally::reconciler {

class Engine {
 public:
  // What it refers to outlives it.
  Engine(const Config& config, client::Client& tallyd, Work& work, Metrics& metrics);
  ~Engine();
  Engine(const Engine&) = delete;

  void Start();
  // Takes up nothing new, and returns when what is under way is done: that is at most a look-up's timeout and, while
  // tallyd does not answer, the rest of a claim.
  void Stop();

  // tallyd has answered within the last half minute, or the last three times it was to be asked.
  bool Healthy() const;

 private:
  void Poll();
  void WorkOn();
  // One round over the list, from where the last one stopped; false: tallyd did not answer.
  bool ListOnce();
  // True: it is time to go.
  bool Sleep(milliseconds pause);

  const Config& config_;
  client::Client& tallyd_;
  Work& work_;
  Metrics& metrics_;
  JobQueue queue_;
  std::string cursor_;  // the polling thread's: the page to begin with
  std::atomic<int64_t> answered_ms_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tally::reconciler
