// tally-reconciler: takes parked calls, asks providers what became of them, and closes them with evidence.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "lib/keys/secret.h"
#include "reconciler/check.h"
#include "reconciler/config/config.h"
#include "reconciler/serve.h"

namespace {

constexpr int kUsage = 2;

int WithConfig(const std::string& path, int (*run)(const tally::reconciler::Config& config)) {
  const auto config = tally::reconciler::LoadConfig(path);
  if (!config.ok()) {
    std::cerr << config.status().message() << "\nNothing was started.\n";
    return kUsage;
  }
  return run(*config);
}

}  // namespace

int main(int argc, char** argv) {
  if (!tally::keys::DisableCoreDumps()) {
    std::cerr << "The kernel refuses to keep this process' memory to itself. Nothing was started.\n";
    return 1;
  }
  // A program that ends without reading its input is an answer, not the end of the reconciler.
  signal(SIGPIPE, SIG_IGN);
  CLI::App app("Closes parked calls: asks providers what became of them, and brings tallyd the answer with evidence.");
  app.require_subcommand(1);
  std::string path;
  int code = kUsage;

  CLI::App* serve = app.add_subcommand("serve", "Work until SIGTERM; any number of them may, on one tenant");
  serve->add_option("CONFIG", path, "The configuration, TOML")->required();
  serve->callback([&] { code = WithConfig(path, tally::reconciler::Serve); });

  CLI::App* check =
      app.add_subcommand("check",
                         "Say how each tool is looked up, read the secrets, and ask tallyd; no provider is asked.\n"
                         "Exit codes: 0 all is well; 1 a secret or a program is not there, or tallyd refuses; 2 usage, "
                         "or the configuration "
                         "is refused; 3 tallyd could not be asked.");
  check->add_option("CONFIG", path, "The configuration, TOML")->required();
  check->callback([&] { code = WithConfig(path, tally::reconciler::Check); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return code;
}
