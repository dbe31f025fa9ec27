#ifndef TALLY_SERVER_LANE_COUNTERS_H_
#define TALLY_SERVER_LANE_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/lane/job.h"

namespace tally::lane {

inline constexpr size_t kFates = static_cast<size_t>(Fate::kFailed) + 1;

// A lane's figures at one moment. All but `queue_depth` only grow.
struct Counts {
  uint64_t batches = 0;       // taken from the queue and begun
  uint64_t batch_jobs = 0;    // sum of their sizes: batch_jobs / batches is the mean batch
  uint64_t transactions = 0;  // Store::Run, first tries and others
  uint64_t lost_races = 0;    // of them, those that a rival rolled back
  uint64_t splits = 0;        // batches, or parts of them, cut in halves
  uint64_t exceptions = 0;    // thrown by Store::Run: bugs
  uint64_t queue_depth = 0;
  std::array<uint64_t, kFates> fates{};  // jobs finished, by static_cast<size_t>(Fate)

  uint64_t of(Fate fate) const { return fates[static_cast<size_t>(fate)]; }
};

// Counts as they grow. Every number is exact, but two numbers read one after the other may be of different moments.
struct Counters {
  std::atomic<uint64_t> batches = 0;
  std::atomic<uint64_t> batch_jobs = 0;
  std::atomic<uint64_t> transactions = 0;
  std::atomic<uint64_t> lost_races = 0;
  std::atomic<uint64_t> splits = 0;
  std::atomic<uint64_t> exceptions = 0;
  std::array<std::atomic<uint64_t>, kFates> fates{};

  static void Add(std::atomic<uint64_t>& counter, uint64_t n = 1) { counter.fetch_add(n, std::memory_order_relaxed); }

  Counts Read() const {
    constexpr auto kOrder = std::memory_order_relaxed;
    Counts counts;
    counts.batches = batches.load(kOrder);
    counts.batch_jobs = batch_jobs.load(kOrder);
    counts.transactions = transactions.load(kOrder);
    counts.lost_races = lost_races.load(kOrder);
    counts.splits = splits.load(kOrder);
    counts.exceptions = exceptions.load(kOrder);
    for (size_t i = 0; i < kFates; ++i) counts.fates[i] = fates[i].load(kOrder);
    return counts;
  }
};

}  // namespace tally::lane

#endif  // TALLY_SERVER_LANE_COUNTERS_H_
