#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/gateway/load.h"

// Prints what it measured as one JSON object.
int main(int argc, char** argv) {
  tally::bench::McpLoadOptions options;
  std::string tokens_file;
  double warm_up = 2;
  double seconds = 6;
  CLI::App app("Loads an MCP endpoint on loopback: calls a second, and how long one takes.");
  app.add_option("--port", options.port, "of the endpoint on 127.0.0.1")->required();
  app.add_option("--path", options.path, "of the endpoint");
  app.add_option("--tokens", tokens_file, "file of permit tokens, one a line; callers share them out");
  app.add_option("--method", options.method, "tools/call, prompts/get")
      ->check(CLI::IsMember({"tools/call", "prompts/get"}));
  app.add_option("--name", options.name, "of the tool or prompt");
  app.add_option("--callers", options.callers, "calls in flight")->check(CLI::Range(1, 4096));
  app.add_option("--warm-up", warm_up, "seconds before the measured time")->check(CLI::Range(0.0, 60.0));
  app.add_option("--seconds", seconds, "measured time")->check(CLI::Range(0.1, 600.0));
  CLI11_PARSE(app, argc, argv);
  if (!tokens_file.empty()) {
    std::ifstream file(tokens_file);
    for (std::string line; std::getline(file, line);) options.tokens.push_back(line);
    if (options.tokens.empty()) {
      std::cerr << "mcp-load: no token can be read from " << tokens_file << "\n";
      return 2;
    }
  }
  options.warm_up = std::chrono::milliseconds(static_cast<int64_t>(warm_up * 1000));
  options.window = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  const tally::bench::McpLoadResult result = RunMcpLoad(options);
  std::cout << nlohmann::json{{"calls_per_s", result.calls_per_s}, {"p50_ms", result.p50_ms},
                              {"p99_ms", result.p99_ms},           {"calls", result.calls},
                              {"failed", result.failed},           {"first_failure", result.first_failure}}
                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
            << std::endl;
  return 0;
}
