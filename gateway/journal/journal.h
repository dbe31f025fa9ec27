// What the gateway must not forget about the attempts it was granted, and a crash at each point means:
//
//   Authorize asked, nothing here     the process is gone, so nothing is sent. The lease ends, and the call is parked;
//                                     a commit would need the permit token, which is a secret and is not stored
//   `granted`, no `sending`           NOT_SENT is certain: `sending` is on disk before the first byte is written
//   `sending`, no outcome             UNCERTAIN: a byte may have been written
//   outcome, not `delivered`          commit it; tallyd takes the same commit twice
//   `delivered`                       done with
//
// Where the file was damaged (not merely cut short), a `sending` may be what was lost: then `granted` is UNCERTAIN,
// too.
//
// All writing is done by a thread of its own; all results come on the loop. Destroy it after the loop has stopped and
// before its io_context: what was handed over is still written then.
#pragma once

#include <absl/functional/any_invocable.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/journal/batch_queue.h"
#include "gateway/journal/journal_file.h"
#include "tally/v1/calls.pb.h"

namespace tally::gateway {

struct JournalOptions {
  std::string path;
  int64_t bytes_max = 256 << 20;
  int64_t compact_bytes_min = 32 << 20;
  // `sending` that wait for the disk; one more is refused.
  size_t queue_max = 4096;
};

// What the process before did not bring to its end.
struct Leftover {
  v1::CommitRequest commit;  // complete
  // Not sooner than this after the start: until then the grant could still be used, by whoever has it.
  std::chrono::milliseconds wait{0};
};

class Journal {
 public:
  // Unavailable: another gateway has the file. See JournalFile::Open.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(JournalOptions options, boost::asio::any_io_executor loop);
  ~Journal();
  Journal(const Journal&) = delete;

  // To be committed, each until tallyd has answered, and then Delivered.
  std::vector<Leftover> TakeLeftovers();
  // What Open did to the file, to be logged; empty where there is nothing to say.
  const std::string& notice() const { return notice_; }

  // DISPATCH came. Need not be waited for: its loss costs a parked call, nothing more.
  void Granted(const std::string& call_id, const std::string& attempt_id, int64_t send_within_ms);

  // OK: it is on disk, and the first byte may be written, if the send window still allows. Anything else: do not send.
  // `sent_at_us`: microseconds since 1970.
  boost::asio::awaitable<absl::Status> Sending(std::string call_id, std::string attempt_id, int64_t sent_at_us);

  // OK: it is on disk. Anything else: it is not, and should be committed all the same; the lease covers the rest.
  // A later one for the same attempt (a late answer, undelivered) takes the place of the one before.
  boost::asio::awaitable<absl::Status> Outcome(v1::CommitRequest commit);

  // tallyd has answered the commit, with whatever answer is final. Need not be waited for: where it is lost, the commit
  // is said again.
  void Delivered(const std::string& attempt_id);

  // False after a write failed, until one succeeds.
  bool healthy() const { return healthy_; }

 private:
  using Done = absl::AnyInvocable<void(absl::Status)>;
  struct Item {
    Record record;
    Done done;  // empty: nobody waits
  };

  Journal(JournalOptions options, boost::asio::any_io_executor loop, std::unique_ptr<JournalFile> file,
          JournalFile::Found found);

  void Add(Record record, Done done);
  boost::asio::awaitable<absl::Status> AddAndWait(Record record);
  void Write(std::vector<Item> items);  // on the thread
  void WriteAll();

  const JournalOptions options_;
  const boost::asio::any_io_executor loop_;
  std::string notice_;
  std::vector<Leftover> leftovers_;
  std::atomic<bool> healthy_{true};
  std::unique_ptr<JournalFile> file_;  // the thread's
  BatchQueue<Item> queue_;
  std::thread thread_;
};

}  // namespace tally::gateway
