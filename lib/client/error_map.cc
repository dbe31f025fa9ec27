#include "lib/client/error_map.h"

#include <algorithm>
#include <array>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tally::client {
namespace {

constexpr std::array<KindInfo, 10> kKinds = {{
    {v1::KIND_DENIED, "denied", Happened::kNo, v1::RETRY_NEVER, 10,
     "Nothing was done. The same request will be refused again: change the request, or ask an operator for a permit "
     "that "
     "allows it."},
    {v1::KIND_CONTENDED, "contended", Happened::kNo, v1::RETRY_SAME_KEY, 11,
     "Nothing was done: the decision lost a race and was rolled back. Ask again with the same key and attempt id."},
    {v1::KIND_CAP_EXCEEDED, "cap_exceeded", Happened::kNothingNew, v1::RETRY_NEVER, 12,
     "This call was not made; earlier calls used up the limit. Do not try again, least of all with a fresh key."},
    {v1::KIND_DELIVERY_UNCERTAIN, "delivery_uncertain", Happened::kMaybe, v1::RETRY_WAIT, 13,
     "The call may have been carried out. Do not send it; wait until it is resolved, then ask with the same key."},
    {v1::KIND_ALREADY_DONE, "already_done", Happened::kEarlier, v1::RETRY_NEVER, 14,
     "This was done before. Do not send it again; go on."},
    {v1::KIND_READ_FAILED, "read_failed", Happened::kNo, v1::RETRY_CALL_AGAIN, 1,
     "A read was not answered; nothing that matters was done. It may be called again, with a new key."},
    {v1::KIND_INVALID, "invalid", Happened::kNo, v1::RETRY_NEVER, 1,
     "Nothing was done. The request will be refused as long as it stays as it is."},
    {v1::KIND_CONFLICT, "conflict", Happened::kAsRecorded, v1::RETRY_NEVER, 1,
     "Nothing was changed: the record says otherwise. Read the call (tally call show) before going on."},
    {v1::KIND_UNAUTHORIZED, "unauthorized", Happened::kNo, v1::RETRY_FIX_CREDENTIAL, 1,
     "Nothing was done. Check the credential, the permit token and the ids; what belongs to another tenant looks "
     "missing."},
    {v1::KIND_UNAVAILABLE, "unavailable", Happened::kUnknown, v1::RETRY_SAME_KEY, 3,
     "It is not known whether anything was recorded. Asking again with the same key and attempt id is safe and tells."},
}};

constexpr std::pair<std::string_view, v1::Kind> kCodes[] = {
    {"TOOL_NOT_GRANTED", v1::KIND_DENIED},
    {"PERMIT_EXPIRED", v1::KIND_DENIED},
    {"PERMIT_NOT_YET_VALID", v1::KIND_DENIED},
    {"PERMIT_REVOKED", v1::KIND_DENIED},
    {"PERMIT_CLOSED", v1::KIND_DENIED},
    {"AMOUNT_OVER_CALL_LIMIT", v1::KIND_DENIED},
    {"CONSTRAINT_VIOLATED", v1::KIND_DENIED},
    {"CONSTRAINT_UNENFORCEABLE", v1::KIND_DENIED},
    {"ATTEMPTS_EXHAUSTED", v1::KIND_DENIED},
    {"OPEN_CALLS", v1::KIND_DENIED},
    {"SERIALIZATION_FAILURE", v1::KIND_CONTENDED},
    {"CALL_CAP", v1::KIND_CAP_EXCEEDED},
    {"TOOL_BUDGET", v1::KIND_CAP_EXCEEDED},
    {"PERMIT_BUDGET", v1::KIND_CAP_EXCEEDED},
    {"NO_ANSWER", v1::KIND_DELIVERY_UNCERTAIN},
    {"LEASE_OVER", v1::KIND_DELIVERY_UNCERTAIN},
    {"STILL_PENDING", v1::KIND_DELIVERY_UNCERTAIN},
    {"STILL_AUTHORIZED", v1::KIND_DELIVERY_UNCERTAIN},
    {"SEND_WINDOW_OVER", v1::KIND_DELIVERY_UNCERTAIN},
    {"INTENT_PENDING", v1::KIND_DELIVERY_UNCERTAIN},
    {"UPSTREAM_AMBIGUOUS", v1::KIND_DELIVERY_UNCERTAIN},
    {"ALREADY_DONE", v1::KIND_ALREADY_DONE},
    {"READ_NO_ANSWER", v1::KIND_READ_FAILED},
    {"KEY_REUSED", v1::KIND_INVALID},
    {"ATTEMPT_USED", v1::KIND_INVALID},
    {"MALFORMED", v1::KIND_INVALID},
    {"ARGUMENTS_NOT_CANONICAL", v1::KIND_INVALID},
    {"LIMIT", v1::KIND_INVALID},
    {"ALREADY_EXISTS", v1::KIND_INVALID},
    {"COMMIT_CONFLICT", v1::KIND_CONFLICT},
    {"STALE_RESOLUTION", v1::KIND_CONFLICT},
    {"UNAUTHENTICATED", v1::KIND_UNAUTHORIZED},
    {"PERMISSION_DENIED", v1::KIND_UNAUTHORIZED},
    {"NOT_FOUND", v1::KIND_UNAUTHORIZED},
    {"OVERLOADED", v1::KIND_UNAVAILABLE},
    {"DATABASE_DOWN", v1::KIND_UNAVAILABLE},
    {"IN_DOUBT", v1::KIND_UNAVAILABLE},
    {"RECOVERY_NEEDED", v1::KIND_UNAVAILABLE},
};

// The service spoke, with a code that is newer than this client: what its status alone allows to conclude. ABORTED does
// not: it is `contended` only for the code that says so.
v1::Kind KindOfStatus(grpc::StatusCode status) {
  switch (status) {
    case grpc::StatusCode::INVALID_ARGUMENT:
      return v1::KIND_INVALID;
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::ALREADY_EXISTS:
      return v1::KIND_CONFLICT;
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::NOT_FOUND:
      return v1::KIND_UNAUTHORIZED;
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return v1::KIND_UNAVAILABLE;
    default:
      return v1::KIND_DELIVERY_UNCERTAIN;
  }
}

// Nobody of ours spoke: a proxy, the transport, or gRPC itself. These statuses are given before a handler runs.
v1::Kind KindOfForeignStatus(grpc::StatusCode status) {
  switch (status) {
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return v1::KIND_UNAUTHORIZED;
    case grpc::StatusCode::UNIMPLEMENTED:
      return v1::KIND_INVALID;
    default:
      return v1::KIND_UNAVAILABLE;
  }
}

struct Details {
  std::optional<google::rpc::ErrorInfo> info;
  std::optional<google::rpc::RetryInfo> retry;
};

Details ReadDetails(const grpc::Status& status) {
  Details details;
  google::rpc::Status rich;
  if (!rich.ParseFromString(status.error_details())) return details;
  for (const auto& any : rich.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::RetryInfo retry;
    if (any.UnpackTo(&info) && info.domain() == kErrorDomain) details.info = std::move(info);
    if (any.UnpackTo(&retry)) details.retry = std::move(retry);
  }
  return details;
}

// A day at most: a longer wish is a mistake, and must not overflow what is computed from it.
std::chrono::milliseconds DelayOf(const google::rpc::RetryInfo& retry) {
  constexpr int64_t kDaySeconds = 86400;
  const int64_t seconds = std::clamp<int64_t>(retry.retry_delay().seconds(), 0, kDaySeconds);
  const int64_t nanos = seconds == kDaySeconds ? 0 : std::clamp<int64_t>(retry.retry_delay().nanos(), 0, 999'999'999);
  return std::chrono::milliseconds(seconds * 1000 + nanos / 1'000'000);
}

}  // namespace

const KindInfo& Info(v1::Kind kind) {
  for (const KindInfo& info : kKinds) {
    if (info.kind == kind) return info;
  }
  return Info(v1::KIND_DELIVERY_UNCERTAIN);
}

std::optional<v1::Kind> KindOfCode(std::string_view code) {
  for (const auto& [known, kind] : kCodes) {
    if (known == code) return kind;
  }
  return std::nullopt;
}

Failure FromRefusal(const v1::Refusal& refusal) {
  Failure failure;
  // Info() has the fallback: a kind that is not known here becomes delivery_uncertain, and the advice that came with it
  // is not followed either.
  const KindInfo& info = Info(refusal.kind());
  failure.kind = info.kind;
  failure.code = refusal.code();
  failure.message = refusal.message();
  const bool known = info.kind == refusal.kind();
  failure.retry = known && refusal.retry() != v1::RETRY_UNSPECIFIED ? refusal.retry() : info.retry;
  return failure;
}

Failure FromStatus(const grpc::Status& status) {
  const Details details = ReadDetails(status);
  Failure failure;
  failure.message = status.error_message();
  if (details.info) {
    failure.code = details.info->reason();
    failure.kind = KindOfCode(failure.code).value_or(KindOfStatus(status.error_code()));
    if (details.retry) failure.retry_delay = DelayOf(*details.retry);
  } else {
    failure.code = std::string(kTransportCode);
    failure.kind = KindOfForeignStatus(status.error_code());
  }
  failure.retry = failure.info().retry;
  return failure;
}

}  // namespace tally::client
