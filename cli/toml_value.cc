#include "cli/toml_value.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/json/decimal.h"

namespace tally::cli {
namespace {

constexpr int kDepthMax = 64;
// A dotted name nests a table a dot, without a limit of the parser's own, and its trees are freed by recursion.
constexpr std::ptrdiff_t kDotsMax = 2048;

absl::StatusOr<json::Value> Convert(const toml::node& node, int depth);

absl::StatusOr<json::Value> ConvertTable(const toml::table& table, int depth) {
  json::Object object;
  for (const auto& [key, node] : table) {
    auto value = Convert(node, depth + 1);
    if (!value.ok()) return value;
    object.Set(std::string(key.str()), *std::move(value));
  }
  return json::Value(std::move(object));
}

absl::StatusOr<json::Value> ConvertArray(const toml::array& array, int depth) {
  json::Array out;
  out.reserve(array.size());
  for (const toml::node& node : array) {
    auto value = Convert(node, depth + 1);
    if (!value.ok()) return value;
    out.push_back(*std::move(value));
  }
  return json::Value(std::move(out));
}

absl::Status At(const toml::node& node, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", node.source().begin.line, ": ", absl::string_view(what.data(), what.size())));
}

absl::StatusOr<json::Value> ConvertTime(const toml::value<toml::date_time>& time) {
  if (!time.get().offset) return At(time, "a time needs an offset from UTC, as in 2027-01-31T12:00:00Z");
  std::ostringstream text;
  text << time.get();
  return json::Value(text.str());
}

absl::StatusOr<json::Value> ConvertFloat(const toml::value<double>& value) {
  if (!std::isfinite(value.get())) return At(value, "a number must be finite");
  std::string text;
  json::AppendDouble(value.get(), &text);
  auto number = json::Number::Parse(text);
  if (!number.ok()) return number.status();
  return json::Value(*std::move(number));
}

absl::StatusOr<json::Value> Convert(const toml::node& node, int depth) {
  if (depth > kDepthMax) return At(node, "more than 64 tables or arrays inside one another");
  switch (node.type()) {
    case toml::node_type::table:
      return ConvertTable(*node.as_table(), depth);
    case toml::node_type::array:
      return ConvertArray(*node.as_array(), depth);
    case toml::node_type::string:
      return json::Value(node.as_string()->get());
    case toml::node_type::integer:
      return json::Value(node.as_integer()->get());
    case toml::node_type::floating_point:
      return ConvertFloat(*node.as_floating_point());
    case toml::node_type::boolean:
      return json::Value(node.as_boolean()->get());
    case toml::node_type::date_time:
      return ConvertTime(*node.as_date_time());
    default:
      return At(node,
                "a date or a time of day alone says no moment: write both, with an offset from UTC, as in "
                "2027-01-31T12:00:00Z");
  }
}

}  // namespace

absl::StatusOr<json::Value> ParseToml(std::string_view text) {
  if (std::count(text.begin(), text.end(), '.') > kDotsMax) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kDotsMax, " dots in one file"));
  }
  try {
    return Convert(toml::parse(text), 0);
  } catch (const toml::parse_error& error) {
    const std::string_view why = error.description();
    return absl::InvalidArgumentError(absl::StrCat("line ", error.source().begin.line, ", column ",
                                                   error.source().begin.column, ": ",
                                                   absl::string_view(why.data(), why.size())));
  }
}

}  // namespace tally::cli
