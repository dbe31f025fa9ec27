#ifndef TALLY_SERVER_TALLYD_FIGURES_H_
#define TALLY_SERVER_TALLYD_FIGURES_H_

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/ledger/report_reads.h"

namespace tally::tallyd {

// The figures of all tenants, read from the database when they are asked for, and kept for a moment: however many ask,
// they cost the database one reading every five seconds, or fewer where a reading takes long. Thread-safe.
class Figures {
 public:
  // Reads them; may block. Called on one thread only, never twice at a time.
  using Read = std::function<absl::StatusOr<ledger::Figures>()>;
  // Null: the database did not give them.
  using Shared = std::shared_ptr<const ledger::Figures>;
  using Done = std::function<void(Shared)>;

  static constexpr std::chrono::seconds kKeptMin{5};
  static constexpr std::chrono::seconds kKeptMax{60};
  static constexpr int kKeptPerCost = 20;  // kept for as many times what reading them took
  static constexpr std::chrono::seconds kFailedKept{1};
  static constexpr std::chrono::seconds kLateMax{90};

  explicit Figures(Read read);
  ~Figures();  // whoever still waits gets nothing

  // Calls `done` once: at once, or on the reading thread when they have been read. It must not block.
  void Get(Done done);

  // For who cannot wait any longer: the last ones, while a reading goes on and they are at most kLateMax old; else
  // null.
  Shared Recent();

 private:
  using Clock = std::chrono::steady_clock;
  void Loop();

  const Read read_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Done> waiting_ ABSL_GUARDED_BY(mutex_);
  Shared last_ ABSL_GUARDED_BY(mutex_);  // of the last reading; null: it failed
  Clock::time_point read_at_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point kept_until_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tally::tallyd

#endif  // TALLY_SERVER_TALLYD_FIGURES_H_
