// The journal on disk, for one thread: records of attempts, appended; the last one of each attempt counts.
//
// What a caller may rely on:
//  * What Append with Durability::kSynced returned OK for is found by the next Open, whatever kills process or machine.
//    With kWritten, whatever kills the process.
//  * What Append failed for is not in the file (short of a disk that fails even to shorten it: then nothing is taken
//    any more), so a failed append of "sending" is a call that is not sent.
//  * Only one journal at a time has the file, over all processes.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gateway/journal/record.h"

namespace tally::gateway {

enum class Durability { kWritten, kSynced };

class JournalFile {
 public:
  struct Limits {
    int64_t bytes_max = int64_t{256} << 20;
    int64_t compact_bytes_min = 32 << 20;  // below this size it is not compacted, unless it is at its limit
  };

  // What Open found.
  struct Found {
    std::vector<Record> open;  // of each attempt that was not delivered its last record
    int64_t torn = 0;          // bytes cut off the end
    int64_t damaged = 0;       // bytes that were no records; a copy of the file is at `damaged_copy` then
    std::string damaged_copy;
  };

  // Creates the file, mode 0600, or reads it. Unavailable: another process has it. FailedPrecondition: it is no
  // journal, or others than its owner can read it. `found` may be null.
  static absl::StatusOr<std::unique_ptr<JournalFile>> Open(const std::string& path, Limits limits, Found* found);
  ~JournalFile();
  JournalFile(const JournalFile&) = delete;

  // All of them or none. ResourceExhausted: the file is at its limit, which holds for attempts that have no outcome
  // yet; Unavailable: the disk. Compacts when most of the file is about attempts that are done with.
  absl::Status Append(const std::vector<Record>& records, Durability durability);

  int64_t bytes() const { return size_; }
  size_t open_attempts() const { return open_.size(); }

 private:
  struct Place {
    int64_t offset = 0;
    int64_t size = 0;
  };

  JournalFile(std::string path, Limits limits, int lock)
      : path_(std::move(path)), limits_(limits), lock_(lock), compact_at_(limits.compact_bytes_min) {}

  absl::Status Read(Found& found);
  // Whether `bytes` more may be added for attempts that have no outcome yet.
  absl::Status CheckRoom(int64_t bytes);
  absl::Status Write(std::string_view bytes, Durability durability);
  void Index(const Record& record, Place place);
  // Copies what is open into a new file, which then takes the old one's name.
  absl::Status Rewrite();
  absl::Status Broken(std::string_view what, int error);

  const std::string path_;
  const Limits limits_;
  const int lock_;  // the lock file's descriptor: held as long as this lives
  int file_ = -1;
  int64_t size_ = 0;
  int64_t open_bytes_ = 0;  // of the records in open_
  int64_t compact_at_;
  std::map<std::string, Place> open_;  // by attempt id
  absl::Status broken_;                // not OK: takes nothing any more
};

}  // namespace tally::gateway
