#include "server/rpc/checks.h"

#include <algorithm>

#include "lib/decide/prepare.h"
#include "lib/keys/text.h"
#include "server/ledger/ids.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

constexpr size_t kSourceBytesMax = 128;
constexpr size_t kReferenceBytesMax = 1024;
constexpr size_t kReasonBytesMax = 1024;

}  // namespace

bool IsLine(std::string_view text, size_t bytes_max) {
  return !text.empty() && text.size() <= bytes_max &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

grpc::Status CheckKey(std::string_view name, std::string_view key) {
  if (decide::IsKey(key)) return grpc::Status::OK;
  if (key.size() > 255) return OverLimit(keys::Cat(name, " has ", key.size(), " bytes; at most 255 are taken"));
  return Malformed(keys::Cat(name, " must be 1 to 255 bytes without control characters"));
}

grpc::Status CheckAttemptId(std::string_view id) {
  if (id.size() == 16) return grpc::Status::OK;
  return Malformed(keys::Cat("attempt_id must be 16 random bytes; it has ", id.size()));
}

grpc::Status CheckLeaseMs(int64_t lease_ms) {
  if (lease_ms >= decide::kLeaseMin / 1000 && lease_ms <= decide::kLeaseMax / 1000) return grpc::Status::OK;
  return OverLimit("lease_ms must be 1000 (1 s) to 86400000 (24 h)");
}

grpc::Status CheckEvidence(const v1::Evidence& evidence, bool reason_required) {
  if (!IsLine(evidence.source(), kSourceBytesMax)) {
    return Malformed("evidence.source must be 1 to 128 bytes without control characters");
  }
  if (!IsLine(evidence.reference(), kReferenceBytesMax)) {
    return Malformed("evidence.reference must be 1 to 1024 bytes without control characters");
  }
  if (reason_required && evidence.reason().empty()) return Malformed("evidence.reason is required of a person");
  if (!evidence.reason().empty() && !IsLine(evidence.reason(), kReasonBytesMax)) {
    return Malformed("evidence.reason must be at most 1024 bytes without control characters");
  }
  if (evidence.body().empty()) return Malformed("evidence.body must not be empty");
  if (evidence.body().size() > kEvidenceBytesMax) {
    return OverLimit(keys::Cat("evidence.body has ", evidence.body().size(), " bytes; at most 1 MiB is taken"));
  }
  if (evidence.observed_at_us() < 0) return Malformed("evidence.observed_at_us must not be negative");
  if (evidence.has_amount() && evidence.amount() < 0) return Malformed("evidence.amount must not be negative");
  return grpc::Status::OK;
}

grpc::Status ReadId(std::string_view text, decide::Id& id) {
  const auto parsed = ledger::ParseId(text);
  if (!parsed || !keys::IsUuid7(ledger::Bytes(*parsed))) return NotFound();
  id = *parsed;
  return grpc::Status::OK;
}

grpc::Status ReadPageSize(int asked, int& size) {
  if (asked < 0 || asked > kPageMax) return OverLimit("page_size must be 0 (100) to 1000");
  size = asked == 0 ? kPageDefault : asked;
  return grpc::Status::OK;
}

grpc::Status ReadPageToken(std::string_view token, decide::Id& after) {
  after = {};
  if (token.empty()) return grpc::Status::OK;
  const auto parsed = ledger::ParseId(token);
  if (!parsed) return Malformed("page_token is not one that this service gave");
  after = *parsed;
  return grpc::Status::OK;
}

}  // namespace tally::rpc
