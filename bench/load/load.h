#ifndef TALLY_BENCH_LOAD_LOAD_H_
#define TALLY_BENCH_LOAD_LOAD_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tally::bench {

struct LoadOptions {
  std::string server;  // unix:PATH
  std::string credential;
  std::vector<std::string> permit_tokens;  // each pair picks one at random
  int callers = 64;                        // pairs in flight at any moment
  int connections = 2;
  std::chrono::milliseconds warm_up{2000};  // not measured
  std::chrono::milliseconds window{6000};   // measured
};

struct LoadResult {
  double pairs_per_s = 0;
  double p50_ms = 0;  // of a pair: from sending Authorize to Commit's answer, with retries in between
  double p99_ms = 0;
  int64_t pairs = 0;
  int64_t contended = 0;  // pairs given up: Authorize or Commit lost three times in a row
};

// Keeps `callers` pairs of Authorize and Commit in flight, each with a key, an attempt and arguments of its own: what a
// gateway's callers do, but for the tool. `contended` answers are tried again as clients must, 50 ms jittered, three
// tries in all. Any other answer than DISPATCH and a recorded success ends the run with an error that names it.
absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options);

}  // namespace tally::bench

#endif  // TALLY_BENCH_LOAD_LOAD_H_
