// A URL with placeholders in path segments and query values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "reconciler/template/text.h"

namespace tally::reconciler {

// All but the unreserved characters of RFC 3986 section 2.3 as %XX. What comes out is the same in a path segment, in a
// query value and in a form (application/x-www-form-urlencoded).
std::string PercentEncode(std::string_view text);

class UrlTemplate {
 public:
  UrlTemplate() = default;

  // "https://HOST[:PORT]/PATH?NAME=VALUE&…" or http. Scheme, host, port and the names of parameters are literal, a
  // placeholder there is InvalidArgument; so are a user, a fragment, and segments "." and "..". Literals may be written
  // plainly or percent-encoded: what cannot stand in a URL is encoded, "%20" stays what it is.
  static absl::StatusOr<UrlTemplate> Parse(std::string_view text);

  bool IsHttps() const { return origin_.starts_with("https:"); }
  const std::string& origin() const { return origin_; }  // "https://HOST[:PORT]"

  // A value never changes the structure: InvalidArgument for one that would be a segment by itself and is empty, "." or
  // "..", which servers and libraries resolve.
  absl::StatusOr<std::string> Fill(const Values& values) const;

 private:
  absl::Status TakePath(std::vector<Part> parts);
  absl::Status TakeQuery(const std::vector<Part>& parts);

  std::string origin_;
  // Literals in these are encoded already.
  std::vector<Text> segments_;
  std::vector<std::pair<std::string, Text>> query_;  // the name with its '=', where it has one
  bool has_query_ = false;
};

}  // namespace tally::reconciler
