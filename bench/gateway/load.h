#ifndef TALLY_BENCH_GATEWAY_LOAD_H_
#define TALLY_BENCH_GATEWAY_LOAD_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace tally::bench {

struct McpLoadOptions {
  uint16_t port = 0;  // on 127.0.0.1
  std::string path = "/mcp";
  std::vector<std::string> tokens;    // caller i has token i modulo their number; none: no Authorization header
  std::string method = "tools/call";  // or prompts/get
  std::string name = "refund";
  int callers = 1;
  std::chrono::milliseconds warm_up{2'000}, window{6'000};
};

struct McpLoadResult {
  double calls_per_s = 0;
  double p50_ms = 0, p99_ms = 0;
  int64_t calls = 0;   // that ended inside the window, answered as they should be
  int64_t failed = 0;  // at any time
  std::string first_failure;
};

// Callers with an MCP session (2025-11-25) and a kept connection each, who call again as soon as they are answered.
// Every call has arguments of its own, which its answer must name. One thread. Bounded in time.
McpLoadResult RunMcpLoad(const McpLoadOptions& options);

}  // namespace tally::bench

#endif  // TALLY_BENCH_GATEWAY_LOAD_H_
