#include "lib/keys/strict_json.h"

#include <set>
#include <string>
#include <vector>

#include "lib/keys/text.h"

namespace tally::keys {

absl::StatusOr<nlohmann::json> ParseStrictJson(std::string_view text, std::string_view what) {
  if (text.size() > kMaxJsonSize) return absl::InvalidArgumentError(Cat(what, " is too large"));
  using Event = nlohmann::json::parse_event_t;
  std::vector<std::set<std::string>> members;
  std::string twice;
  bool too_deep = false;
  // Returning false drops a value instead of stopping, so what is wrong is noted and judged at the end.
  const auto watch = [&](int depth, Event event, nlohmann::json& value) {
    if (depth > kMaxJsonDepth) too_deep = true;
    if (too_deep) return false;
    if (event == Event::object_start) members.emplace_back();
    if (event == Event::object_end) members.pop_back();
    if (event == Event::key && !members.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  nlohmann::json out = nlohmann::json::parse(text, watch, /*allow_exceptions=*/false);
  if (too_deep) return absl::InvalidArgumentError(Cat(what, " is nested too deeply"));
  if (out.is_discarded()) return absl::InvalidArgumentError(Cat(what, " is not JSON"));
  if (!twice.empty()) {
    return absl::InvalidArgumentError(
        Cat(what, " names the member ", nlohmann::json(twice).dump(-1, ' ', true), " twice in one object"));
  }
  return out;
}

}  // namespace tally::keys
