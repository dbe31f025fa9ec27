#include "server/ops/log.h"

#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <nlohmann/json.hpp>

namespace tally::ops {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"debug", "info", "warning", "error"};

std::atomic<Severity> g_least = Severity::kInfo;
std::atomic<int> g_descriptor = STDERR_FILENO;
std::mutex g_writing;  // a line longer than the pipe takes at once must not be cut by another

void WriteWhole(int descriptor, std::string_view line) {
  const std::lock_guard lock(g_writing);
  while (!line.empty()) {
    const ssize_t written = write(descriptor, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    line.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

std::string_view NameOf(Severity severity) { return kNames[static_cast<size_t>(severity)]; }

std::optional<Severity> SeverityOf(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Severity>(i);
  }
  return std::nullopt;
}

std::string LogLine(int64_t time_us, Severity severity, std::string_view event, std::initializer_list<Field> fields) {
  const auto time = absl::FromUnixMicros(time_us);
  nlohmann::ordered_json line = {
      {"time", absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", time, absl::UTCTimeZone())},
      {"level", NameOf(severity)},
      {"event", event},
  };
  for (const auto& field : fields) {
    std::string name(field.name);
    if (line.contains(name)) name.append("_");  // the first three are not to be covered up
    std::visit([&](const auto& value) { line[name] = value; }, field.value);
  }
  // Text of errors may be in whatever encoding: what is no UTF-8 becomes U+FFFD.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void SetLogLevel(Severity least) { g_least = least; }
void SetLogDescriptor(int descriptor) { g_descriptor = descriptor; }

void Log(Severity severity, std::string_view event, std::initializer_list<Field> fields) {
  if (severity < g_least.load(std::memory_order_relaxed)) return;
  const std::string line = LogLine(absl::GetCurrentTimeNanos() / 1000, severity, event, fields) + "\n";
  WriteWhole(g_descriptor, line);
}

}  // namespace tally::ops
