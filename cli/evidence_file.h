// Kept evidence as files, and the proof that a file is what a receipt commits to.
//
// NAME.evidence holds the bytes as they were given; NAME.evidence.json what is needed beside them: the salt, the
// receipt that commits to them, and who said so. The salt is no secret once the bytes are shown: it only keeps those
// who have the receipt alone from guessing them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/json_form.h"
#include "lib/receipt/verify.h"
#include "tally/v1/calls.pb.h"

namespace tally::cli {

// Writes both files of a piece of evidence that a receipt cites; returns their names.
absl::StatusOr<std::vector<std::string>> WriteEvidence(const std::string& folder, const v1::CallInfo& call,
                                                       const v1::EvidenceInfo& evidence);

struct KeptEvidence {
  std::string file;
  std::string body;
  std::string salt;
};

// The bytes, and the salt from `salt_hex` or, where that is empty, from FILE.json.
absl::StatusOr<KeptEvidence> ReadKeptEvidence(const std::string& file, const std::string& salt_hex);

struct EvidenceReport {
  receipt::Outcome outcome = receipt::Outcome::kGood;
  std::string receipt_id;  // the one that commits to it; empty: none
  std::string line;        // for a person
};

// Good: one of the receipts commits to these bytes, and is itself good. Bad: receipts commit to evidence, none to this.
// Inconclusive: no receipt that could be read commits to any.
EvidenceReport CheckEvidence(const KeptEvidence& kept, const std::vector<receipt::ReceiptReport>& receipts);

}  // namespace tally::cli
