#include "gateway/front/shared_links.h"

#include <utility>

namespace tally::gateway {

decltype(ReadPolicy::over) AuditOfReads(AuditLog* audit, std::string upstream, std::string permit_id) {
  return [audit, upstream = std::move(upstream), permit_id = std::move(permit_id)](
             std::string_view method, const SharedExchange& exchange, std::chrono::microseconds took) {
    using How = mcp::Reply::How;
    AuditEntry entry;
    entry.time_us = exchange ? exchange->sent_at_us() : 0;
    entry.method = std::string(method);
    entry.upstream = upstream;
    entry.permit_id = permit_id;
    entry.send = 1;
    entry.outcome = exchange == nullptr                      ? "sent"
                    : exchange->answer().how == How::kResult ? "answered"
                    : exchange->written()                    ? "failed"
                                                             : "not_sent";
    entry.latency_us = took.count();
    audit->Write(entry);
  };
}

SharedLink SharedLinks::Get(const std::string& name) {
  SharedLink& link = links_[name];
  if (!link) {
    // No capabilities: nothing that a client could be asked.
    link = std::make_shared<Link>(loop_, name, config_.upstreams.at(name), config_.limits.answer_bytes_max,
                                  std::string("{}"));
    link->SetPins(pins_);
    link->SetAudit(AuditOfReads(audit_, name, ""));
  }
  return link;
}

void SharedLinks::CloseAll() {
  for (const auto& [name, link] : links_) link->Close();
  links_.clear();
}

}  // namespace tally::gateway
