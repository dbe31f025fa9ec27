#ifndef TALLY_SERVER_RPC_REPORTS_H_
#define TALLY_SERVER_RPC_REPORTS_H_

#include <atomic>

#include "server/rpc/core.h"
#include "tally/v1/reports.grpc.pb.h"

namespace tally::rpc {

// One report is made at a time; who asks meanwhile is told to come again, so that workers stay free for others.
class Reports final : public v1::Reports::CallbackService {
 public:
  explicit Reports(Core& core) : core_(core) {}

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetReportRequest* request,
                                v1::Report* response) override;

 private:
  Core& core_;
  std::atomic_flag busy_;
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_REPORTS_H_
