// What /metrics shows of this process. The numbers of the business (calls parked, how they ended) are tallyd's, from
// the database.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string_view>

#include "tally/v1/parked.pb.h"

namespace tally::reconciler {

std::string_view NameOf(v1::Finding finding);

// Thread-safe.
class Metrics {
 public:
  Metrics();

  void LookUp(std::string_view provider, std::string_view kind, v1::Finding finding, double seconds);
  void Resolved(std::string_view verdict);
  // tallyd said that the call, or its claim, is another's by now: normal among replicas and people.
  void LostRace(std::string_view rpc);
  void TallydFailed(std::string_view rpc);
  void Listed(double unix_seconds);
  void Load(size_t waiting, size_t in_hand);

  prometheus::Registry& registry() { return registry_; }

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& look_ups_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Counter>& resolutions_;
  prometheus::Family<prometheus::Counter>& lost_races_;
  prometheus::Family<prometheus::Counter>& failures_;
  prometheus::Gauge& listed_;
  prometheus::Gauge& waiting_;
  prometheus::Gauge& in_hand_;
};

}  // namespace tally::reconciler
