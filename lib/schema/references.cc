#include "lib/schema/references.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace tally::schema {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3 || HexDigit(text[i + 1]) < 0 || HexDigit(text[i + 2]) < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])));
    i += 2;
  }
  return decoded;
}

// The schemas that apply to the very value that `node` applies to.
std::vector<NodeId> InPlace(const Node& node) {
  std::vector<NodeId> next;
  for (const auto* list : {&node.all_of, &node.any_of, &node.one_of})
    next.insert(next.end(), list->begin(), list->end());
  for (const Dependency& dependency : node.dependencies) next.push_back(dependency.schema);
  next.insert(next.end(), {node.reference, node.not_schema, node.if_schema, node.then_schema, node.else_schema});
  std::erase(next, kNoNode);
  return next;
}

class DepthCheck {
 public:
  explicit DepthCheck(const std::deque<Node>& nodes) : nodes_(nodes), depth_(nodes.size(), kUnknown) {}

  absl::Status Visit(NodeId id, int above) {
    int& depth = depth_[static_cast<size_t>(id)];
    const Node& node = nodes_[static_cast<size_t>(id)];
    if (depth == kOpen) return Refuse(node, "goes round in references that never go into the instance");
    if (depth == kUnknown) {
      if (above >= kInPlaceMax) return Refuse(node, kTooDeep);
      depth = kOpen;
      int below = 0;
      for (NodeId next : InPlace(node)) {
        if (absl::Status status = Visit(next, above + 1); !status.ok()) return status;
        below = std::max(below, depth_[static_cast<size_t>(next)]);
      }
      depth = below + 1;
    }
    return above + depth > kInPlaceMax ? Refuse(node, kTooDeep) : absl::OkStatus();
  }

 private:
  static constexpr int kUnknown = 0;
  static constexpr int kOpen = -1;
  static constexpr const char* kTooDeep = "applies over 64 schemas, one through another, to one value";

  static absl::Status Refuse(const Node& node, const std::string& what) {
    return absl::InvalidArgumentError("schema refused at \"" + node.place + "\": it " + what);
  }

  const std::deque<Node>& nodes_;
  std::vector<int> depth_;  // of a node: the longest way down from it, itself counted
};

}  // namespace

absl::StatusOr<json::Pointer> PointerOfReference(std::string_view reference) {
  if (!reference.starts_with('#')) {
    return absl::InvalidArgumentError("it leads out of the document, where nothing is fetched");
  }
  const std::optional<std::string> decoded = PercentDecode(reference.substr(1));
  if (!decoded) return absl::InvalidArgumentError("a '%' in it is not followed by two hexadecimal digits");
  if (!decoded->empty() && (*decoded)[0] != '/') {
    return absl::InvalidArgumentError(
        "it names an $id, which is not supported; use a JSON pointer such as #/definitions/x");
  }
  return json::Pointer::Parse(*decoded);
}

absl::Status CheckInPlaceDepth(const std::deque<Node>& nodes) {
  DepthCheck check(nodes);
  for (size_t id = 0; id < nodes.size(); ++id) {
    if (absl::Status status = check.Visit(static_cast<NodeId>(id), 0); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace tally::schema
