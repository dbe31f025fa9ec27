#ifndef TALLY_BENCH_DRIVER_CHILD_H_
#define TALLY_BENCH_DRIVER_CHILD_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tally::bench {

// A program that serves, started for one run. It ends with this process, however that ends.
class Child {
 public:
  // `command[0]` is a path; `environment` is added to ours, as NAME=VALUE. What it writes goes to `log`.
  static absl::StatusOr<std::unique_ptr<Child>> Start(const std::vector<std::string>& command,
                                                      const std::vector<std::string>& environment,
                                                      const std::string& log);
  ~Child();  // Stop
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Until it serves on `socket`. An error carries the end of its log.
  absl::Status AwaitSocket(const std::string& socket, std::chrono::seconds limit);

  // SIGTERM, and SIGKILL where that takes longer than 30 seconds.
  void Stop();

 private:
  Child(pid_t pid, std::string log) : pid_(pid), log_(std::move(log)) {}
  bool Ended();
  std::string LogTail() const;

  pid_t pid_;  // 0: reaped
  const std::string log_;
};

}  // namespace tally::bench

#endif  // TALLY_BENCH_DRIVER_CHILD_H_
