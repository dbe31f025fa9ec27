// tally-gateway: agents speak MCP to it, it speaks MCP to tool servers, and asks tallyd before every call.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "gateway/accept.h"
#include "gateway/check.h"
#include "gateway/config/config.h"
#include "gateway/serve.h"
#include "lib/keys/secret.h"

namespace {

constexpr int kUsage = 2;

template <typename Run>
int WithConfig(const std::string& path, Run run) {
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

  CLI::App* check = app.add_subcommand(
      "check",
      "Connect to every upstream and list its tools: how each is sent and, given a permit, which grant covers it.\n"
      "Exit codes: 0 all is well; 1 an upstream or the permit is not; 2 usage, or the configuration is refused; 3 "
      "tallyd "
      "could not be asked about the permit; 4 a tool has changed since it was pinned.");
  check->add_option("CONFIG", path, "The configuration, TOML")->required();
  tally::gateway::CheckOptions check_options;
  check
      ->add_option("--permit", check_options.permit,
                   "Where a permit token is: env:NAME or file:PATH (mode 0600), never the token itself. Default: "
                   "TALLY_PERMIT_TOKEN, where the environment has it")
      ->type_name("SOURCE")
      ->check([](const std::string& source) {
        // What was given is not repeated: it may be the token.
        const bool known = source.size() > 5 && (source.starts_with("env:") || source.starts_with("file:"));
        return known ? "" : "it must be env:NAME or file:PATH";
      });
  check
      ->add_option_function<std::string>(
          "-o,--output", [&](const std::string& form) { check_options.json = form == "json"; },
          "table, for people, or json, one document with stable names")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("FORM");
  check->callback([&] {
    code = WithConfig(path, [&](const tally::gateway::Config& config) { return Check(config, check_options); });
  });

  CLI::App* accept = app.add_subcommand(
      "accept",
      "Take an upstream's tools, or one of them, as they are now for what they are meant to be\n"
      "Exit codes: 0 accepted, or nothing to accept; 1 the upstream cannot be had, has no such tool, or the pin file "
      "cannot be written; 2 usage, or the configuration is refused.");
  std::string upstream;
  std::string tool;
  accept->add_option("CONFIG", path, "The configuration, TOML")->required();
  accept->add_option("UPSTREAM", upstream, "Its name in the configuration")->required();
  accept->add_option("TOOL", tool, "Its own name for the tool; without it, all of them");
  accept->callback([&] {
    code = WithConfig(path, [&](const tally::gateway::Config& config) { return Accept(config, upstream, tool); });
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return code;
}
