#include "gateway/journal/audit_log.h"

#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lib/keys/encoding.h"
#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using keys::Cat;

constexpr std::chrono::milliseconds kIdle{60'000};
constexpr std::chrono::milliseconds kRetry{1'000};
constexpr std::chrono::milliseconds kSync{1'000};

std::string TimeText(int64_t time_us) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(time_us), absl::UTCTimeZone());
}

std::string LineOf(const nlohmann::ordered_json& line) {
  // A name that is no UTF-8 must not cost the line.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string LostLine(int64_t count) {
  return LineOf({{"time", TimeText(absl::GetCurrentTimeNanos() / 1000)}, {"lost", count}});
}

int OpenAppending(const std::string& path) {
  return open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

}  // namespace

std::string AuditLine(const AuditEntry& entry) {
  nlohmann::ordered_json line;
  line["time"] = TimeText(entry.time_us != 0 ? entry.time_us : absl::GetCurrentTimeNanos() / 1000);
  const auto text = [&](const char* name, std::string_view value) {
    if (!value.empty()) line[name] = value;
  };
  text("method", entry.method);
  text("upstream", entry.upstream);
  text("tool", entry.tool);
  text("permit_id", entry.permit_id);
  text("call_id", entry.call_id);
  text("attempt_id", keys::HexEncode(entry.attempt_id));
  if (entry.attempt > 0) line["attempt"] = entry.attempt;
  if (entry.send > 0) line["send"] = entry.send;
  text("outcome", entry.outcome);
  line["latency_ms"] = static_cast<double>(entry.latency_us) / 1000;
  return LineOf(line);
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(AuditOptions options) {
  std::unique_ptr<AuditLog> log(new AuditLog(std::move(options)));
  if (!log->OpenFile()) {
    return absl::UnavailableError(Cat("cannot open the audit log ", log->options_.path, ": ", std::strerror(errno)));
  }
  log->thread_ = std::thread([&log = *log] { log.Run(); });
  return log;
}

AuditLog::AuditLog(AuditOptions options) : options_(std::move(options)) {}

AuditLog::~AuditLog() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
  if (file_ >= 0) close(file_);
}

bool AuditLog::Write(const AuditEntry& entry) {
  std::string line = AuditLine(entry) + '\n';
  const size_t pending = pending_count_;
  if (queue_.Push(line, options_.queue_max - std::min(options_.queue_max, pending))) return true;
  ++lost_;
  healthy_ = false;
  return false;
}

void AuditLog::Reopen() {
  reopen_ = true;
  queue_.Wake();
}

void AuditLog::Run() {
  bool ended = false;
  while (!ended) {
    std::vector<std::string> lines = queue_.Take(pending_.empty() && lost_ == 0 && unsynced_ == 0 ? kIdle : kRetry);
    ended = queue_.Ended();
    std::move(lines.begin(), lines.end(), std::back_inserter(pending_));
    pending_count_ = pending_.size();
    const bool written = WriteLines();
    pending_count_ = pending_.size();
    SyncWhenDue();
    // A line that was lost meanwhile is said in the next round.
    healthy_ = written && lost_ == 0;
  }
  Sync();
}

void AuditLog::SyncWhenDue() {
  if (unsynced_ > 0 && std::chrono::steady_clock::now() - synced_at_ >= kSync) Sync();
}

void AuditLog::Sync() {
  // What the system took and could not keep is known only here, and only once.
  if (file_ >= 0 && fdatasync(file_) != 0) lost_ += unsynced_;
  unsynced_ = 0;
  synced_at_ = std::chrono::steady_clock::now();
}

bool AuditLog::WriteLines() {
  struct stat about {};
  // A file that was removed would take all lines with it.
  const bool removed = file_ >= 0 && fstat(file_, &about) == 0 && about.st_nlink == 0;
  if ((reopen_.exchange(false) || removed) && file_ >= 0) {
    Sync();
    close(file_);
    file_ = -1;
  }
  if (file_ < 0 && !OpenFile()) return false;
  for (; !pending_.empty(); pending_.pop_front()) {
    if (!WriteLine(pending_.front())) return false;
  }
  if (const int64_t lost = lost_; lost > 0) {
    if (!WriteLine(LostLine(lost) + '\n')) return false;
    lost_ -= lost;
  }
  return true;
}

bool AuditLog::WriteLine(const std::string& line) {
  if (size_ > 0 && size_ + static_cast<int64_t>(line.size()) > options_.file_bytes_max && !Rotate()) return false;
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t put = write(file_, line.data() + done, line.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      // Half a line would be taken for one. Where it cannot be taken back, OpenFile ends it.
      if (done > 0 && ftruncate(file_, size_) != 0) {
        close(file_);
        file_ = -1;
      }
      return false;
    }
    done += static_cast<size_t>(put);
  }
  size_ += static_cast<int64_t>(line.size());
  ++unsynced_;
  return true;
}

bool AuditLog::OpenFile() {
  file_ = OpenAppending(options_.path);
  if (file_ < 0) return false;
  struct stat about {};
  if (fstat(file_, &about) != 0) return false;
  size_ = about.st_size;
  // A crash may have left half a line. It stays, and ends here.
  char last = '\n';
  if (size_ > 0 && pread(file_, &last, 1, size_ - 1) == 1 && last != '\n' && write(file_, "\n", 1) == 1) ++size_;
  return true;
}

// A crash in between leaves a gap in the numbers, and no line lost.
bool AuditLog::Rotate() {
  const auto name = [this](int number) { return Cat(options_.path, ".", number); };
  for (int number = options_.files_max - 1; number >= 1; --number) {
    if (std::rename(name(number).c_str(), name(number + 1).c_str()) != 0 && errno != ENOENT) return false;
  }
  if (std::rename(options_.path.c_str(), name(1).c_str()) != 0 && errno != ENOENT) return false;
  Sync();
  close(file_);
  file_ = -1;
  return OpenFile();
}

}  // namespace tally::gateway
