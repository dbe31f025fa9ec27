#ifndef TALLY_SERVER_LEDGER_REPORT_READS_H_
#define TALLY_SERVER_LEDGER_REPORT_READS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/ledger/transaction.h"
#include "tally/v1/reports.pb.h"

// The numbers that say how well unknown outcomes are dealt with. All are counted by the database, in one snapshot of
// it, so that they agree with each other and are the same from every replica.
namespace tally::ledger {

inline constexpr int kReportDaysDefault = 7;
inline constexpr int kReportDaysMax = 366;
inline constexpr int64_t kDayUs = int64_t{24} * 3600 * 1'000'000;

// `days`: 1 to kReportDaysMax, today (UTC) included. Reads the calls of those days and no others. DeadlineExceeded:
// they were too many to count in 30 seconds.
absl::StatusOr<v1::Report> GetReport(Connection& connection, const std::string& tenant, int days);

// What stands in `permit_state`, `parkings` and `webhooks` of a tenant since it was created. Those named …_total never
// decrease.
struct TenantFigures {
  int64_t calls_total = 0;     // keys that were granted an attempt
  int64_t attempts_total = 0;  // granted
  int64_t refusals_total = 0;  // refusals that have a receipt of their own
  int64_t parked_total = 0;
  int64_t escalated_total = 0;
  std::map<v1::Closer, int64_t> closed_total;
  std::map<v1::CallState, int64_t> attempts;  // by their present state
  int64_t happened = 0;                       // attempts that were parked and had happened
  std::map<std::string, int64_t> money;       // what those cost, by unit
  // Of its webhooks; those of one that is deleted go with it.
  int64_t webhook_waiting = 0;
  int64_t webhook_delivered_total = 0;
  int64_t webhook_given_up_total = 0;
  int64_t for_a_person = 0;  // calls for which a person is called, whyever
  v1::Report report;         // of kReportDaysDefault days: parked, closed, avoided, escalations_open
};

struct Figures {
  std::map<std::string, TenantFigures> tenants;
  int64_t tenants_left_out = 0;
};

// Of the first `tenants_max` tenants by name.
absl::StatusOr<Figures> ReadFigures(Connection& connection, int tenants_max);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_REPORT_READS_H_
