#include "reconciler/engine/metrics.h"

#include <string>

namespace tally::reconciler {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

const prometheus::Histogram::BucketBoundaries kSeconds = {0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};

prometheus::Gauge& AGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

std::string_view NameOf(v1::Finding finding) {
  switch (finding) {
    case v1::FINDING_HAPPENED:
      return "happened";
    case v1::FINDING_NOT_HAPPENED:
      return "not_happened";
    case v1::FINDING_ABSENT:
      return "absent";
    case v1::FINDING_PENDING:
      return "pending";
    default:
      return "unclear";
  }
}

Metrics::Metrics()
    : look_ups_(BuildCounter()
                    .Name("tally_reconciler_look_ups_total")
                    .Help("Questions asked, by what they found")
                    .Register(registry_)),
      seconds_(BuildHistogram()
                   .Name("tally_reconciler_look_up_seconds")
                   .Help("How long a question took")
                   .Register(registry_)),
      resolutions_(BuildCounter()
                       .Name("tally_reconciler_resolutions_total")
                       .Help("Verdicts that tallyd recorded; cannot_tell calls a person")
                       .Register(registry_)),
      lost_races_(BuildCounter()
                      .Name("tally_reconciler_lost_races_total")
                      .Help("What came to nothing because the call was another's by then")
                      .Register(registry_)),
      failures_(BuildCounter()
                    .Name("tally_reconciler_tallyd_failures_total")
                    .Help("Questions to tallyd that failed, after their retries")
                    .Register(registry_)),
      listed_(
          AGauge(registry_, "tally_reconciler_last_list_timestamp_seconds", "When tallyd last said what is parked")),
      waiting_(
          AGauge(registry_, "tally_reconciler_calls_waiting", "Calls that wait for a worker or for their provider")),
      in_hand_(AGauge(registry_, "tally_reconciler_calls_in_hand", "Calls that are worked on")) {}

void Metrics::LookUp(std::string_view provider, std::string_view kind, v1::Finding finding, double seconds) {
  look_ups_
      .Add(
          {{"provider", std::string(provider)}, {"kind", std::string(kind)}, {"finding", std::string(NameOf(finding))}})
      .Increment();
  seconds_.Add({{"provider", std::string(provider)}}, kSeconds).Observe(seconds);
}

void Metrics::Resolved(std::string_view verdict) { resolutions_.Add({{"verdict", std::string(verdict)}}).Increment(); }
void Metrics::LostRace(std::string_view rpc) { lost_races_.Add({{"rpc", std::string(rpc)}}).Increment(); }
void Metrics::TallydFailed(std::string_view rpc) { failures_.Add({{"rpc", std::string(rpc)}}).Increment(); }
void Metrics::Listed(double unix_seconds) { listed_.Set(unix_seconds); }

void Metrics::Load(size_t waiting, size_t in_hand) {
  waiting_.Set(static_cast<double>(waiting));
  in_hand_.Set(static_cast<double>(in_hand));
}

}  // namespace tally::reconciler
