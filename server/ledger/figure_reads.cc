#include "server/ledger/control.h"
#include "server/ledger/report_reads.h"
#include "server/ledger/report_tx.h"

namespace tally::ledger {
namespace {

constexpr char kTimeout[] = "10s";

constexpr Statement kTenants{"figures_tenants",
                             "SELECT tenant, count(*) OVER () FROM tenants ORDER BY tenant LIMIT $1::int"};

constexpr Statement kPermitSums{
    "figures_permits",
    "SELECT p.tenant, sum(s.calls)::bigint, sum(s.attempts)::bigint, sum(s.refusals)::bigint, "
    "sum(s.open_calls)::bigint,"
    " sum(s.succeeded)::bigint, sum(s.tool_error)::bigint, sum(s.released)::bigint, sum(s.not_happened)::bigint"
    " FROM permit_state s JOIN permits p ON p.shard = s.shard AND p.permit_id = s.permit_id"
    " WHERE p.tenant = ANY ($1::text[]) GROUP BY p.tenant"};

constexpr Statement kParkingSums{
    "figures_parkings",
    "SELECT tenant, unit, count(*), count(escalated_at_us), count(*) FILTER (WHERE closed_by = 1),"
    " count(*) FILTER (WHERE closed_by = 2), count(*) FILTER (WHERE closed_by = 3), count(*) FILTER (WHERE state = 4),"
    " coalesce(least(sum(charged) FILTER (WHERE state = 4), 9223372036854775807), 0)::bigint"
    " FROM parkings WHERE tenant = ANY ($1::text[]) GROUP BY tenant, unit"};

constexpr Statement kForAPerson{
    "figures_attention",
    "SELECT p.tenant, count(*) FROM calls c JOIN permits p ON p.shard = c.shard AND p.permit_id = c.permit_id"
    " WHERE c.attention IS NOT NULL AND p.tenant = ANY ($1::text[]) GROUP BY p.tenant"};

constexpr Statement kWebhookSums{
    "figures_webhooks",
    "SELECT w.tenant, sum(o.waiting)::bigint, sum(w.delivered)::bigint, sum(w.given_up)::bigint FROM webhooks w"
    " LEFT JOIN (SELECT webhook_id, count(*) AS waiting FROM outbox GROUP BY webhook_id) o"
    " ON o.webhook_id = w.webhook_id WHERE w.tenant = ANY ($1::text[]) GROUP BY w.tenant"};

void ReadPermits(Tx& tx, const std::string& tenants, Figures& figures) {
  for (const pqxx::row& row : tx.Exec(kPermitSums, tenants)) {
    TenantFigures& tenant = figures.tenants.at(row[0].c_str());
    tenant.calls_total = row[1].as<int64_t>();
    tenant.attempts_total = row[2].as<int64_t>();
    tenant.refusals_total = row[3].as<int64_t>();
    const int64_t open = row[4].as<int64_t>();
    const int64_t parked = tenant.report.parked().now();
    tenant.attempts = {{v1::AUTHORIZED, open - parked},       {v1::UNCERTAIN, parked},
                       {v1::SUCCEEDED, row[5].as<int64_t>()}, {v1::TOOL_ERROR, row[6].as<int64_t>()},
                       {v1::RELEASED, row[7].as<int64_t>()},  {v1::NOT_HAPPENED, row[8].as<int64_t>()}};
  }
}

void ReadTotals(Tx& tx, const std::string& tenants, Figures& figures) {
  for (const pqxx::row& row : tx.Exec(kParkingSums, tenants)) {
    TenantFigures& tenant = figures.tenants.at(row[0].c_str());
    tenant.parked_total += row[2].as<int64_t>();
    tenant.escalated_total += row[3].as<int64_t>();
    tenant.closed_total[v1::CLOSER_GATEWAY] += row[4].as<int64_t>();
    tenant.closed_total[v1::CLOSER_RECONCILER] += row[5].as<int64_t>();
    tenant.closed_total[v1::CLOSER_OPERATOR] += row[6].as<int64_t>();
    tenant.happened += row[7].as<int64_t>();
    if (row[8].as<int64_t>() != 0) tenant.money[row[1].c_str()] = row[8].as<int64_t>();
  }
  for (const pqxx::row& row : tx.Exec(kWebhookSums, tenants)) {
    TenantFigures& tenant = figures.tenants.at(row[0].c_str());
    tenant.webhook_waiting = OptionalInt(row[1]).value_or(0);
    tenant.webhook_delivered_total = row[2].as<int64_t>();
    tenant.webhook_given_up_total = row[3].as<int64_t>();
  }
  for (const pqxx::row& row : tx.Exec(kForAPerson, tenants)) {
    figures.tenants.at(row[0].c_str()).for_a_person = row[1].as<int64_t>();
  }
}

}  // namespace

absl::StatusOr<Figures> ReadFigures(Connection& connection, int tenants_max) {
  Figures figures;
  absl::Status status = ReadSnapshot(connection, [&](Tx& tx) {
    figures = {};
    PlanForMuch(tx, kTimeout);
    std::map<std::string, v1::Report*> reports;
    for (const pqxx::row& row : tx.Exec(kTenants, tenants_max)) {
      TenantFigures& tenant = figures.tenants[row[0].c_str()];
      tenant.report.set_now_us(tx.now_us());
      tenant.report.set_days(kReportDaysDefault);
      reports[row[0].c_str()] = &tenant.report;
      figures.tenants_left_out = row[1].as<int64_t>() - static_cast<int64_t>(figures.tenants.size());
    }
    if (reports.empty()) return absl::OkStatus();
    const std::string tenants = TenantArray(reports);
    ReadParkings(tx, WindowStart(tx.now_us(), kReportDaysDefault), reports);
    ReadPermits(tx, tenants, figures);
    ReadTotals(tx, tenants, figures);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return figures;
}

}  // namespace tally::ledger
