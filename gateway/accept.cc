#include "gateway/accept.h"

#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <iostream>
#include <memory>

#include "gateway/front/link.h"
#include "gateway/mcp/names.h"
#include "gateway/pins/pin_file.h"
#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using keys::Cat;

constexpr int kFailed = 1;
constexpr int kUsage = 2;

int Failed(const std::string& why, int code = kFailed) {
  std::cerr << "tally-gateway: " << why << " Nothing was accepted.\n";
  return code;
}

absl::StatusOr<SeenTools> ToolsOf(const Config& config, const std::string& upstream) {
  asio::io_context io(1);
  const auto link = std::make_shared<Link>(io.get_executor(), upstream, config.upstreams.at(upstream),
                                           config.limits.answer_bytes_max, std::string("{}"));
  absl::StatusOr<SeenTools> seen = absl::UnavailableError("");
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        const auto tools = co_await link->List(ListKind::kTools);
        seen = tools.ok() ? absl::StatusOr<SeenTools>(SeenIn(upstream, **tools)) : tools.status();
        link->Close();
      },
      asio::detached);
  io.run();
  return seen;
}

// One line a tool.
std::string PinOne(const std::string& name, const ToolShape& shape, std::map<std::string, PinnedTool>& pinned,
                   const std::string& joined, bool& changed) {
  const auto known = pinned.find(name);
  if (known != pinned.end() && known->second.shape == shape) return Cat(joined, ": as it was; nothing to accept\n");
  const std::string what =
      known == pinned.end() ? "new" : Cat("changed: ", absl::StrJoin(Differences(known->second.shape, shape), ", "));
  pinned[name] = {shape, absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()), true};
  changed = true;
  return Cat(joined, ": ", what, "; accepted\n");
}

}  // namespace

int Accept(const Config& config, const std::string& upstream, const std::string& tool) {
  if (!config.upstreams.contains(upstream)) return Failed("The configuration has no such upstream.", kUsage);
  if (config.upstreams.at(upstream).pin == Pin::kOff) {
    return Failed(Cat("upstreams.", upstream, ".pin is \"off\": its tools are not pinned."), kUsage);
  }
  const auto seen = ToolsOf(config, upstream);
  if (!seen.ok()) return Failed(Cat(upstream, " cannot be had: ", seen.status().message(), "."));
  std::string only = tool;
  const std::string begin = Cat(upstream, mcp::kNameSeparator);
  if (!only.empty() && !seen->contains(only) && only.starts_with(begin)) only = only.substr(begin.size());
  if (!only.empty() && !seen->contains(only)) return Failed(Cat(upstream, " has no such tool."));
  for (auto one = seen->begin(); one != seen->end(); ++one) {
    const auto next = std::next(one);
    if (next == seen->end() || next->first != one->first || next->second == one->second) continue;
    if (only.empty() || only == one->first) {
      return Failed(Cat(upstream, " lists ", one->first, " twice, and not alike: there is no telling which is meant."));
    }
  }
  std::string said;
  const auto written = PinFile(config.pin_file).Change([&](PinTable& table) {
    auto& pinned = table[upstream];
    bool changed = false;
    for (const auto& [name, shape] : *seen) {
      if (only.empty() || only == name) said += PinOne(name, shape, pinned, begin + name, changed);
    }
    for (auto pin = pinned.begin(); only.empty() && pin != pinned.end();) {
      const bool there = seen->contains(pin->first);
      if (!there) said += Cat(begin, pin->first, ": no longer there; its pin is gone\n");
      changed = changed || !there;
      pin = there ? std::next(pin) : pinned.erase(pin);
    }
    return changed;
  });
  if (!written.ok()) return Failed(std::string(written.status().message()));
  std::cout << (said.empty() ? Cat(upstream, " has no tools\n") : said);
  return 0;
}

}  // namespace tally::gateway
