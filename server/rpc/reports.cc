#include "server/rpc/reports.h"

#include <string>

#include "absl/cleanup/cleanup.h"
#include "lib/keys/text.h"
#include "server/ledger/report_reads.h"
#include "server/rpc/exchange.h"
#include "server/rpc/status.h"

namespace tally::rpc {

grpc::ServerUnaryReactor* Reports::Get(grpc::CallbackServerContext* context, const v1::GetReportRequest* request,
                                       v1::Report* response) {
  return OnWorker(
      core_, "tally.v1.Reports.Get", context,
      [this, request, response](const Caller& caller, ledger::Connection& connection) -> grpc::Status {
        const int days = request->days() == 0 ? ledger::kReportDaysDefault : request->days();
        if (days < 1 || days > ledger::kReportDaysMax) {
          return OverLimit(
              keys::Cat("days must be 1 to ", ledger::kReportDaysMax, ", or 0 for ", ledger::kReportDaysDefault));
        }
        if (busy_.test_and_set()) return Overloaded();
        const absl::Cleanup free = [this] { busy_.clear(); };
        auto report = ledger::GetReport(connection, caller.tenant, days);
        if (absl::IsDeadlineExceeded(report.status())) {
          return OverLimit("there are too many calls in these days to be counted in 30 seconds; ask for fewer days");
        }
        if (!report.ok()) return FromLedger(report.status());
        *response = *std::move(report);
        return grpc::Status::OK;
      });
}

}  // namespace tally::rpc
