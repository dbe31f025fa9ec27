// Whether tools still look as they did when they were first seen or accepted.
//
// All on the loop; the file is read and written by a thread of its own. Destroy it after the loop has stopped and
// before its io_context.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "gateway/config/config.h"
#include "gateway/journal/audit_log.h"
#include "gateway/pins/pin_file.h"
#include "gateway/pins/shape.h"

namespace tally::gateway {

namespace asio = boost::asio;

inline constexpr size_t kPinsOfUpstreamMax = 10'000;

class PinKeeper {
 public:
  // Fails where the file cannot be read, or is damaged.
  static absl::StatusOr<std::unique_ptr<PinKeeper>> Open(const std::string& path, AuditLog* audit);
  ~PinKeeper();
  PinKeeper(const PinKeeper&) = delete;

  // Tools that were never seen are pinned as they look now; OK means that this is on disk. Of those that differ each
  // look is reported once, in log and audit log. To be called with every list that an upstream gave.
  asio::awaitable<absl::Status> See(std::string upstream, Pin pin, std::shared_ptr<const SeenTools> seen);
  // Whether a tool is there and looks as it is pinned; looks for an acceptance meanwhile before it says no.
  asio::awaitable<bool> Accepts(std::string upstream, std::string tool, std::shared_ptr<const SeenTools> seen);
  // Looks whether the file was changed by someone else.
  asio::awaitable<void> Refresh();

 private:
  PinKeeper(std::string path, AuditLog* audit);

  bool Matches(const std::string& upstream, const std::string& tool, const SeenTools& seen) const;
  void Report(const std::string& upstream, Pin pin, const SeenTools& seen);

  const PinFile file_;
  AuditLog* const audit_;
  PinTable table_;
  uint64_t version_ = 0;
  std::set<std::string> reported_;
  asio::thread_pool disk_{1};
};

}  // namespace tally::gateway
