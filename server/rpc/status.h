#ifndef TALLY_SERVER_RPC_STATUS_H_
#define TALLY_SERVER_RPC_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "lib/decide/request.h"
#include "server/lane/job.h"
#include "tally/v1/common.pb.h"

// The one place where kinds and codes become gRPC. Every error carries google.rpc.ErrorInfo (domain tallystick.dev,
// reason = code) and, where the same request may be sent again, RetryInfo. Messages say what is wrong, whether anything
// was done, and what to do; they never carry arguments, results, keys or tokens.
namespace tally::rpc {

// INVALID_ARGUMENT; `what` has no full stop.
grpc::Status Malformed(std::string_view what);
grpc::Status OverLimit(std::string_view what);
grpc::Status NotCanonical(std::string_view what);

grpc::Status Unauthenticated(std::string_view what = "the credential is missing, unknown or disabled");
grpc::Status PermissionDenied(std::string_view what = "this principal's role may not do that");
grpc::Status NotFound(std::string_view what = "there is no such thing, or it is not yours");
grpc::Status AlreadyExists(std::string_view what);

grpc::Status Overloaded();
grpc::Status ShuttingDown();
grpc::Status DeadlineOver();

// What the lanes made of a job; kDone is no error.
grpc::Status FromFate(lane::Fate fate);

// What the control plane says. The message of Internal, Aborted, Unavailable and Unknown is not shown to clients.
grpc::Status FromLedger(const absl::Status& status);

// A verdict that is an error, as such; OK where it is an answer of its own (refusals in the body included).
grpc::Status FromVerdict(const decide::Answer& answer);

// Every refusal as an error: for RPCs whose answer has no place for one. OK only where the message was taken.
grpc::Status ErrorOf(const decide::Answer& answer);

// The refusal in the body; KIND_UNSPECIFIED where there is none.
v1::Refusal RefusalOf(const decide::Answer& answer);

// The code (ErrorInfo.reason) of an error made here; empty otherwise.
std::string CodeOf(const grpc::Status& status);

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_STATUS_H_
