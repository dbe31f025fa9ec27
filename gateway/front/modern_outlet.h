// What the era 2026-07-28 has in every answer, added on its way to the client.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gateway/front/outlet.h"
#include "gateway/mcp/message.h"

namespace tally::gateway {

class ModernOutlet final : public Outlet {
 public:
  // `status`: told of the HTTP status where the answer's is not 200; may be null.
  ModernOutlet(SharedOutlet to, const mcp::Message& request, std::function<void(int status)> status = nullptr);

  void Send(std::string message) override;
  void Finish(std::string message, std::function<void()> undelivered) override;
  void End() override { to_->End(); }
  bool read() const override { return to_->read(); }

 private:
  std::string Completed(const std::string& message) const;

  const SharedOutlet to_;
  const std::string method_;
  const bool wants_log_;
  const std::function<void(int status)> status_;
};

// Methods of this era whose answers may be kept for a while by whoever asked, and by nobody else: they are filtered by
// a permit.
bool IsCacheable(std::string_view method);

}  // namespace tally::gateway
