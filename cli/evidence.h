// What a provider or a person showed, as options of the commands that put a call right by hand.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "tally/v1/calls.pb.h"

namespace tally::cli {

struct EvidenceOptions {
  std::string verdict;
  std::string source;
  std::string reference;
  std::string file;
  std::string reason;
  std::string observed_at;
  std::optional<int64_t> amount;
  std::optional<std::string> result;
};

std::shared_ptr<EvidenceOptions> AddEvidenceOptions(CLI::App& command, std::vector<std::string> verdicts);

v1::Verdict VerdictOf(const EvidenceOptions& options);
absl::StatusOr<v1::Evidence> ReadEvidence(const EvidenceOptions& options);

}  // namespace tally::cli
