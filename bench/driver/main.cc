#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/driver/child.h"
#include "bench/driver/report.h"
#include "bench/driver/stage.h"
#include "bench/load/load.h"

// Measures tallyd and the plain service side by side: every round runs all cases once, each on a fresh database.
namespace tally::bench {
namespace {

constexpr std::chrono::seconds kStartLimit{60};

struct Options {
  int rounds = 3;
  double seconds = 6;
  double warm_up = 2;
  int permits = 1000;
  int connections = 2;
  std::vector<std::string> works{"spread", "hot"};
  std::vector<std::string> systems{kTallyd, kPlain};
  std::vector<int> callers{64, 256};
  std::vector<int> pools{1, 8, 32};
  std::vector<std::string> settings;
  std::string json;
};

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

absl::StatusOr<LoadResult> RunOne(const Options& options, const Case& what, Stage& stage) {
  auto database = stage.NewDatabase();
  if (!database.ok()) return database.status();
  const std::string programs = std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
  std::vector<std::string> command;
  if (what.system == kTallyd) {
    command = {programs + "/tallyd", "serve", "--data-dir", stage.data_dir()};
  } else {
    command = {programs + "/tally-plain", "--data-dir", stage.data_dir(), "--pool", std::to_string(what.pool)};
  }
  std::filesystem::remove(stage.log());
  auto child = Child::Start(command, {"TALLY_DATABASE_URL=" + *database}, stage.log());
  if (!child.ok()) return child.status();
  absl::Status status = (*child)->AwaitSocket(stage.socket(), kStartLimit);
  if (!status.ok()) return status;
  LoadOptions load;
  load.server = "unix:" + stage.socket();
  load.credential = stage.gateway_credential();
  load.permit_tokens = what.work == "hot" ? stage.hot_tokens() : stage.spread_tokens();
  load.callers = what.callers;
  load.connections = options.connections;
  load.warm_up = Milliseconds(options.warm_up);
  load.window = Milliseconds(options.seconds);
  auto result = RunLoad(load);
  (*child)->Stop();
  status = stage.DropDatabase();
  if (result.ok() && !status.ok()) return status;
  return result;
}

std::vector<Case> Cases(const Options& options) {
  std::vector<Case> cases;
  for (const std::string& work : options.works) {
    for (const int callers : options.callers) {
      for (const std::string& system : options.systems) {
        if (system == kTallyd) cases.push_back({work, callers, system, 0});
        if (system != kPlain) continue;
        for (const int pool : options.pools) cases.push_back({work, callers, system, pool});
      }
    }
  }
  return cases;
}

absl::Status RunAll(const Options& options) {
  std::cout << "starting a private PostgreSQL and minting " << options.permits << " permits" << std::endl;
  auto stage = Stage::Set(options.permits);
  if (!stage.ok()) return stage.status();
  absl::Status status = (*stage)->WriteConfig(options.settings);
  if (!status.ok()) return status;
  const std::vector<Case> cases = Cases(options);
  const double about = static_cast<double>(cases.size()) * options.rounds * (options.seconds + options.warm_up + 2);
  std::cout << cases.size() * static_cast<size_t>(options.rounds) << " runs, about " << std::lround(about / 60)
            << " minutes" << std::endl;
  Report report;
  for (int round = 1; round <= options.rounds; ++round) {
    for (const Case& what : cases) {
      const auto result = RunOne(options, what, **stage);
      const std::string name = absl::StrCat(what.work, ", ", what.callers, " callers, ", what.system,
                                            what.pool > 0 ? absl::StrCat(" with ", what.pool, " connections") : "");
      if (!result.ok()) return absl::UnavailableError(absl::StrCat(name, ": ", result.status().message()));
      std::cout << "round " << round << ": " << name << ": " << std::lround(result->pairs_per_s) << " pairs/s, p50 "
                << std::setprecision(3) << result->p50_ms << " ms, p99 " << result->p99_ms << " ms, "
                << result->contended << " contended" << std::endl;
      report.Add(what, *result);
    }
  }
  std::cout << "\nmedians of " << options.rounds << " rounds of " << options.seconds << " s:\n";
  report.PrintTable(std::cout, options.seconds);
  if (options.json.empty()) return absl::OkStatus();
  std::ofstream file(options.json, std::ios::trunc);
  file << report.ToJson(options.seconds).dump(2) << "\n";
  file.close();
  return file.good() ? absl::OkStatus() : absl::UnavailableError("cannot write " + options.json);
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Measures tallyd beside a plain service: pairs of Authorize and Commit a second, and how long one takes.");
  app.add_option("--rounds", options.rounds, "rounds; figures are their medians")->check(CLI::Range(1, 100));
  app.add_option("--seconds", options.seconds, "measured time of one run")->check(CLI::Range(0.1, 600.0));
  app.add_option("--warm-up", options.warm_up, "seconds before that")->check(CLI::Range(0.0, 60.0));
  app.add_option("--permits", options.permits, "permits of spread work")->check(CLI::Range(1, 100'000));
  app.add_option("--connections", options.connections, "gRPC connections of the callers")->check(CLI::Range(1, 64));
  app.add_option("--work", options.works, "spread, hot")->delimiter(',')->check(CLI::IsMember({"spread", "hot"}));
  app.add_option("--system", options.systems, "tallyd, naive")->delimiter(',')->check(CLI::IsMember({kTallyd, kPlain}));
  app.add_option("--callers", options.callers, "pairs in flight")->delimiter(',')->check(CLI::Range(1, 4096));
  app.add_option("--pool", options.pools, "connections of the plain service")->delimiter(',')->check(CLI::Range(1, 64));
  app.add_option("--set", options.settings, "a line for tallyd.toml, for instance lanes.count=4");
  app.add_option("--json", options.json, "write the figures to this file, too");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = RunAll(options);
  if (status.ok()) return 0;
  std::cerr << "bench: " << status.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace tally::bench

int main(int argc, char** argv) { return tally::bench::Main(argc, argv); }
