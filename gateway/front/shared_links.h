// The upstreams that are declared `shared`: one link each, for all clients, made when it is first needed.
#pragma once

#include <map>
#include <string>

#include "gateway/front/link.h"
#include "gateway/journal/audit_log.h"

namespace tally::gateway {

// Told of protocol reads: one audit line each. `permit_id` is empty where they are nobody's own.
decltype(ReadPolicy::over) AuditOfReads(AuditLog* audit, std::string upstream, std::string permit_id);

class SharedLinks {
 public:
  SharedLinks(asio::any_io_executor loop, const Config& config, AuditLog* audit, PinKeeper* pins)
      : loop_(std::move(loop)), config_(config), audit_(audit), pins_(pins) {}
  SharedLinks(const SharedLinks&) = delete;

  // An upstream of the configuration that is declared `shared`.
  SharedLink Get(const std::string& name);
  void CloseAll();

 private:
  const asio::any_io_executor loop_;
  const Config& config_;
  AuditLog* const audit_;
  PinKeeper* const pins_;
  std::map<std::string, SharedLink> links_;
};

}  // namespace tally::gateway
