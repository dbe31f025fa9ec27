// One tools/call to an MCP server, on a session made for it and ended after it: a look-up asks seldom, and keeps
// nothing.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "gateway/config/config.h"
#include "gateway/journal/audit_log.h"
#include "gateway/upstream/exchange.h"

namespace tally::reconciler {

struct ToolCallOrder {
  std::string tool;       // the server's own name for it
  std::string arguments;  // raw object
  std::string meta = {};  // raw object, or empty
  std::map<std::string, std::string> headers = {};
  // For all of it, connecting included. A process that does not go when told takes some seconds more.
  std::chrono::milliseconds timeout{30'000};
  // Asked once the server is connected; may block. Says why nothing is to be sent; empty: go on.
  std::function<std::string()> before_sending = nullptr;
  // Asked directly before the first byte; false: nothing is written.
  gateway::Gate gate = nullptr;
  // What the audit log says of the call that this is about; method, upstream, tool, outcome and times are ours to say.
  gateway::AuditEntry about = {};
};

struct ToolCallEnd {
  std::string unsent = {};  // why certainly not one byte of the call was written; empty: some may have been
  bool modern = false;      // spoken to in the era 2026-07-28
  gateway::UpstreamAnswer answer = {};
};

// Thread-safe.
class ToolCaller {
 public:
  // What one audit line is to say of a call that was sent.
  using Outcome = std::function<std::string_view(const ToolCallEnd& end)>;

  // `name`: the upstream's, for the log. `audit` may be null, and outlives this.
  ToolCaller(std::string name, gateway::UpstreamConfig config, int64_t answer_bytes_max, gateway::AuditLog* audit);

  // Sends the call once, or not at all. Writes one audit line for every request that was sent, the call's with the word
  // that `outcome` gives.
  ToolCallEnd Call(const ToolCallOrder& order, const Outcome& outcome) const;

  const std::string& name() const { return name_; }
  const gateway::UpstreamConfig& config() const { return config_; }

 private:
  const std::string name_;
  const gateway::UpstreamConfig config_;
  const int64_t answer_bytes_max_;
  gateway::AuditLog* const audit_;
};

// The config file of a gateway, or any of its form, and one of its upstreams. Fails if the file cannot be read, has no
// such upstream, or names secrets that cannot be read.
struct NamedUpstream {
  gateway::Config file;
  std::string name;
  const gateway::UpstreamConfig& config() const { return file.upstreams.at(name); }
};
absl::StatusOr<NamedUpstream> FindUpstream(const std::string& gateway_config, const std::string& name);

}  // namespace tally::reconciler
