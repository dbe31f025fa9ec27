// tally receipt verify: offline, with nothing but files and the keys that are trusted.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/evidence_file.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"
#include "lib/keys/key_file.h"
#include "lib/keys/uuid.h"
#include "lib/receipt/dsse.h"
#include "lib/receipt/json.h"
#include "lib/receipt/jws.h"
#include "lib/receipt/verify_set.h"

namespace tally::cli {
namespace {

using receipt::Outcome;

constexpr size_t kFileBytesMax = 256 << 20;
// Of more receipts than this, only those with a fault are told one by one.
constexpr size_t kToldOneByOneMax = 3;

struct Checked {
  receipt::SetReport set;
  std::vector<receipt::ReceiptReport> others;  // JWS, and files that hold no receipt
  std::optional<EvidenceReport> evidence;
  Outcome outcome = Outcome::kGood;
};

// Bad beats unreadable beats inconclusive beats good: the exit code tells the worst.
void Worsen(Outcome* worst, Outcome outcome) {
  const auto rank = [](Outcome o) {
    return o == Outcome::kBad ? 3 : o == Outcome::kUnreadable ? 2 : o == Outcome::kInconclusive ? 1 : 0;
  };
  if (rank(outcome) > rank(*worst)) *worst = outcome;
}

receipt::ReceiptReport Unreadable(const std::string& file, const absl::Status& why) {
  receipt::ReceiptReport report;
  report.source = file;
  report.effect = "nothing is known";
  report.outcome = Outcome::kUnreadable;
  report.fault = std::string(why.message());
  return report;
}

// A JWS is a second signature, over the JSON projection; it names the receipt by its id.
receipt::ReceiptReport VerifyJws(const std::string& file, std::string_view text, const keys::KeyRing& ring) {
  receipt::ReceiptReport report;
  report.source = file;
  report.effect = "as its JSON projection says; the signature does not prove it";
  const auto jws = receipt::FromJws(text, ring);
  if (!jws.ok()) {
    const bool unknown_key = absl::IsNotFound(jws.status());
    report.signature = unknown_key ? receipt::SignatureLine::kNotChecked : receipt::SignatureLine::kInvalid;
    report.issuer = receipt::IssuerLine::kUnknownKey;
    report.outcome = unknown_key ? Outcome::kInconclusive : Outcome::kBad;
    report.fault = std::string(jws.status().message());
    return report;
  }
  report.signature = receipt::SignatureLine::kValid;
  report.id = keys::HexDecode(jws->payload.value("receipt_id", "")).value_or("");
  const keys::KnownKey* key = ring.Find(jws->payload.value("issuer", ""), jws->key_id);
  if (key == nullptr) {
    report.outcome = Outcome::kInconclusive;
    report.fault = "its key is not among those that are trusted";
  } else if (key->status == keys::KeyStatus::kRevoked) {
    report.issuer = receipt::IssuerLine::kRevoked;
    report.outcome = Outcome::kBad;
    report.fault = "its key is revoked";
  } else if (!key->Covers(jws->payload.value("time_us", int64_t{0}))) {
    report.issuer = receipt::IssuerLine::kNotAtThatTime;
    report.outcome = Outcome::kBad;
    report.fault = "its key was not in use at that time";
  } else {
    report.issuer = receipt::IssuerLine::kTrusted;
  }
  return report;
}

std::string_view Stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

Checked Check(const std::vector<std::string>& files, const keys::KeyRing& ring) {
  Checked checked;
  std::vector<receipt::Input> inputs;
  for (const std::string& file : files) {
    const auto text = ReadFile(file, kFileBytesMax);
    if (!text.ok()) {
      checked.others.push_back(Unreadable(file, text.status()));
      continue;
    }
    const std::string_view content = Stripped(*text);
    if (!content.empty() && content.front() != '{') {
      checked.others.push_back(VerifyJws(file, content, ring));
      continue;
    }
    auto envelope = receipt::FromDsseJson(content);
    if (envelope.ok()) {
      inputs.push_back({file, *std::move(envelope)});
    } else {
      checked.others.push_back(Unreadable(file, envelope.status()));
    }
  }
  checked.set = receipt::VerifySet(inputs, ring);
  checked.outcome = checked.set.outcome;
  for (const auto& report : checked.set.receipts) Worsen(&checked.outcome, report.outcome);
  for (const auto& report : checked.others) Worsen(&checked.outcome, report.outcome);
  return checked;
}

Json ReportJson(const receipt::ReceiptReport& report) {
  Json out = {{"source", report.source},
              {"receipt_id", report.id.empty() ? Json(nullptr) : Json(keys::HexEncode(report.id))},
              {"kind", nullptr},
              {"sequence", nullptr},
              {"signature", receipt::SignatureLineText(report.signature)},
              {"issuer", receipt::IssuerLineText(report.issuer)},
              {"effect", report.effect},
              {"outcome", receipt::OutcomeName(report.outcome)},
              {"fault", report.fault ? Json(*report.fault) : Json(nullptr)}};
  if (report.payload) {
    out["kind"] = receipt::KindName(report.payload->kind());
    out["sequence"] = report.payload->sequence();
  }
  return out;
}

Json CheckedJson(const Checked& checked) {
  Json receipts = Json::array();
  for (const auto* reports : {&checked.set.receipts, &checked.others}) {
    for (const auto& report : *reports) receipts.push_back(ReportJson(report));
  }
  Json chains = Json::array();
  for (const receipt::ChainReport& chain : checked.set.chains) {
    chains.push_back({{"tenant", chain.tenant},
                      {"permit_id", chain.permit_id.empty() ? Json(nullptr) : Json(keys::UuidText(chain.permit_id))},
                      {"first_sequence", chain.first},
                      {"last_sequence", chain.last},
                      {"receipts", chain.receipts},
                      {"complete", chain.complete},
                      {"outcome", receipt::OutcomeName(chain.outcome)},
                      {"faults", chain.faults},
                      {"not_checked", chain.not_checked}});
  }
  Json evidence;
  if (checked.evidence) {
    const std::string& id = checked.evidence->receipt_id;
    evidence = {{"outcome", receipt::OutcomeName(checked.evidence->outcome)},
                {"receipt_id", id.empty() ? Json(nullptr) : Json(id)},
                {"says", checked.evidence->line}};
  }
  return {{"outcome", receipt::OutcomeName(checked.outcome)},
          {"receipts", std::move(receipts)},
          {"chains", std::move(chains)},
          {"evidence", std::move(evidence)},
          {"not_checked", checked.set.not_checked}};
}

std::string ReportText(const receipt::ReceiptReport& report) {
  std::string text = report.source + "\n";
  if (report.payload) {
    absl::StrAppend(&text, "  ", receipt::KindName(report.payload->kind()), ", number ", report.payload->sequence(),
                    " of its chain, ", LocalTime(report.payload->time_us()), "\n");
  }
  const std::string_view signature = receipt::SignatureLineText(report.signature);
  const std::string_view issuer = receipt::IssuerLineText(report.issuer);
  text += "  signature  " + std::string(signature) + "\n";
  text += "  issuer     " + std::string(issuer) + "\n";
  text += "  effect     " + report.effect + "\n";
  if (report.fault) text += "  " + std::string(receipt::OutcomeName(report.outcome)) + ": " + *report.fault + "\n";
  return ForTerminal(text, LineFeeds::kKeep);
}

std::string ChainText(const receipt::ChainReport& chain) {
  std::string text = chain.permit_id.empty() ? absl::StrCat("chain of tenant ", chain.tenant)
                                             : absl::StrCat("chain of permit ", keys::UuidText(chain.permit_id),
                                                            " (tenant ", chain.tenant, ")");
  absl::StrAppend(&text, ": ", chain.receipts, " receipt(s), numbers ", chain.first, " to ", chain.last, ", ",
                  chain.complete ? "complete" : "not known to be complete", ": ");
  text += std::string(receipt::OutcomeName(chain.outcome)) + "\n";
  for (const std::string& fault : chain.faults) text += "  fault: " + fault + "\n";
  for (const std::string& what : chain.not_checked) text += "  not checked: " + what + "\n";
  return ForTerminal(text, LineFeeds::kKeep);
}

std::string CheckedText(const Checked& checked) {
  const size_t total = checked.set.receipts.size() + checked.others.size();
  size_t valid = 0;
  size_t trusted = 0;
  std::string text;
  for (const auto* reports : {&checked.set.receipts, &checked.others}) {
    for (const auto& report : *reports) {
      valid += report.signature == receipt::SignatureLine::kValid;
      trusted += report.issuer == receipt::IssuerLine::kTrusted;
      if (total <= kToldOneByOneMax || report.outcome != Outcome::kGood) text += ReportText(report);
    }
  }
  if (total > kToldOneByOneMax) {
    absl::StrAppend(&text, "signature  valid on ", valid, " of ", total, " receipts\n");
    absl::StrAppend(&text, "issuer     trusted for ", trusted, " of ", total, " receipts\n");
    text += "effect     as each receipt says; no signature proves what happened outside\n";
  }
  for (const receipt::ChainReport& chain : checked.set.chains) text += ChainText(chain);
  for (const std::string& what : checked.set.not_checked) text += ForTerminal("not checked: " + what) + "\n";
  if (checked.evidence) text += "evidence   " + ForTerminal(checked.evidence->line) + "\n";
  text += "result     " + std::string(receipt::OutcomeName(checked.outcome)) + "\n";
  return text;
}

struct VerifyOptions {
  std::vector<std::string> files;
  std::string keys_file;
  std::string evidence;
  std::string salt;
};

int Verify(Session& session, const VerifyOptions& options) {
  const auto text = ReadFile(options.keys_file, kFileBytesMax);
  if (!text.ok()) return session.Usage(absl::StrCat("--keys: ", text.status().message()));
  const auto ring = keys::KeyRing::Parse(*text);
  if (!ring.ok()) return session.Usage(absl::StrCat("--keys: ", options.keys_file, ": ", ring.status().message()));
  if (options.evidence.empty() && !options.salt.empty()) return session.Usage("--salt belongs to --evidence FILE");
  Checked checked = Check(options.files, *ring);
  if (!options.evidence.empty()) {
    const auto kept = ReadKeptEvidence(options.evidence, options.salt);
    if (!kept.ok()) return session.Usage(absl::StrCat("--evidence: ", kept.status().message()));
    checked.evidence = CheckEvidence(*kept, checked.set.receipts);
    Worsen(&checked.outcome, checked.evidence->outcome);
  }
  const int written = session.Done(CheckedJson(checked), session.json() ? "" : CheckedText(checked));
  return written == kDone ? static_cast<int>(checked.outcome) : written;
}

}  // namespace

void AddReceiptVerify(CLI::App& receipt, Program& program) {
  CLI::App* command = receipt.add_subcommand(
      "verify",
      "Check receipts offline. Exit code: 0 all good, 1 a receipt is bad, 2 usage or unreadable, 3 inconclusive");
  auto options = std::make_shared<VerifyOptions>();
  command
      ->add_option("FILE", options->files,
                   "ID.dsse.json or ID.jws files; several of one chain are also checked together")
      ->required();
  command->add_option("--keys", options->keys_file, "keys.json, a JWK Set, PEM, or vkeys: whom you trust")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--evidence", options->evidence,
                   "prove that this file is what one of the receipts commits to; its salt is in FILE.json")
      ->type_name("FILE");
  command->add_option("--salt", options->salt, "the evidence's salt, in place of FILE.json")->type_name("HEX");
  command->callback(
      [&program, options] { program.run = [&program, options] { return Verify(program.session, *options); }; });
}

}  // namespace tally::cli
