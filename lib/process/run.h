// A program run to its end, with all of its input given and all of its output taken.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "lib/process/child.h"

namespace tally::process {

struct Ended {
  int exit_code = 0;   // -1: by a signal
  std::string output;  // of its standard output
  std::string errors;  // the first bytes of its standard error, at most 4 KiB
};

// Blocks. DeadlineExceeded: it did not end by `timeout`; ResourceExhausted: it wrote more than `output_bytes_max`. In
// every case its whole process group is gone when this returns, what it left running included.
absl::StatusOr<Ended> Run(const Command& command, std::string_view input, std::chrono::milliseconds timeout,
                          size_t output_bytes_max);

}  // namespace tally::process
