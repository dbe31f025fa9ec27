// gRPC errors as the service makes them.
#pragma once

#include <cstdint>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace tally::client {

inline grpc::Status StatusWith(grpc::StatusCode code, const std::string& reason, int64_t retry_ms = -1,
                               const std::string& domain = "tallystick.dev") {
  google::rpc::Status rich;
  rich.set_code(code);
  rich.set_message("for a person");
  google::rpc::ErrorInfo info;
  info.set_domain(domain);
  info.set_reason(reason);
  rich.add_details()->PackFrom(info);
  if (retry_ms != -1) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_seconds(retry_ms / 1000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(retry_ms % 1000 * 1'000'000));
    rich.add_details()->PackFrom(retry);
  }
  return grpc::Status(code, "for a person", rich.SerializeAsString());
}

}  // namespace tally::client
