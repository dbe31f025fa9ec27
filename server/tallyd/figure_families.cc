#include "server/tallyd/figure_families.h"

#include <initializer_list>
#include <string>
#include <utility>

namespace tally::tallyd {
namespace {

using ledger::TenantFigures;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

double Seconds(int64_t ms) { return static_cast<double>(ms) / 1000; }

class Family {
 public:
  Family(std::vector<MetricFamily>& families, MetricType type, const char* name, const char* help)
      : family_(families.emplace_back()) {
    family_.type = type;
    family_.name = name;
    family_.help = help;
  }

  void Add(double value, std::initializer_list<ClientMetric::Label> labels = {}) {
    ClientMetric& metric = family_.metric.emplace_back();
    metric.label = labels;
    (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  }
  void Add(int64_t value, std::initializer_list<ClientMetric::Label> labels = {}) {
    Add(static_cast<double>(value), labels);
  }

 private:
  MetricFamily& family_;  // until the next one is made
};

struct Sum {
  MetricType type;
  const char* name;
  const char* help;
  int64_t (*value)(const TenantFigures&);
};

constexpr Sum kSums[] = {
    {MetricType::Counter, "tally_calls_total", "Keys that were granted an attempt",
     [](const TenantFigures& t) { return t.calls_total; }},
    {MetricType::Counter, "tally_attempts_total", "Attempts granted",
     [](const TenantFigures& t) { return t.attempts_total; }},
    {MetricType::Counter, "tally_refusals_total", "Refusals with a receipt",
     [](const TenantFigures& t) { return t.refusals_total; }},
    {MetricType::Counter, "tally_parked_total", "Attempts that ended unknown, parked or closed since",
     [](const TenantFigures& t) { return t.parked_total; }},
    {MetricType::Counter, "tally_escalated_total", "Parked attempts that were escalated to a person",
     [](const TenantFigures& t) { return t.escalated_total; }},
    {MetricType::Gauge, "tally_parked_now", "Calls parked now",
     [](const TenantFigures& t) { return t.report.parked().now(); }},
    {MetricType::Gauge, "tally_escalations_open", "Calls parked now that wait for a person",
     [](const TenantFigures& t) { return t.report.escalations_open(); }},
    {MetricType::Gauge, "tally_calls_for_a_person", "Calls for which a person is called: escalated, contradicted, …",
     [](const TenantFigures& t) { return t.for_a_person; }},
    {MetricType::Gauge, "tally_parked_happened", "Attempts that were parked and had happened: duplicates avoided",
     [](const TenantFigures& t) { return t.happened; }},
    {MetricType::Gauge, "tally_webhook_waiting", "Messages to webhooks that were not taken yet",
     [](const TenantFigures& t) { return t.webhook_waiting; }},
    {MetricType::Counter, "tally_webhook_delivered_total", "Messages that webhooks took",
     [](const TenantFigures& t) { return t.webhook_delivered_total; }},
    {MetricType::Counter, "tally_webhook_given_up_total", "Messages to webhooks that were given up",
     [](const TenantFigures& t) { return t.webhook_given_up_total; }},
};

void AddByState(const ledger::Figures& figures, std::vector<MetricFamily>& families) {
  Family states(families, MetricType::Gauge, "tally_attempts_by_state", "Attempts by their present state");
  for (const auto& [name, tenant] : figures.tenants) {
    for (const auto& [state, count] : tenant.attempts) {
      states.Add(count, {{"tenant", name}, {"state", v1::CallState_Name(state)}});
    }
  }
}

void AddAges(const ledger::Figures& figures, std::vector<MetricFamily>& families) {
  Family ages(families, MetricType::Gauge, "tally_parked_age_seconds",
              "How long the calls parked now have been so; 0 where there are none");
  for (const auto& [name, tenant] : figures.tenants) {
    const v1::Parked& parked = tenant.report.parked();
    const int64_t oldest_us = parked.now() > 0 ? tenant.report.now_us() - parked.oldest_us() : 0;
    ages.Add(Seconds(parked.age_median_ms()), {{"tenant", name}, {"stat", "median"}});
    ages.Add(Seconds(parked.age_p99_ms()), {{"tenant", name}, {"stat", "p99"}});
    ages.Add(Seconds(oldest_us / 1000), {{"tenant", name}, {"stat", "max"}});
  }
}

const char* CloserName(v1::Closer closer) {
  switch (closer) {
    case v1::CLOSER_GATEWAY:
      return "gateway";
    case v1::CLOSER_RECONCILER:
      return "reconciler";
    case v1::CLOSER_OPERATOR:
      return "operator";
    default:
      return "unknown";
  }
}

void AddClosed(const ledger::Figures& figures, std::vector<MetricFamily>& families) {
  {
    Family closed(families, MetricType::Counter, "tally_parked_closed_total",
                  "Parked attempts closed, by who did first");
    for (const auto& [name, tenant] : figures.tenants) {
      for (const v1::Closer closer : {v1::CLOSER_GATEWAY, v1::CLOSER_RECONCILER, v1::CLOSER_OPERATOR}) {
        const auto found = tenant.closed_total.find(closer);
        closed.Add(found == tenant.closed_total.end() ? int64_t{0} : found->second,
                   {{"tenant", name}, {"closer", CloserName(closer)}});
      }
    }
  }
  Family took(families, MetricType::Gauge, "tally_parked_close_seconds",
              "From parked to closed, of those parked today (UTC) and in the six days before");
  for (const auto& [name, tenant] : figures.tenants) {
    for (const v1::ClosedBy& closed : tenant.report.closed()) {
      took.Add(Seconds(closed.median_ms()),
               {{"tenant", name}, {"closer", CloserName(closed.closer())}, {"stat", "median"}});
      took.Add(Seconds(closed.p99_ms()), {{"tenant", name}, {"closer", CloserName(closed.closer())}, {"stat", "p99"}});
    }
  }
}

// Returns how many units were left out.
int64_t AddMoney(const ledger::Figures& figures, std::vector<MetricFamily>& families) {
  Family money(families, MetricType::Gauge, "tally_parked_happened_money", "What those cost, in minor units");
  int64_t left_out = 0;
  for (const auto& [name, tenant] : figures.tenants) {
    int units = 0;
    for (const auto& [unit, amount] : tenant.money) {
      if (++units > kFigureUnitsMax) {
        ++left_out;
      } else {
        money.Add(amount, {{"tenant", name}, {"unit", unit}});
      }
    }
  }
  return left_out;
}

}  // namespace

std::vector<MetricFamily> FigureFamilies(const ledger::Figures* figures) {
  std::vector<MetricFamily> families;
  Family(families, MetricType::Gauge, "tally_report_up",
         "1: the database gave the figures by tenant that stand here; 0: it did not, and they are absent")
      .Add(int64_t{figures != nullptr});
  if (figures == nullptr) return families;
  for (const Sum& sum : kSums) {
    Family family(families, sum.type, sum.name, sum.help);
    for (const auto& [name, tenant] : figures->tenants) family.Add(sum.value(tenant), {{"tenant", name}});
  }
  AddByState(*figures, families);
  AddAges(*figures, families);
  AddClosed(*figures, families);
  const int64_t units_left_out = AddMoney(*figures, families);
  Family left_out(families, MetricType::Gauge, "tally_report_left_out",
                  "Tenants, and units of tenants, that are not shown here");
  left_out.Add(figures->tenants_left_out, {{"what", "tenants"}});
  left_out.Add(units_left_out, {{"what", "units"}});
  return families;
}

}  // namespace tally::tallyd
