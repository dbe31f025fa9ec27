// tally call evidence: what an operator hands to an auditor.
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/evidence_file.h"
#include "cli/export_files.h"

namespace tally::cli {
namespace {

int Evidence(Session& session, const std::string& call_id, const std::string& folder) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::GetCallRequest request;
  request.set_call_id(call_id);
  const auto call = client->GetCall(request, session.call_options());
  if (!call.ok()) return session.Fail(call.failure());
  if (const absl::Status made = MakeFolder(folder); !made.ok()) return session.Failed(std::string(made.message()));
  std::vector<std::string> files;
  int erased = 0;
  for (const v1::EvidenceInfo& evidence : call.value().evidence()) {
    if (evidence.receipt_id().empty()) continue;  // a note, which nothing commits to
    if (evidence.salt().empty()) {
      ++erased;
      continue;
    }
    const auto written = WriteEvidence(folder, call.value(), evidence);
    if (!written.ok()) {
      return session.Failed(absl::StrCat(written.status().message(), ". ", files.size(), " file(s) were written."));
    }
    files.insert(files.end(), written->begin(), written->end());
  }
  if (erased > 0) Tell(absl::StrCat(erased, " piece(s) of evidence are erased; only their commitments stand."));
  std::string text = files.empty() ? "No receipt of this call rests on evidence.\n" : "Written:\n";
  for (const std::string& file : files) text += "  " + file + "\n";
  if (!files.empty()) {
    text +=
        "Whoever has the receipt can prove that it rests on this: tally receipt verify ID.dsse.json --keys "
        "keys.json --evidence ID.evidence\n";
  }
  return session.Done({{"out", folder}, {"files", files}, {"erased", erased}}, text);
}

}  // namespace

void AddCallEvidence(CLI::App& call, Program& program) {
  CLI::App* command = call.add_subcommand(
      "evidence", "Write a call's evidence as RECEIPT_ID.evidence, with its salt beside it (role: operator)");
  auto id = std::make_shared<std::string>();
  auto folder = std::make_shared<std::string>(".");
  command->add_option("ID", *id, "the call")->required();
  command->add_option("--out", *folder, "folder (default: the current one)")->type_name("DIR");
  command->callback([&program, id, folder] {
    program.run = [&program, id, folder] { return Evidence(program.session, *id, *folder); };
  });
}

}  // namespace tally::cli
