#ifndef TALLY_BENCH_PLAIN_POOL_H_
#define TALLY_BENCH_PLAIN_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lib/keys/signer.h"
#include "server/lane/intake.h"
#include "server/ledger/terms_cache.h"
#include "server/ledger/transaction.h"

namespace tally::plain {

// The usual way: threads with a connection each take requests from one queue, first come, first served; each request is
// a transaction, tried again after a random pause when it loses a race.
class Pool final : public lane::Intake {
 public:
  // Told why a request could not be carried out; for the log only, since it may carry values.
  using OnFailure = std::function<void(const ledger::TxResult&)>;

  Pool(int connections, const std::string& conninfo, const keys::Signer& signer, ledger::TermsCache& terms,
       OnFailure on_failure);
  ~Pool() override;  // Drain(now)

  void Submit(std::unique_ptr<lane::Job> job) override;
  void Drain(lane::Job::Clock::time_point until) override;

 private:
  void Loop(const std::string& conninfo);
  std::unique_ptr<lane::Job> Take();
  lane::Fate Carry(ledger::Connection& connection, lane::Job& job, std::minstd_rand& random);

  const keys::Signer& signer_;
  ledger::TermsCache& terms_;
  const OnFailure on_failure_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<lane::Job>> waiting_;  // this and what follows: by mutex_
  bool closed_ = false;
  lane::Job::Clock::time_point until_;
  std::vector<std::thread> threads_;
};

}  // namespace tally::plain

#endif  // TALLY_BENCH_PLAIN_POOL_H_
