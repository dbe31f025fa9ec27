#include "server/ledger/control.h"

#include <chrono>
#include <random>
#include <thread>

#include "lib/keys/text.h"

namespace tally::ledger {
namespace {

// Each try waits a random time up to 2 ms, doubled with every loss: at most half a second in all.
void Pause(int losses) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const int64_t up_to_us = int64_t{2000} << losses;
  std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, up_to_us)(random)));
}

absl::Status Run(Connection& connection, Isolation isolation, Body body) {
  absl::Status last;
  for (int tries = 0, losses = 0, downs = 0; tries < kControlTriesMax; ++tries) {
    absl::Status refused;
    const TxResult result = InTransaction(connection, isolation, [&](Tx& tx) {
      refused = body(tx);
      if (!refused.ok()) throw Abandon{};
    });
    if (!refused.ok() && result.end == TxEnd::kError) return refused;
    last = ToStatus(result);
    if (result.end == TxEnd::kLostRace) {
      Pause(losses++);
    } else if (result.end != TxEnd::kDown || ++downs > 1) {
      // A connection that had gone stale is found out by its first use; a second failure is a server that is away.
      return last;
    }
  }
  return last;
}

}  // namespace

absl::Status ToStatus(const TxResult& result) {
  switch (result.end) {
    case TxEnd::kCommitted:
      return absl::OkStatus();
    case TxEnd::kLostRace:
      return absl::AbortedError(result.message);
    case TxEnd::kDown:
      return absl::UnavailableError(result.message);
    case TxEnd::kInDoubt:
      return absl::UnknownError(result.message);
    case TxEnd::kConstraint:
    case TxEnd::kError:
      break;
  }
  if (result.sqlstate == "57014") return absl::DeadlineExceededError("a statement took too long and was ended");
  // The database's words may quote values, so only what names the error goes on.
  return absl::InternalError(keys::Cat("SQLSTATE ", result.sqlstate.empty() ? "none" : result.sqlstate,
                                       result.constraint.empty() ? "" : ", constraint ", result.constraint));
}

absl::Status Write(Connection& connection, Body body) { return Run(connection, Isolation::kSerializable, body); }

absl::Status Read(Connection& connection, Body body) { return Run(connection, Isolation::kReadOnly, body); }

absl::Status ReadSnapshot(Connection& connection, Body body) { return Run(connection, Isolation::kSnapshot, body); }

}  // namespace tally::ledger
