#include "cli/evidence.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/call_name.h"
#include "cli/session.h"

namespace tally::cli {

std::shared_ptr<EvidenceOptions> AddEvidenceOptions(CLI::App& command, std::vector<std::string> verdicts) {
  auto options = std::make_shared<EvidenceOptions>();
  std::string words;
  for (const std::string& verdict : verdicts) absl::StrAppend(&words, words.empty() ? "" : ", ", verdict);
  command.add_option("--verdict", options->verdict, words)->check(CLI::IsMember(std::move(verdicts)))->required();
  command.add_option("--source", options->source, "who says so: the provider's name, or your own")->required();
  command.add_option("--reference", options->reference, "where to find it again, such as the provider's id")
      ->required();
  command.add_option("--evidence", options->file, "what was shown, byte for byte; @- is standard input")
      ->type_name("@FILE")
      ->required();
  command.add_option("--reason", options->reason, "why you conclude this")->required();
  command.add_option("--observed-at", options->observed_at, "when it was seen, RFC 3339 (default now)")
      ->type_name("TIME");
  command.add_option("--amount", options->amount, "what it cost according to the evidence, minor units");
  command.add_option("--result", options->result, "the answer, as the provider now shows it")->type_name("JSON|@FILE");
  return options;
}

v1::Verdict VerdictOf(const EvidenceOptions& options) {
  if (options.verdict == "happened") return v1::VERDICT_HAPPENED;
  if (options.verdict == "not-happened") return v1::VERDICT_NOT_HAPPENED;
  return v1::VERDICT_CANNOT_TELL;
}

absl::StatusOr<v1::Evidence> ReadEvidence(const EvidenceOptions& options) {
  v1::Evidence evidence;
  if (options.file.rfind('@', 0) != 0) {
    return absl::InvalidArgumentError("--evidence takes @FILE: what was shown is kept as it is, not retyped");
  }
  auto body = TextOrFile(options.file, kEvidenceBytesMax);
  if (!body.ok()) return body.status();
  if (body->empty()) return absl::InvalidArgumentError("the evidence is empty");
  evidence.set_source(options.source);
  evidence.set_reference(options.reference);
  evidence.set_body(*std::move(body));
  evidence.set_reason(options.reason);
  if (!options.observed_at.empty()) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, options.observed_at, &time, &error)) {
      return absl::InvalidArgumentError("--observed-at must be a time such as 2027-01-31T12:00:00Z");
    }
    evidence.set_observed_at_us(absl::ToUnixMicros(time));
  }
  if (options.amount) evidence.set_amount(*options.amount);
  if (options.result) {
    auto result = TextOrFile(*options.result, kResultBytesMax);
    if (!result.ok()) return result.status();
    evidence.set_result(*std::move(result));
  }
  return evidence;
}

}  // namespace tally::cli
