#include "server/rpc/metrics.h"

#include <string>

namespace tally::rpc {
namespace {

constexpr std::array<const char*, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

const prometheus::Histogram::BucketBoundaries kSeconds = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                                          0.1,    0.2,   0.5,   1,     2,    5,    10};

}  // namespace

Metrics::Metrics(prometheus::Registry& registry) {
  auto& rpcs = prometheus::BuildCounter().Name("tally_rpc_total").Help("RPCs finished").Register(registry);
  auto& seconds =
      prometheus::BuildHistogram().Name("tally_rpc_seconds").Help("Time from request to answer").Register(registry);
  for (const Rule& rule : Rules()) {
    const std::string name(rule.method);
    Method& method = methods_[rule.method];
    for (size_t code = 0; code < kCodes; ++code) {
      method.codes[code] = &rpcs.Add({{"method", name}, {"code", kCodeNames[code]}});
    }
    method.seconds = &seconds.Add({{"method", name}}, kSeconds);
  }
  auto& verdicts =
      prometheus::BuildCounter().Name("tally_verdicts_total").Help("Decisions by outcome").Register(registry);
  for (size_t i = 0; i < verdicts_.size(); ++i) {
    const decide::VerdictInfo& info = decide::Info(static_cast<decide::Verdict>(i));
    const std::string code(info.code.empty() ? "NONE" : info.code);
    // A code may stand for more than one verdict, where the disposition tells them apart, or nothing has to.
    verdicts_[i] = &verdicts.Add({{"disposition", v1::Disposition_Name(info.disposition)}, {"code", code}});
  }
}

void Metrics::Rpc(const Rule& rule, grpc::StatusCode code, double seconds) {
  const Method& method = methods_.at(rule.method);
  if (static_cast<size_t>(code) < kCodes) method.codes[code]->Increment();
  method.seconds->Observe(seconds);
}

void Metrics::Verdict(decide::Verdict verdict) { verdicts_[static_cast<size_t>(verdict)]->Increment(); }

}  // namespace tally::rpc
