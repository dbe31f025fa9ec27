#ifndef TALLY_SERVER_LANE_SWEEPER_H_
#define TALLY_SERVER_LANE_SWEEPER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/lane/job.h"

namespace tally::lane {

// Looks for calls whose lease is over, every `interval`, so that they are parked even if nobody asks for them again. It
// decides nothing: the decision that meets such a call parks it, and the job is one way to have that decision made.
class Sweeper {
 public:
  // Jobs for what there is to do now, at most one round's worth. Called from the sweeper's thread. May throw: then the
  // round is counted as failed, and the next one comes in its time.
  using Find = std::function<std::vector<std::unique_ptr<Job>>()>;
  using Submit = std::function<void(std::unique_ptr<Job>)>;

  struct Counts {
    uint64_t rounds = 0;
    uint64_t failed_rounds = 0;
    uint64_t jobs = 0;
  };

  // `submit` must finish every job in the end, as Router::Submit does.
  Sweeper(std::chrono::milliseconds interval, Find find, Submit submit);
  ~Sweeper();  // Stop

  // Returns as soon as a Find that is running does. Jobs already submitted are finished by whoever has them.
  void Stop();

  Counts counts() const;

 private:
  struct Shared;  // outlives this: jobs hold it

  void Loop();
  void Round();
  bool stopping() const;

  const std::chrono::milliseconds interval_;
  const Find find_;
  const Submit submit_;
  const std::shared_ptr<Shared> shared_;
  std::atomic<uint64_t> rounds_ = 0;
  std::atomic<uint64_t> failed_rounds_ = 0;
  std::atomic<uint64_t> jobs_ = 0;
  std::mutex join_mutex_;
  std::thread thread_;  // joined under join_mutex_
};

}  // namespace tally::lane

#endif  // TALLY_SERVER_LANE_SWEEPER_H_
