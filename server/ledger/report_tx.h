#ifndef TALLY_SERVER_LEDGER_REPORT_TX_H_
#define TALLY_SERVER_LEDGER_REPORT_TX_H_

#include <map>
#include <string>

#include "server/ledger/transaction.h"
#include "tally/v1/reports.pb.h"

// Inside server/ledger only: what the report and the figures have in common.
namespace tally::ledger {

// For the rest of this transaction, plans for much data, and `statement_timeout` as given ("30s").
void PlanForMuch(Tx& tx, const std::string& statement_timeout);

// The beginning of the first of the last `days` days (UTC) at `now_us`.
int64_t WindowStart(int64_t now_us, int days);

// Fills parked, closed, avoided and escalations_open of the reports of the tenants that are in the map.
void ReadParkings(Tx& tx, int64_t from_us, std::map<std::string, v1::Report*>& reports);

// '{a,b}': names of tenants need no quotes.
std::string TenantArray(const std::map<std::string, v1::Report*>& reports);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_REPORT_TX_H_
