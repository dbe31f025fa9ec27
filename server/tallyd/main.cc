#include <CLI/CLI.hpp>
#include <iostream>

#include "lib/keys/hash.h"
#include "lib/keys/secret.h"
#include "server/tallyd/commands.h"

int main(int argc, char** argv) {
  // First of all: a crash must not write keys to disk.
  tally::keys::EnsureSodium();
  if (!tally::keys::DisableCoreDumps()) {
    std::cerr << "tallyd: core dumps could not be turned off, and one would hold keys. Nothing was done.\n";
    return 1;
  }
  CLI::App app("The authority: decides, signs and keeps what agents' tool calls may do.", "tallyd");
  app.set_version_flag("--version", TALLY_VERSION);
  app.require_subcommand(1);
  std::string data_dir;
  auto command = [&](const char* name, const char* what) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->add_option("--data-dir", data_dir, "Folder for configuration, keys and the private database")->required();
    return sub;
  };
  CLI::App* init = command("init", "Make configuration, keys and the first admin; overwrites nothing");
  CLI::App* serve = command("serve", "Serve until SIGTERM or SIGINT");
  CLI::App* migrate = command("migrate", "Bring the database's schema up to date");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  absl::Status status;
  if (init->parsed()) status = tally::tallyd::Init(data_dir);
  if (serve->parsed()) status = tally::tallyd::Serve(data_dir);
  if (migrate->parsed()) status = tally::tallyd::Migrate(data_dir);
  if (status.ok()) return 0;
  std::cerr << "tallyd: " << status.message() << "\n";
  return 1;
}
