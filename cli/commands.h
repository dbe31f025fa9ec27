// The nouns of `tally`. Each adds its subcommands; a chosen command leaves in `run` what main is to do.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/session.h"

namespace tally::cli {

struct Program {
  Session session;
  std::function<int()> run;
};

void AddTenant(CLI::App& app, Program& program);
void AddPrincipal(CLI::App& app, Program& program);
void AddPermit(CLI::App& app, Program& program);
void AddCall(CLI::App& app, Program& program);
void AddParked(CLI::App& app, Program& program);
void AddReceipt(CLI::App& app, Program& program);
void AddKey(CLI::App& app, Program& program);
void AddReport(CLI::App& app, Program& program);
void AddWebhook(CLI::App& app, Program& program);

// Commands of a noun that have a file of their own.
void AddCallAuthorize(CLI::App& call, Program& program);
void AddCallEvidence(CLI::App& call, Program& program);
void AddReceiptExport(CLI::App& receipt, Program& program);
void AddReceiptVerify(CLI::App& receipt, Program& program);

}  // namespace tally::cli
