// Headers, forms and JSON documents with placeholders.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/json/value.h"
#include "reconciler/template/text.h"

namespace tally::reconciler {

// A header's value. What is filled in must be printable ASCII without space at either end: anything else is
// InvalidArgument, since it would be a second header, or would not arrive as it was (RFC 9110 section 5.5).
class HeaderTemplate {
 public:
  static absl::StatusOr<HeaderTemplate> Parse(std::string_view text);
  absl::StatusOr<std::string> Fill(const Values& values) const;

 private:
  Text text_;
};

// application/x-www-form-urlencoded. Names are literal; both are written plainly and encoded here.
class FormTemplate {
 public:
  absl::Status Add(std::string_view name, std::string_view text);
  bool empty() const { return fields_.empty(); }
  absl::StatusOr<std::string> Fill(const Values& values) const;

 private:
  std::vector<std::pair<std::string, Text>> fields_;
};

// A JSON document whose strings may hold placeholders; names of members may not. A string that is one {argument:…}
// becomes the argument itself, a number where it is one. Arrays and objects are not put in.
class JsonTemplate {
 public:
  static absl::StatusOr<JsonTemplate> Parse(std::string_view document);
  // For one that is not written as JSON, such as a table of a configuration.
  static absl::StatusOr<JsonTemplate> Of(const json::Value& document);

  absl::StatusOr<json::Value> Fill(const Values& values) const;

 private:
  json::Value document_;  // every string in it is a Text that can be parsed
};

}  // namespace tally::reconciler
