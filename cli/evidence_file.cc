#include "cli/evidence_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/call_name.h"
#include "cli/export_files.h"
#include "cli/session.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/receipt/json.h"

namespace tally::cli {
namespace {

constexpr size_t kSaltFileBytesMax = 64 << 10;

absl::Status ReadSalt(const std::string& file, const std::string& salt_hex, std::string& salt) {
  std::string hex = salt_hex;
  if (hex.empty()) {
    const auto text = ReadFile(file + ".json", kSaltFileBytesMax);
    if (!text.ok()) {
      return absl::Status(text.status().code(), absl::StrCat(text.status().message(),
                                                             ", which should hold the salt; or give it: --salt HEX"));
    }
    const Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("salt") || !json["salt"].is_string()) {
      return absl::InvalidArgumentError(absl::StrCat(file, ".json holds no salt"));
    }
    hex = json["salt"].get<std::string>();
  }
  salt = keys::HexDecode(hex).value_or("");
  if (salt.size() != keys::kSaltSize) return absl::InvalidArgumentError("a salt is 32 bytes, 64 hex digits");
  return absl::OkStatus();
}

bool Fits(const std::string& commitment, keys::Domain domain, const KeptEvidence& kept) {
  return !commitment.empty() && keys::Commit(domain, kept.salt, kept.body).view() == commitment;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> WriteEvidence(const std::string& folder, const v1::CallInfo& call,
                                                       const v1::EvidenceInfo& evidence) {
  const std::string id = keys::HexEncode(evidence.receipt_id());
  const std::string path = absl::StrCat(folder, "/", id, ".evidence");
  const Json document = {{"receipt_id", id},
                         {"call_id", call.call_id()},
                         {"attempt_id", keys::HexEncode(evidence.attempt_id())},
                         {"source", evidence.source()},
                         {"reference", evidence.reference()},
                         {"reason", evidence.reason()},
                         {"observed_at", receipt::Rfc3339(evidence.observed_at_us())},
                         {"recorded_at", receipt::Rfc3339(evidence.time_us())},
                         {"principal_id", evidence.principal_id()},
                         {"salt", keys::HexEncode(evidence.salt())},
                         {"salt_base64", keys::Base64Encode(evidence.salt())}};
  if (absl::Status status = WriteFile(path, evidence.body()); !status.ok()) return status;
  if (absl::Status status = WriteFile(path + ".json", Document(document)); !status.ok()) return status;
  return std::vector<std::string>{path, path + ".json"};
}

absl::StatusOr<KeptEvidence> ReadKeptEvidence(const std::string& file, const std::string& salt_hex) {
  auto body = ReadFile(file, kEvidenceBytesMax);
  if (!body.ok()) return body.status();
  KeptEvidence kept;
  kept.file = file;
  kept.body = *std::move(body);
  if (absl::Status read = ReadSalt(file, salt_hex, kept.salt); !read.ok()) return read;
  return kept;
}

EvidenceReport CheckEvidence(const KeptEvidence& kept, const std::vector<receipt::ReceiptReport>& receipts) {
  int committing = 0;
  for (const receipt::ReceiptReport& report : receipts) {
    if (!report.payload) continue;
    const v1::ReceiptPayload& payload = *report.payload;
    const bool evidence = Fits(payload.evidence_commitment(), keys::Domain::kEvidence, kept);
    const bool result = Fits(payload.result_commitment(), keys::Domain::kResult, kept);
    committing += !payload.evidence_commitment().empty() || !payload.result_commitment().empty();
    if (!evidence && !result) continue;
    const std::string id = keys::HexEncode(report.id);
    return {report.outcome, id,
            absl::StrCat(kept.file, " is the ", evidence ? "evidence" : "result", " that ",
                         receipt::KindName(payload.kind()), " ", id, " commits to",
                         report.outcome == receipt::Outcome::kGood ? "" : ", but that receipt is not good itself")};
  }
  if (committing == 0) {
    return {receipt::Outcome::kInconclusive, "",
            absl::StrCat("none of these receipts commits to evidence, so nothing is known of ", kept.file)};
  }
  return {receipt::Outcome::kBad, "",
          absl::StrCat(kept.file, " is not what ",
                       committing == 1 ? "the receipt commits" : "any of these receipts commits",
                       " to: other bytes, or another salt, than were used")};
}

}  // namespace tally::cli
