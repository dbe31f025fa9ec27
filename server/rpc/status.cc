#include "server/rpc/status.h"

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "lib/keys/text.h"
#include "server/ops/log.h"

namespace tally::rpc {
namespace {

using grpc::StatusCode;

constexpr char kDomain[] = "tallystick.dev";
constexpr int kContendedDelayMs = 50;
constexpr int kUnavailableDelayMs = 250;

// retry_ms: how long to wait before the same request may be sent again; 0: it may not.
grpc::Status Error(StatusCode status, v1::Kind kind, std::string_view code, std::string message, int retry_ms = 0) {
  google::rpc::Status rich;
  rich.set_code(status);
  rich.set_message(message);
  google::rpc::ErrorInfo info;
  info.set_domain(kDomain);
  info.set_reason(std::string(code));
  (*info.mutable_metadata())["kind"] = v1::Kind_Name(kind);
  rich.add_details()->PackFrom(info);
  if (retry_ms > 0) {
    google::rpc::RetryInfo retry;
    retry.mutable_retry_delay()->set_nanos(retry_ms * 1'000'000);
    rich.add_details()->PackFrom(retry);
  }
  return grpc::Status(status, message, rich.SerializeAsString());
}

grpc::Status Invalid(std::string_view code, std::string_view what) {
  return Error(StatusCode::INVALID_ARGUMENT, v1::KIND_INVALID, code, keys::Cat(what, ". Nothing was done."));
}

grpc::Status Unavailable(std::string_view code, std::string_view what, int retry_ms = kUnavailableDelayMs) {
  return Error(StatusCode::UNAVAILABLE, v1::KIND_UNAVAILABLE, code, std::string(what), retry_ms);
}

grpc::Status Contended() {
  return Error(StatusCode::ABORTED, v1::KIND_CONTENDED, "SERIALIZATION_FAILURE",
               "The decision lost a race and was rolled back. Nothing was done; send the same request again.",
               kContendedDelayMs);
}

grpc::Status DatabaseDown() {
  return Unavailable("DATABASE_DOWN",
                     "The database cannot be reached. Nothing was done; send the same request again later.");
}

grpc::Status InDoubt() {
  return Unavailable("IN_DOUBT",
                     "The database's confirmation was lost: it is not known whether this was recorded. Send the same "
                     "request again with the same key and attempt_id; the answer then tells.");
}

grpc::Status Internal() {
  return Unavailable("INTERNAL",
                     "The server could not carry this out. Nothing was done; its log says why. Send the same request "
                     "again later.");
}

StatusCode StatusOf(const decide::VerdictInfo& info) {
  if (info.kind != v1::KIND_UNAUTHORIZED) return StatusCode::FAILED_PRECONDITION;
  if (info.code == "NOT_FOUND") return StatusCode::NOT_FOUND;
  return info.code == "UNAUTHENTICATED" ? StatusCode::UNAUTHENTICATED : StatusCode::PERMISSION_DENIED;
}

std::string MessageOf(const decide::Answer& answer) {
  const std::string_view message = decide::Info(answer.verdict).message;
  return answer.detail.empty() ? std::string(message) : keys::Cat(message, " (", answer.detail, ")");
}

}  // namespace

grpc::Status Malformed(std::string_view what) { return Invalid("MALFORMED", what); }
grpc::Status OverLimit(std::string_view what) { return Invalid("LIMIT", what); }
grpc::Status NotCanonical(std::string_view what) { return Invalid("ARGUMENTS_NOT_CANONICAL", what); }

grpc::Status Unauthenticated(std::string_view what) {
  return Error(StatusCode::UNAUTHENTICATED, v1::KIND_UNAUTHORIZED, "UNAUTHENTICATED",
               keys::Cat("Refused: ", what, ". Nothing was done."));
}

grpc::Status PermissionDenied(std::string_view what) {
  return Error(StatusCode::PERMISSION_DENIED, v1::KIND_UNAUTHORIZED, "PERMISSION_DENIED",
               keys::Cat("Refused: ", what, ". Nothing was done."));
}

grpc::Status NotFound(std::string_view what) {
  return Error(StatusCode::NOT_FOUND, v1::KIND_UNAUTHORIZED, "NOT_FOUND",
               keys::Cat("Not found: ", what, ". Nothing was done."));
}

grpc::Status AlreadyExists(std::string_view what) {
  return Error(StatusCode::ALREADY_EXISTS, v1::KIND_INVALID, "ALREADY_EXISTS",
               keys::Cat("Not made: ", what, ". Nothing was done."));
}

grpc::Status Overloaded() {
  return Error(StatusCode::RESOURCE_EXHAUSTED, v1::KIND_UNAVAILABLE, "OVERLOADED",
               "Too much is waiting. Nothing was done; send the same request again later.", kUnavailableDelayMs);
}

grpc::Status ShuttingDown() {
  return Unavailable("SHUTTING_DOWN",
                     "This server is shutting down. Nothing was done; send the same request again, to another replica "
                     "if there is one.");
}

grpc::Status DeadlineOver() {
  return Unavailable("DEADLINE", "The request's deadline passed before it was begun. Nothing was done.");
}

grpc::Status FromFate(lane::Fate fate) {
  switch (fate) {
    case lane::Fate::kDone:
      return grpc::Status::OK;
    case lane::Fate::kContended:
      return Contended();
    case lane::Fate::kOverloaded:
      return Overloaded();
    case lane::Fate::kExpired:
      return DeadlineOver();
    case lane::Fate::kShuttingDown:
      return ShuttingDown();
    case lane::Fate::kDown:
      return DatabaseDown();
    case lane::Fate::kInDoubt:
      return InDoubt();
    case lane::Fate::kFailed:
      break;
  }
  return Internal();
}

grpc::Status FromLedger(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return grpc::Status::OK;
    case absl::StatusCode::kInvalidArgument: {
      // Ends with its own sentence where it has one.
      std::string_view what(status.message().data(), status.message().size());
      while (what.ends_with('.')) what.remove_suffix(1);
      return Malformed(what);
    }
    case absl::StatusCode::kNotFound:
      return NotFound();
    case absl::StatusCode::kAlreadyExists:
      return AlreadyExists({status.message().data(), status.message().size()});
    case absl::StatusCode::kPermissionDenied:
      return Unauthenticated();
    case absl::StatusCode::kFailedPrecondition:
      return Error(StatusCode::FAILED_PRECONDITION, v1::KIND_CONFLICT, "CONFLICT",
                   keys::Cat("Refused: ", status.message(), ". Nothing was done."));
    case absl::StatusCode::kAborted:
      return Contended();
    case absl::StatusCode::kUnavailable:
      return DatabaseDown();
    case absl::StatusCode::kUnknown:
      return InDoubt();
    default:
      ops::LogError("ledger_failed", {{"why", std::string_view(status.message().data(), status.message().size())}});
      return Internal();
  }
}

grpc::Status FromVerdict(const decide::Answer& answer) {
  const decide::VerdictInfo& info = decide::Info(answer.verdict);
  switch (info.kind) {
    case v1::KIND_UNAUTHORIZED:
    case v1::KIND_INVALID:
    case v1::KIND_CONFLICT:
      return Error(StatusOf(info), info.kind, info.code, MessageOf(answer));
    default:
      return grpc::Status::OK;
  }
}

grpc::Status ErrorOf(const decide::Answer& answer) {
  const decide::VerdictInfo& info = decide::Info(answer.verdict);
  if (info.kind == v1::KIND_UNSPECIFIED) return grpc::Status::OK;
  return Error(StatusOf(info), info.kind, info.code, MessageOf(answer));
}

v1::Refusal RefusalOf(const decide::Answer& answer) {
  const decide::VerdictInfo& info = decide::Info(answer.verdict);
  v1::Refusal refusal;
  if (info.kind == v1::KIND_UNSPECIFIED) return refusal;
  refusal.set_kind(info.kind);
  refusal.set_code(std::string(info.code));
  refusal.set_message(MessageOf(answer));
  refusal.set_retry(info.retry);
  return refusal;
}

std::string CodeOf(const grpc::Status& status) {
  google::rpc::Status rich;
  google::rpc::ErrorInfo info;
  if (status.ok() || !rich.ParseFromString(status.error_details())) return "";
  for (const auto& detail : rich.details()) {
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

}  // namespace tally::rpc
