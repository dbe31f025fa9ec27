#ifndef TALLY_SERVER_RPC_METRICS_H_
#define TALLY_SERVER_RPC_METRICS_H_

#include <grpcpp/support/status.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <string_view>

#include "lib/decide/verdict.h"
#include "server/rpc/access.h"

namespace tally::rpc {

// Counts by method and outcome. All of them stand from the start, so that a rate of zero is a number. Thread-safe.
class Metrics {
 public:
  explicit Metrics(prometheus::Registry& registry);

  void Rpc(const Rule& rule, grpc::StatusCode code, double seconds);
  void Verdict(decide::Verdict verdict);

 private:
  static constexpr size_t kCodes = grpc::StatusCode::UNAUTHENTICATED + 1;
  struct Method {
    std::array<prometheus::Counter*, kCodes> codes{};
    prometheus::Histogram* seconds = nullptr;
  };

  std::map<std::string_view, Method> methods_;
  std::array<prometheus::Counter*, static_cast<size_t>(decide::Verdict::kClaimed) + 1> verdicts_{};
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_METRICS_H_
