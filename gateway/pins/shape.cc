#include "gateway/pins/shape.h"

#include <absl/strings/escaping.h>

#include <array>

#include "gateway/mcp/names.h"
#include "gateway/mcp/raw.h"
#include "lib/json/canonical.h"
#include "lib/keys/hash.h"

namespace tally::gateway {
namespace {

constexpr std::array<std::string_view, 5> kMembers = {"title", "description", "inputSchema", "outputSchema",
                                                      "annotations"};

std::string HashOf(std::string_view raw_value) {
  const json::ParseOptions lax{
      .bytes_max = raw_value.size(), .depth_max = json::kDepthMax, .case_variants = json::CaseVariants::kAdmit};
  const auto canonical = json::Canonicalise(raw_value, lax);
  // What has no canonical form is compared as it is written.
  const keys::Digest digest = canonical.ok() ? keys::Sha256({std::string_view("canonical\n"), *canonical})
                                             : keys::Sha256({std::string_view("as it is\n"), raw_value});
  return absl::BytesToHexString(digest.str());
}

}  // namespace

ToolShape ShapeOf(std::string_view raw_tool) {
  ToolShape shape;
  const auto tool = mcp::RawObject::Parse(raw_tool);
  if (!tool.ok()) return shape;
  for (const std::string_view member : kMembers) {
    if (const std::string_view* value = tool->Find(member)) shape.emplace(member, HashOf(*value));
  }
  return shape;
}

std::vector<std::string> Differences(const ToolShape& one, const ToolShape& other) {
  std::vector<std::string> members;
  for (const std::string_view member : kMembers) {
    const auto mine = one.find(std::string(member));
    const auto theirs = other.find(std::string(member));
    const bool same =
        mine == one.end() ? theirs == other.end() : theirs != other.end() && mine->second == theirs->second;
    if (!same) members.emplace_back(member);
  }
  return members;
}

SeenTools SeenIn(std::string_view upstream, const std::vector<std::string>& raw_tools) {
  SeenTools seen;
  for (const std::string& raw : raw_tools) {
    const auto tool = mcp::RawObject::Parse(raw);
    const std::string_view* name = tool.ok() ? tool->Find("name") : nullptr;
    const auto own = name ? mcp::StringOf(*name) : std::nullopt;
    if (own && mcp::JoinName(upstream, *own)) seen.emplace(*own, ShapeOf(raw));
  }
  return seen;
}

}  // namespace tally::gateway
