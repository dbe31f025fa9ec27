// tally: permits, calls, parked calls, receipts, keys and reports from a command line.
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/permit_file.h"
#include "lib/keys/hash.h"
#include "lib/keys/secret.h"

namespace tally::cli {
namespace {

constexpr char kAbout[] =
    "Tallystick's command line: permits, calls, parked calls, receipts, keys and reports.\n"
    "Exit codes: 0 done; 1 failed; 2 usage; 3 unavailable, try again with the same key and attempt id.\n"
    "`tally call authorize` also: 10 denied, 11 contended, 12 cap exceeded, 13 pending, 14 done before.";

void AddOptions(CLI::App& app, Session& session) {
  Options& options = session.options;
  app.add_option("--server", options.endpoint.server, "unix:PATH, or HOST:PORT with TLS")
      ->envname("TALLY_SERVER")
      ->type_name("ADDR");
  app.add_option("--credential", options.credential_file, "file that holds one credential, as principal create gave it")
      ->envname("TALLY_CREDENTIAL")
      ->type_name("FILE");
  app.add_option("--ca", options.endpoint.ca_file, "PEM: who signs the server's certificate")->type_name("FILE");
  app.add_option("--cert", options.endpoint.certificate_file, "PEM: a client certificate")->type_name("FILE");
  app.add_option("--key", options.endpoint.key_file, "PEM: the client certificate's key")->type_name("FILE");
  app.add_option_function<std::string>(
         "-o,--output", [&options](const std::string& form) { options.json = form == "json"; },
         "table, for people, or json, one document with stable names")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("FORM");
  app.add_option_function<std::string>(
         "--timeout",
         [&options](const std::string& text) {
           const auto ms = ParseDuration(text);
           if (!ms.ok() || *ms < 1 || *ms > 86'400'000)
             throw CLI::ValidationError("--timeout", "must be a time such as 10s");
           options.timeout = std::chrono::milliseconds(*ms);
         },
         "how long to wait for the server, retries included (default 10s)")
      ->type_name("TIME");
}

int Main(int argc, char** argv) {
  keys::EnsureSodium();
  // Credentials and permit tokens pass through here.
  if (!keys::DisableCoreDumps()) {
    std::fputs("tally: the system refused to turn core dumps off, and secrets could end up in one\n", stderr);
    return kFailed;
  }
  CLI::App app(kAbout, "tally");
  app.set_version_flag("--version", std::string("tally ") + TALLY_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag("--help-all", "Help of all commands");
  Program program;
  AddOptions(app, program.session);
  AddTenant(app, program);
  AddPrincipal(app, program);
  AddPermit(app, program);
  AddCall(app, program);
  AddParked(app, program);
  AddReceipt(app, program);
  AddKey(app, program);
  AddReport(app, program);
  AddWebhook(app, program);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return program.session.Usage(std::string(error.what()) + "\nNothing was done. See tally --help.");
  }
  return program.run ? program.run() : kUsage;
}

}  // namespace
}  // namespace tally::cli

int main(int argc, char** argv) { return tally::cli::Main(argc, argv); }
