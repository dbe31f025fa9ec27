// tally-gateway: agents speak MCP to it, it speaks MCP to tool servers, and asks tallyd before every call.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "gateway/check.h"
#include "gateway/config/config.h"
#include "gateway/serve.h"
#include "lib/keys/secret.h"

namespace {

constexpr int kUsage = 2;

int WithConfig(const std::string& path, int (*run)(const tally::gateway::Config&)) {
  const auto config = tally::gateway::LoadConfig(path);
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
  // A closed pipe or socket is an error of the write, not the end of the gateway.
  signal(SIGPIPE, SIG_IGN);
  CLI::App app(
      "An MCP gateway that asks tallyd before every tool call, sends each at most once, and keeps the record.");
  app.require_subcommand(1);
  std::string path;
  int code = kUsage;

  CLI::App* serve = app.add_subcommand("serve", "Serve agents over HTTP, or one over stdin and stdout with --stdio");
  serve->add_option("CONFIG", path, "The configuration, TOML")->required();
  bool stdio = false;
  serve->add_flag("--stdio", stdio, "One agent on stdin and stdout; its permit token by permit.stdio");
  serve->callback([&] { code = WithConfig(path, stdio ? tally::gateway::ServeStdio : tally::gateway::ServeHttp); });

  CLI::App* check = app.add_subcommand("check", "Connect to every upstream and list its tools");
  check->add_option("CONFIG", path, "The configuration, TOML")->required();
  check->callback([&] { code = WithConfig(path, tally::gateway::Check); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return code;
}
