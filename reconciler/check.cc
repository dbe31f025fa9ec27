#include "reconciler/check.h"

#include <absl/time/time.h>

#include <iostream>

#include "reconciler/serve.h"

namespace tally::reconciler {
namespace {

std::string Readable(milliseconds duration) { return absl::FormatDuration(absl::FromChrono(duration)); }

void Say(const ToolConfig& tool) {
  std::cout << tool.tool << ": " << NameOf(tool.kind);
  if (tool.kind == Kind::kHuman) {
    std::cout << ", a person is called at once\n";
    return;
  }
  std::cout << " at " << tool.provider;
  if (tool.kind == Kind::kHttp) std::cout << ", " << tool.http.method << " " << tool.http.url.origin();
  if (tool.kind == Kind::kExec) std::cout << ", " << tool.exec.program;
  if (tool.kind == Kind::kMcp) std::cout << ", its tool " << tool.mcp.tool;
  if (tool.kind == Kind::kReplay) std::cout << ", sent again under its key while the provider knows it";
  if (tool.absent_is_final_after.count() > 0) {
    std::cout << "; an absence is final " << Readable(tool.absent_is_final_after)
              << " after it can last have been sent";
  }
  std::cout << "; a person is called after " << Readable(tool.give_up_after) << "\n";
}

}  // namespace

int Check(const Config& config) {
  for (const ToolConfig& tool : config.tools) Say(tool);
  std::cout << "all other tools: human, a person is called at once\n";
  const auto tallyd = OpenTallyd(config);
  if (!tallyd.ok()) {
    std::cerr << "tally-reconciler: " << tallyd.status().message() << "\n";
    return 1;
  }
  const auto look_ups = MakeLookUps(config, **tallyd, nullptr);
  if (!look_ups.ok()) {
    std::cerr << "tally-reconciler: " << look_ups.status().message() << "\n";
    return 1;
  }
  v1::ListParkedRequest request;
  request.set_claimable_only(true);
  request.set_page_size(1);
  client::CallOptions options;
  options.timeout = config.tallyd.timeout;
  const auto list = (*tallyd)->ListParked(request, options);
  if (list.ok()) {
    std::cout << "tallyd at " << config.tallyd.server << " answers\n";
    return 0;
  }
  std::cerr << "tally-reconciler: tallyd at " << config.tallyd.server << ": " << list.failure().code << ": "
            << list.failure().message << "\n";
  return list.failure().kind == v1::KIND_UNAVAILABLE ? 3 : 1;
}

}  // namespace tally::reconciler
