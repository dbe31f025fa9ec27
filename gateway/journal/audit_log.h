// One JSON line for every request that is sent to an upstream, internal ones too:
//
//   {"time":"2026-11-30T09:41:00.123456Z","method":"tools/call","upstream":"files","tool":"write_file","permit_id":"…",
//    "call_id":"…","attempt_id":"…","attempt":1,"send":1,"outcome":"succeeded","latency_ms":12.345}
//
// Members that do not apply are left out. There are no arguments, results, keys or tokens in it, and no text that an
// agent or an upstream wrote, but the tool's name.
//
// Writing never blocks: lines wait in a bounded queue for a thread of their own, which rotates the file by size and
// syncs it once a second. Where the disk fails, lines are kept and tried again each second; `healthy` is false until
// all are written. Lines that found the queue full, or that the disk took and then failed to keep, are counted, and the
// file says how many there were as soon as it can: {"time":…,"lost":17}.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "gateway/journal/batch_queue.h"

namespace tally::gateway {

struct AuditOptions {
  std::string path;
  int64_t file_bytes_max = 64 << 20;
  int files_max = 10;  // PATH.1 to PATH.N
  size_t queue_max = 100'000;
};

struct AuditEntry {
  int64_t time_us = 0;      // microseconds since 1970, when it was sent; 0: now
  std::string method = {};  // tools/call, tools/list, initialize, …
  std::string upstream = {};
  std::string tool = {};
  std::string permit_id = {};
  std::string call_id = {};
  std::string attempt_id = {};    // 16 bytes
  int attempt = 0;                // of the call
  int send = 0;                   // of the attempt, from 1
  std::string_view outcome = {};  // a word of the program's own: succeeded, tool_error, uncertain, not_sent, failed, …
  int64_t latency_us = 0;
};

// The line, without its end.
std::string AuditLine(const AuditEntry& entry);

class AuditLog {
 public:
  // The file is made with mode 0600, or added to.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(AuditOptions options);
  ~AuditLog();  // writes what is queued, if the disk takes it at once
  AuditLog(const AuditLog&) = delete;

  // From any thread; never waits. False: the queue is full, and the line is lost.
  bool Write(const AuditEntry& entry);

  // False: lines are not getting to the disk, or were lost since they last did. Calls must fail then, unless the
  // operator wants it otherwise.
  bool healthy() const { return healthy_; }

  // Opens the path anew, where whatever rotates logs has moved the file away. From any thread.
  void Reopen();

 private:
  explicit AuditLog(AuditOptions options);

  void Run();
  bool WriteLines();  // what is pending; false: the disk does not take it
  bool WriteLine(const std::string& line);
  bool OpenFile();
  bool Rotate();
  void SyncWhenDue();
  void Sync();

  const AuditOptions options_;
  std::atomic<bool> healthy_{true};
  std::atomic<bool> reopen_{false};
  std::atomic<int64_t> lost_{0};
  std::atomic<size_t> pending_count_{0};
  BatchQueue<std::string> queue_;
  // The thread's:
  int file_ = -1;
  int64_t size_ = 0;
  std::deque<std::string> pending_;
  int64_t unsynced_ = 0;  // lines
  std::chrono::steady_clock::time_point synced_at_{};
  std::thread thread_;
};

}  // namespace tally::gateway
