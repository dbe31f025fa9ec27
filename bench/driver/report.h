#ifndef TALLY_BENCH_DRIVER_REPORT_H_
#define TALLY_BENCH_DRIVER_REPORT_H_

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "bench/load/load.h"

namespace tally::bench {

inline constexpr char kTallyd[] = "tallyd";
inline constexpr char kPlain[] = "naive";

// What was run.
struct Case {
  std::string work;  // spread, hot
  int callers = 0;
  std::string system;
  int pool = 0;  // connections of the plain service; 0 for tallyd

  auto operator<=>(const Case&) const = default;
};

// Results of the rounds, and what they come to.
class Report {
 public:
  void Add(const Case& what, const LoadResult& result) { results_[what].push_back(result); }

  // {"cores", "seconds", "rounds", "runs": […], "ratios": {…}, "ratios_pool32": {…}}. Runs are medians of the rounds,
  // figure by figure; of the plain service's pools the best comes first. Ratios are tallyd's pairs/s over the plain
  // service's best pool, and over its pool of 32.
  nlohmann::json ToJson(double seconds) const;
  void PrintTable(std::ostream& out, double seconds) const;

 private:
  std::map<Case, std::vector<LoadResult>> results_;
};

}  // namespace tally::bench

#endif  // TALLY_BENCH_DRIVER_REPORT_H_
