#include "server/ledger/report_reads.h"

#include <algorithm>

#include "server/ledger/control.h"
#include "server/ledger/report_tx.h"

namespace tally::ledger {
namespace {

constexpr char kTimeout[] = "30s";

// ---- Parkings ----

constexpr Statement kParkedNow{
    "report_parked_now",
    "SELECT tenant, count(*), min(parked_at_us),"
    " percentile_disc(0.5) WITHIN GROUP (ORDER BY greatest($2::bigint - parked_at_us, 0)) / 1000,"
    " percentile_disc(0.99) WITHIN GROUP (ORDER BY greatest($2::bigint - parked_at_us, 0)) / 1000,"
    " count(escalated_at_us)"
    " FROM parkings WHERE tenant = ANY ($1::text[]) AND closed_at_us IS NULL GROUP BY tenant"};

constexpr Statement kClosedBy{
    "report_closed_by",
    "SELECT tenant, closed_by, count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY closed_at_us - parked_at_us) / "
    "1000,"
    " percentile_disc(0.99) WITHIN GROUP (ORDER BY closed_at_us - parked_at_us) / 1000"
    " FROM parkings WHERE tenant = ANY ($1::text[]) AND parked_at_us >= $2::bigint AND closed_at_us IS NOT NULL"
    " GROUP BY tenant, closed_by ORDER BY tenant, closed_by"};

constexpr Statement kAvoided{
    "report_avoided",
    "SELECT tenant, unit, count(*), least(sum(charged), 9223372036854775807)::bigint"
    " FROM parkings WHERE tenant = ANY ($1::text[]) AND parked_at_us >= $2::bigint AND state = 4"
    " GROUP BY tenant, unit ORDER BY tenant, unit"};

// ---- Calls and attempts ----

// A call is seen in these days, its last attempt granted in them, or both; so either is looked for. Attempts before the
// last stand in their own table. State of a call: that of its last attempt, except that a contradicted one with none
// open is SUCCEEDED. Another name of a call is no call. `day`: in which the attempt was granted, from 0; null: earlier.
//
// Materialized, so that it is time that rows are found by: by permit, all calls there ever were would be read.
constexpr Statement kRecent{
    "report_recent",
    "WITH recent AS MATERIALIZED ("
    " SELECT c.shard, c.permit_id,"
    "  CASE WHEN c.first_seen_us < $2::bigint OR (c.number = 0 AND c.bound_to IS NOT NULL) THEN NULL"
    "   WHEN c.contradicted > 0 AND c.state NOT IN (2, 3) THEN 4 ELSE c.state END AS call_state,"
    "  CASE WHEN c.granted_at_us >= $2 THEN (c.granted_at_us - $2) / $3::bigint END AS day,"
    "  c.principal_id, c.state AS attempt_state, count(*) AS calls"
    " FROM calls c WHERE c.first_seen_us >= $2 OR c.granted_at_us >= $2 GROUP BY 1, 2, 3, 4, 5, 6"
    " UNION ALL"
    " SELECT a.shard, a.permit_id, NULL, (a.granted_at_us - $2) / $3, a.principal_id, a.state, count(*)"
    " FROM attempts a WHERE a.granted_at_us >= $2 GROUP BY 1, 2, 4, 5, 6)"
    " SELECT r.call_state, r.day, r.principal_id, r.attempt_state, sum(r.calls)::bigint"
    " FROM recent r JOIN permits p ON p.shard = r.shard AND p.permit_id = r.permit_id"
    " WHERE p.tenant = $1 GROUP BY 1, 2, 3, 4"};

constexpr Statement kParkedByDay{"report_parked_by_day",
                                 "SELECT (parked_at_us - $2::bigint) / $3::bigint, count(*) FROM parkings"
                                 " WHERE tenant = $1 AND parked_at_us >= $2 GROUP BY 1"};

constexpr Statement kGatewayNames{"report_gateway_names",
                                  "SELECT principal_id, name FROM principals WHERE tenant = $1"};

void AddDays(v1::Report& report, int64_t from_us) {
  for (int day = 0; day < report.days(); ++day) report.add_unknown()->set_day_start_us(from_us + day * kDayUs);
}

// Today's end may have come between this transaction's first moment and its snapshot.
v1::UnknownDay& Day(v1::Report& report, int64_t day) {
  return *report.mutable_unknown(static_cast<int>(std::clamp<int64_t>(day, 0, report.days() - 1)));
}

void ReadRecent(Tx& tx, const std::string& tenant, int64_t from_us, v1::Report& report) {
  std::map<int, int64_t> calls;
  std::map<std::string, v1::GatewayShare> gateways;
  for (const pqxx::row& row : tx.Exec(kRecent, tenant, from_us, kDayUs)) {
    const int64_t count = row[4].as<int64_t>();
    if (!row[0].is_null()) calls[row[0].as<int>()] += count;
    if (row[1].is_null()) continue;
    v1::UnknownDay& day = Day(report, row[1].as<int64_t>());
    day.set_attempts(day.attempts() + count);
    v1::GatewayShare& gateway = gateways[row[2].c_str()];
    gateway.set_attempts(gateway.attempts() + count);
    if (row[3].as<int>() == v1::RELEASED) gateway.set_not_sent(gateway.not_sent() + count);
  }
  for (const auto& [state, count] : calls) {
    v1::OutcomeCount& outcome = *report.add_calls();
    outcome.set_state(static_cast<v1::CallState>(state));
    outcome.set_calls(count);
  }
  for (const pqxx::row& row : tx.Exec(kGatewayNames, tenant)) {
    if (const auto found = gateways.find(row[0].c_str()); found != gateways.end()) {
      found->second.set_name(row[1].c_str());
    }
  }
  for (auto& [principal_id, gateway] : gateways) {
    gateway.set_principal_id(principal_id);
    *report.add_gateways() = std::move(gateway);
  }
}

constexpr Statement kPlanForMuch{
    "plan_for_much",
    "SELECT set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'force_custom_plan', true),"
    " set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),"
    " set_config('enable_mergejoin', 'on', true), set_config('enable_memoize', 'on', true)"};

}  // namespace

// A connection's settings are those of the hot path: index look-ups only.
void PlanForMuch(Tx& tx, const std::string& statement_timeout) { tx.Exec(kPlanForMuch, statement_timeout); }

int64_t WindowStart(int64_t now_us, int days) { return now_us / kDayUs * kDayUs - (days - 1) * kDayUs; }

std::string TenantArray(const std::map<std::string, v1::Report*>& reports) {
  std::string array = "{";
  for (const auto& [tenant, report] : reports) array += (array.size() > 1 ? "," : "") + tenant;
  return array + "}";
}

void ReadParkings(Tx& tx, int64_t from_us, std::map<std::string, v1::Report*>& reports) {
  const std::string tenants = TenantArray(reports);
  for (const pqxx::row& row : tx.Exec(kParkedNow, tenants, tx.now_us())) {
    v1::Report& report = *reports.at(row[0].c_str());
    v1::Parked& parked = *report.mutable_parked();
    parked.set_now(row[1].as<int64_t>());
    parked.set_oldest_us(row[2].as<int64_t>());
    parked.set_age_median_ms(row[3].as<int64_t>());
    parked.set_age_p99_ms(row[4].as<int64_t>());
    report.set_escalations_open(row[5].as<int64_t>());
  }
  for (const pqxx::row& row : tx.Exec(kClosedBy, tenants, from_us)) {
    v1::ClosedBy& closed = *reports.at(row[0].c_str())->add_closed();
    closed.set_closer(static_cast<v1::Closer>(row[1].as<int>()));
    closed.set_calls(row[2].as<int64_t>());
    closed.set_median_ms(row[3].as<int64_t>());
    closed.set_p99_ms(row[4].as<int64_t>());
  }
  for (const pqxx::row& row : tx.Exec(kAvoided, tenants, from_us)) {
    v1::Avoided& avoided = *reports.at(row[0].c_str())->mutable_avoided();
    avoided.set_calls(avoided.calls() + row[2].as<int64_t>());
    if (row[3].as<int64_t>() == 0) continue;
    v1::Money& money = *avoided.add_money();
    money.set_unit(row[1].c_str());
    money.set_amount(row[3].as<int64_t>());
  }
}

absl::StatusOr<v1::Report> GetReport(Connection& connection, const std::string& tenant, int days) {
  v1::Report report;
  absl::Status status = ReadSnapshot(connection, [&](Tx& tx) {
    report.Clear();
    PlanForMuch(tx, kTimeout);
    report.set_now_us(tx.now_us());
    report.set_days(days);
    const int64_t from_us = WindowStart(tx.now_us(), days);
    AddDays(report, from_us);
    report.mutable_parked();
    report.mutable_avoided();
    std::map<std::string, v1::Report*> one{{tenant, &report}};
    ReadParkings(tx, from_us, one);
    for (const pqxx::row& row : tx.Exec(kParkedByDay, tenant, from_us, kDayUs)) {
      v1::UnknownDay& day = Day(report, row[0].as<int64_t>());
      day.set_parked(day.parked() + row[1].as<int64_t>());
    }
    ReadRecent(tx, tenant, from_us, report);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return report;
}

}  // namespace tally::ledger
