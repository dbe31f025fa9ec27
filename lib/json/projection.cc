#include "lib/json/projection.h"

#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "lib/json/canonical.h"

namespace tally::json {

struct Projection::Node {
  bool here = false;
  std::map<std::string, Node, std::less<>> members;
  std::map<size_t, const Node*> elements;  // those of `members` whose token can be an index

  // Null if no pointer leads there.
  const Node* Member(const std::string& name) const {
    const auto found = members.find(name);
    return found == members.end() ? nullptr : &found->second;
  }
  const Node* Element(size_t index) const {
    const auto found = elements.find(index);
    return found == elements.end() ? nullptr : found->second;
  }
};

Projection::Projection(Mode mode, const std::vector<Pointer>& pointers) : mode_(mode) {
  auto root = std::make_shared<Node>();
  for (const Pointer& pointer : pointers) {
    Node* node = root.get();
    for (const std::string& token : pointer.tokens()) {
      Node& next = node->members[token];
      if (const auto index = ArrayIndex(token)) node->elements.emplace(*index, &next);
      node = &next;
    }
    node->here = true;
  }
  root_ = std::move(root);
}

absl::StatusOr<Projection> Projection::Without(const std::vector<Pointer>& pointers) {
  if (std::any_of(pointers.begin(), pointers.end(), [](const Pointer& p) { return p.tokens().empty(); })) {
    return absl::InvalidArgumentError("the JSON pointer \"\" would leave out the whole value");
  }
  return Projection(Mode::kWithout, pointers);
}

absl::StatusOr<Projection> Projection::Only(const std::vector<Pointer>& pointers) {
  return Projection(Mode::kOnly, pointers);
}

std::string Projection::Canonical(const Value& value) const {
  std::string bytes;
  if (mode_ == Mode::kWithout) {
    WriteWithout(value, *root_, &bytes);
  } else if (!WriteOnly(value, *root_, &bytes)) {
    bytes = "{}";
  }
  return bytes;
}

void Projection::WriteWithout(const Value& value, const Node& node, std::string* out) {
  const auto write = [out](const Value& child, const Node* next) {
    if (next == nullptr) {
      AppendCanonical(child, out);
    } else {
      WriteWithout(child, *next, out);
    }
  };
  if (const Object* object = value.AsObject()) {
    char before = '{';
    for (const json::Member& member : object->members()) {
      const Node* next = node.Member(member.name);
      if (next != nullptr && next->here) continue;
      out->push_back(before);
      AppendCanonicalString(member.name, out);
      out->push_back(':');
      write(member.value, next);
      before = ',';
    }
    out->append(before == '{' ? "{}" : "}");
  } else if (const Array* array = value.AsArray()) {
    char before = '[';
    for (size_t i = 0; i < array->size(); ++i) {
      const Node* next = node.Element(i);
      if (next != nullptr && next->here) continue;
      out->push_back(before);
      write((*array)[i], next);
      before = ',';
    }
    out->append(before == '[' ? "[]" : "]");
  } else {
    AppendCanonical(value, out);
  }
}

// False, with `out` as it was, if no place below `node` exists in `value`.
bool Projection::WriteOnly(const Value& value, const Node& node, std::string* out) {
  if (node.here) {
    AppendCanonical(value, out);
    return true;
  }
  const size_t start = out->size();
  bool found = false;
  if (const Object* object = value.AsObject()) {
    for (const json::Member& member : object->members()) {
      const Node* next = node.Member(member.name);
      if (next == nullptr) continue;
      const size_t undo = out->size();
      out->push_back(found ? ',' : '{');
      AppendCanonicalString(member.name, out);
      out->push_back(':');
      if (WriteOnly(member.value, *next, out)) {
        found = true;
      } else {
        out->resize(undo);
      }
    }
    if (found) out->push_back('}');
  } else if (const Array* array = value.AsArray()) {
    size_t written = 0;  // positions, the nulls included
    for (const auto& [index, next] : node.elements) {
      if (index >= array->size()) break;
      const size_t undo = out->size();
      for (size_t i = written; i < index; ++i) out->append(i == 0 ? "[null" : ",null");
      out->push_back(index == 0 ? '[' : ',');
      if (WriteOnly((*array)[index], *next, out)) {
        found = true;
        written = index + 1;
      } else {
        out->resize(undo);
      }
    }
    if (found) out->push_back(']');
  }
  if (!found) out->resize(start);
  return found;
}

}  // namespace tally::json
