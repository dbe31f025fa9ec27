#include "server/tallyd/observe.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <utility>
#include <vector>

#include "server/tallyd/figure_families.h"

namespace tally::tallyd {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct LaneFigure {
  const char* name;
  const char* help;
  MetricType type;
  uint64_t lane::Counts::*value;
};

constexpr LaneFigure kLaneFigures[] = {
    {"tally_lane_batches_total", "Batches begun", MetricType::Counter, &lane::Counts::batches},
    {"tally_lane_batch_jobs_total", "Calls in those batches", MetricType::Counter, &lane::Counts::batch_jobs},
    {"tally_lane_transactions_total", "Transactions, first tries and others", MetricType::Counter,
     &lane::Counts::transactions},
    {"tally_lane_lost_races_total", "Transactions that a rival rolled back", MetricType::Counter,
     &lane::Counts::lost_races},
    {"tally_lane_splits_total", "Batches cut in halves", MetricType::Counter, &lane::Counts::splits},
    {"tally_lane_queue_depth", "Calls that wait", MetricType::Gauge, &lane::Counts::queue_depth},
};

// Lanes keep their own counts; they are read when they are asked for.
std::vector<MetricFamily> LaneFamilies(const lane::Router& router) {
  const std::vector<lane::Counts> lanes = router.counts();
  std::vector<MetricFamily> families;
  for (const LaneFigure& figure : kLaneFigures) {
    MetricFamily& family = families.emplace_back();
    family.name = figure.name;
    family.help = figure.help;
    family.type = figure.type;
    for (size_t i = 0; i < lanes.size(); ++i) {
      ClientMetric& metric = family.metric.emplace_back();
      metric.label.push_back({"lane", std::to_string(i)});
      const auto value = static_cast<double>(lanes[i].*figure.value);
      (figure.type == MetricType::Gauge ? metric.gauge.value : metric.counter.value) = value;
    }
  }
  return families;
}

ops::HttpAnswer MetricsText(prometheus::Registry& registry, const lane::Router& router,
                            const ledger::Figures* figures) {
  std::vector<MetricFamily> families = registry.Collect();
  for (MetricFamily& family : LaneFamilies(router)) families.push_back(std::move(family));
  for (MetricFamily& family : FigureFamilies(figures)) families.push_back(std::move(family));
  return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus::TextSerializer().Serialize(families)};
}

// A scraper gives up after 10 seconds as a rule, and must get the other metrics all the same.
constexpr std::chrono::seconds kFiguresPatience{4};

}  // namespace

absl::StatusOr<std::unique_ptr<ops::HttpServer>> Observe(const std::string& address, prometheus::Registry& registry,
                                                         const lane::Router& router, Figures& figures,
                                                         std::function<bool()> healthy, ops::HttpServer::Posts posts) {
  ops::HttpServer::Slow slow;
  slow["/metrics"] = {
      .handler =
          [&registry, &router, &figures](const ops::HttpServer::Answer& answer) {
            figures.Get([&registry, &router, answer](const Figures::Shared& read) {
              answer(MetricsText(registry, router, read.get()));
            });
          },
      .patience = kFiguresPatience,
      .too_late = [&registry, &router, &figures] { return MetricsText(registry, router, figures.Recent().get()); }};
  ops::HttpServer::Handlers handlers;
  handlers["/healthz"] = [healthy = std::move(healthy)] {
    if (healthy()) return ops::HttpAnswer{200, "application/json", "{\"status\":\"ok\"}\n"};
    return ops::HttpAnswer{503, "application/json",
                           "{\"status\":\"unavailable\",\"reason\":\"database unreachable\"}\n"};
  };
  return ops::HttpServer::Start(address, std::move(handlers), std::move(posts), std::move(slow));
}

}  // namespace tally::tallyd
