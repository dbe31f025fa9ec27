#ifndef TALLY_SERVER_LANE_INTAKE_H_
#define TALLY_SERVER_LANE_INTAKE_H_

#include <memory>

#include "server/lane/job.h"

namespace tally::lane {

// Where jobs are handed in.
class Intake {
 public:
  virtual ~Intake() = default;

  // From any thread; never waits. The job is finished exactly once, now if it is refused.
  virtual void Submit(std::unique_ptr<Job> job) = 0;

  // Refuses what is new and finishes what was accepted; at `until`, what has not been begun is answered kShuttingDown.
  virtual void Drain(Job::Clock::time_point until) = 0;
};

}  // namespace tally::lane

#endif  // TALLY_SERVER_LANE_INTAKE_H_
