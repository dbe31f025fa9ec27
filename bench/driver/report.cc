#include "bench/driver/report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <set>
#include <thread>

namespace tally::bench {
namespace {

using nlohmann::json;

constexpr int kLargePool = 32;

template <typename Field>
double Median(const std::vector<LoadResult>& results, Field field) {
  std::vector<double> values;
  for (const LoadResult& result : results) values.push_back(static_cast<double>(field(result)));
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double Round(double value, int digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

json Run(const Case& what, const std::vector<LoadResult>& results) {
  json run = {{"system", what.system},
              {"work", what.work},
              {"callers", what.callers},
              {"pairs_per_s", Round(Median(results, [](const LoadResult& r) { return r.pairs_per_s; }), 1)},
              {"p50_ms", Round(Median(results, [](const LoadResult& r) { return r.p50_ms; }), 2)},
              {"p99_ms", Round(Median(results, [](const LoadResult& r) { return r.p99_ms; }), 2)},
              {"contended", Median(results, [](const LoadResult& r) { return r.contended; })}};
  if (what.pool > 0) run["pool"] = what.pool;
  return run;
}

}  // namespace

json Report::ToJson(double seconds) const {
  json runs = json::array(), ratios = json::object(), ratios_pool32 = json::object();
  size_t rounds = 0;
  std::set<std::pair<std::string, int>> works;
  for (const auto& [what, results] : results_) works.insert({what.work, what.callers});
  for (const auto& [work, callers] : works) {
    std::vector<json> ours, plain;
    for (const auto& [what, results] : results_) {
      if (what.work != work || what.callers != callers) continue;
      rounds = std::max(rounds, results.size());
      (what.system == kTallyd ? ours : plain).push_back(Run(what, results));
    }
    std::stable_sort(plain.begin(), plain.end(), [](const json& a, const json& b) {
      return a["pairs_per_s"].get<double>() > b["pairs_per_s"].get<double>();
    });
    for (const std::vector<json>* part : {&ours, &plain}) {
      for (const json& run : *part) runs.push_back(run);
    }
    if (ours.empty()) continue;
    const std::string name = work + "_" + std::to_string(callers);
    auto ratio = [&](const json& to) {
      const double base = to["pairs_per_s"].get<double>();
      return base > 0 ? json(Round(ours[0]["pairs_per_s"].get<double>() / base, 2)) : json(nullptr);
    };
    if (!plain.empty()) ratios[name] = ratio(plain.front());
    for (const json& run : plain) {
      if (run["pool"] == kLargePool) ratios_pool32[name] = ratio(run);
    }
  }
  return {{"cores", std::thread::hardware_concurrency()},
          {"seconds", seconds},
          {"rounds", rounds},
          {"runs", runs},
          {"ratios", ratios},
          {"ratios_pool32", ratios_pool32}};
}

void Report::PrintTable(std::ostream& out, double seconds) const {
  const json report = ToJson(seconds);
  out << std::left << std::setw(8) << "work" << std::right << std::setw(8) << "callers"
      << "  " << std::left << std::setw(16) << "system" << std::right << std::setw(10) << "pairs/s" << std::setw(10)
      << "p50 ms" << std::setw(10) << "p99 ms" << std::setw(11) << "contended"
      << "\n";
  out << std::fixed;
  for (const json& run : report["runs"]) {
    std::string system = run["system"] == kTallyd ? "tallyd" : "plain, pool ";
    if (run.contains("pool")) system += std::to_string(run["pool"].get<int>());
    out << std::left << std::setw(8) << run["work"].get<std::string>() << std::right << std::setw(8)
        << run["callers"].get<int>() << "  " << std::left << std::setw(16) << system << std::right
        << std::setprecision(0) << std::setw(10) << run["pairs_per_s"].get<double>() << std::setprecision(1)
        << std::setw(10) << run["p50_ms"].get<double>() << std::setw(10) << run["p99_ms"].get<double>()
        << std::setprecision(0) << std::setw(11) << run["contended"].get<double>() << "\n";
  }
  out << "tallyd / plain at its best pool:";
  for (const auto& [name, ratio] : report["ratios"].items()) out << "  " << name << " " << ratio;
  out << "\ntallyd / plain with a pool of 32:";
  for (const auto& [name, ratio] : report["ratios_pool32"].items()) out << "  " << name << " " << ratio;
  out << std::endl;
}

}  // namespace tally::bench
