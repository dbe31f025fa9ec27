// The error map as code: what a refusal or a failed call means, decided by one question: did anything happen?
//
// Every answer of the service ends in one of ten kinds. A kind, never a message or a gRPC status, tells a program what
// it may do next. What is not known is treated as delivery_uncertain: nothing here ever turns ignorance into a retry.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "grpcpp/support/status.h"
#include "tally/v1/common.pb.h"

namespace tally::client {

enum class Happened {
  kNo,          // nothing was done
  kNothingNew,  // this call did nothing; earlier calls did
  kMaybe,       // it may have been carried out
  kEarlier,     // it was carried out before
  kAsRecorded,  // the record of the call says
  kUnknown,     // unknown here; the same key and attempt id, asked again, answers
};

struct KindInfo {
  v1::Kind kind;
  std::string_view name;  // denied, cap_exceeded, …: the word that machine-readable output uses
  Happened happened;
  v1::Retry retry;
  // What `tally call authorize`, and any program that stands in for a gateway in a shell script, exits with.
  int authorize_exit;
  std::string_view advice;  // one sentence for a person: what was done, and what to do next
};

// A kind that is not known here, KIND_UNSPECIFIED included, gets delivery_uncertain's.
const KindInfo& Info(v1::Kind kind);

// The kind that a stable code belongs to; nullopt for a code that is not known here.
std::optional<v1::Kind> KindOfCode(std::string_view code);

// Why there is no grant, or no answer.
struct Failure {
  v1::Kind kind = v1::KIND_DELIVERY_UNCERTAIN;
  std::string code;     // TOOL_NOT_GRANTED, CALL_CAP, …; TRANSPORT where the service itself did not speak
  std::string message;  // one sentence for a person
  v1::Retry retry = v1::RETRY_NEVER;
  // The server's wish, from RetryInfo: no retry sooner than this.
  std::optional<std::chrono::milliseconds> retry_delay;

  const KindInfo& info() const { return Info(kind); }
};

// A refusal that was an answer (gRPC status OK).
Failure FromRefusal(const v1::Refusal& refusal);

// A gRPC error. Its kind comes from google.rpc.ErrorInfo of domain tallystick.dev; an error without it was not spoken
// by the service but by something on the way, and is `unavailable` unless its status says that the request was turned
// away unread. The status must not be OK.
Failure FromStatus(const grpc::Status& status);

inline constexpr std::string_view kErrorDomain = "tallystick.dev";
inline constexpr std::string_view kTransportCode = "TRANSPORT";

}  // namespace tally::client
