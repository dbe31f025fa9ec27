#include "gateway/pins/keeper.h"

#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "server/ops/log.h"

namespace tally::gateway {
namespace {

constexpr size_t kReportedMax = 10'000;

// What is not in the table yet; the first look counts, should a name be listed twice.
bool AddUnknown(const std::string& upstream, const SeenTools& seen, PinTable& table) {
  auto& pinned = table[upstream];
  bool added = false;
  for (const auto& [tool, shape] : seen) {
    if (pinned.contains(tool) || pinned.size() >= kPinsOfUpstreamMax) continue;
    pinned[tool] = {shape, absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()), false};
    added = true;
  }
  return added;
}

bool HasUnknown(const std::string& upstream, const SeenTools& seen, const PinTable& table) {
  const auto pinned = table.find(upstream);
  if (pinned == table.end()) return !seen.empty();
  return pinned->second.size() < kPinsOfUpstreamMax &&
         std::any_of(seen.begin(), seen.end(), [&](const auto& tool) { return !pinned->second.contains(tool.first); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<PinKeeper>> PinKeeper::Open(const std::string& path, AuditLog* audit) {
  std::unique_ptr<PinKeeper> keeper(new PinKeeper(path, audit));
  keeper->version_ = keeper->file_.Version();
  auto table = keeper->file_.Read();
  if (!table.ok()) return table.status();
  keeper->table_ = *std::move(table);
  return keeper;
}

PinKeeper::PinKeeper(std::string path, AuditLog* audit) : file_(std::move(path)), audit_(audit) {}
PinKeeper::~PinKeeper() { disk_.join(); }

asio::awaitable<absl::Status> PinKeeper::See(std::string upstream, Pin pin, std::shared_ptr<const SeenTools> seen) {
  if (HasUnknown(upstream, *seen, table_)) {
    using Changed = absl::StatusOr<PinTable>;
    auto add = [this, upstream, seen]() -> asio::awaitable<Changed> {
      co_return file_.Change([&](PinTable& table) { return AddUnknown(upstream, *seen, table); });
    };
    Changed changed = co_await asio::co_spawn(disk_, add, asio::use_awaitable);
    if (!changed.ok()) {
      ops::LogError("pins_not_written", {{"upstream", upstream}, {"why", std::string(changed.status().message())}});
      co_return changed.status();
    }
    table_ = *std::move(changed);
  }
  Report(upstream, pin, *seen);
  co_return absl::OkStatus();
}

asio::awaitable<bool> PinKeeper::Accepts(std::string upstream, std::string tool,
                                         std::shared_ptr<const SeenTools> seen) {
  if (Matches(upstream, tool, *seen)) co_return true;
  co_await Refresh();
  co_return Matches(upstream, tool, *seen);
}

asio::awaitable<void> PinKeeper::Refresh() {
  using Found = std::pair<uint64_t, absl::StatusOr<PinTable>>;
  auto look = [this, known = version_]() -> asio::awaitable<Found> {
    const uint64_t version = file_.Version();
    Found found(version, absl::UnavailableError(""));
    // Nothing new; and a file that is gone takes no acceptance back.
    if (version != known && version != 0) found.second = file_.Read();
    co_return found;
  };
  Found found = co_await asio::co_spawn(disk_, look, asio::use_awaitable);
  if (found.second.ok()) {
    table_ = *std::move(found.second);
  } else if (!found.second.status().message().empty()) {
    // What was read before holds.
    ops::LogError("pins_not_read", {{"why", std::string(found.second.status().message())}});
  } else {
    co_return;
  }
  version_ = found.first;
}

bool PinKeeper::Matches(const std::string& upstream, const std::string& tool, const SeenTools& seen) const {
  const auto pinned = table_.find(upstream);
  if (pinned == table_.end()) return false;
  const auto pin = pinned->second.find(tool);
  const auto [begin, end] = seen.equal_range(tool);
  return pin != pinned->second.end() && begin != end &&
         std::all_of(begin, end, [&](const auto& look) { return look.second == pin->second.shape; });
}

void PinKeeper::Report(const std::string& upstream, Pin pin, const SeenTools& seen) {
  const auto& pinned = table_[upstream];
  for (const auto& [tool, shape] : seen) {
    const auto known = pinned.find(tool);
    if (known != pinned.end() && known->second.shape == shape) continue;
    const std::string changed = known == pinned.end() ? "more tools than are pinned"
                                                      : absl::StrJoin(Differences(known->second.shape, shape), ",");
    std::string look = upstream + "/" + tool + "/" + changed;
    for (const auto& [member, hash] : shape) look += "/" + hash;
    if (reported_.size() >= kReportedMax) reported_.clear();
    if (!reported_.insert(std::move(look)).second) continue;
    ops::LogWarning("tool_changed", {{"upstream", upstream},
                                     {"tool", tool},
                                     {"changed", changed},
                                     {"refused", pin == Pin::kStrict},
                                     {"advice", "tally-gateway check shows it, tally-gateway accept accepts it"}});
    AuditEntry entry;
    entry.method = "tools/list";
    entry.upstream = upstream;
    entry.tool = tool;
    entry.outcome = pin == Pin::kStrict ? "tool_changed_refused" : "tool_changed";
    audit_->Write(entry);
  }
}

}  // namespace tally::gateway
