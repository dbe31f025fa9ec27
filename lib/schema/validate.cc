#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/json/canonical.h"
#include "lib/json/pointer.h"
#include "lib/json/utf8.h"
#include "lib/schema/node.h"
#include "lib/schema/schema.h"

namespace tally::schema {
namespace {

using json::Kind;
using json::Member;
using json::Value;

// How a schema judges a value. kStop ends everything: no verdict may be drawn from it, least of all by `not`.
enum class Verdict { kPass, kFail, kStop };

// The way from the root of the instance, innermost last; lives on the stack of the recursion.
struct Path {
  const Path* parent = nullptr;
  const std::string* name = nullptr;  // null: an element, at `index`
  size_t index = 0;
};

std::string PointerOf(const Path* path) {
  std::vector<const Path*> way;
  for (; path->parent != nullptr; path = path->parent) way.push_back(path);
  std::string pointer;
  for (auto step = way.rbegin(); step != way.rend(); ++step) {
    json::AppendPointerToken((*step)->name != nullptr ? *(*step)->name : std::to_string((*step)->index), &pointer);
  }
  return pointer;
}

// One bit. The type "number" sets both that of integers and that of other numbers.
Types TypeOf(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return kNull;
    case Kind::kBool:
      return kBoolean;
    case Kind::kNumber:
      return value.AsNumber()->IsInteger() ? kInteger : kFraction;
    case Kind::kString:
      return kString;
    case Kind::kArray:
      return kArray;
    case Kind::kObject:
      return kObject;
  }
  return 0;
}

class Validation {
 public:
  Validation(const std::deque<Node>& nodes, int64_t steps) : nodes_(nodes), steps_(steps) {}

  Result Run(NodeId root, const Value& instance) {
    const Path top;
    switch (Check(root, instance, top)) {
      case Verdict::kPass:
        result_.outcome = Outcome::kOk;
        break;
      case Verdict::kFail:
        result_.outcome = Outcome::kViolated;
        break;
      case Verdict::kStop:
        result_ = Result{
            .outcome = Outcome::kUnenforceable, .pointer = "", .keyword = "", .sentence = std::string(stop_reason_)};
        break;
    }
    return std::move(result_);
  }

 private:
  // While one lives, violations are looked for, not told: in anyOf, not, if, contains.
  class Quietly {
   public:
    explicit Quietly(Validation* validation) : quiet_(&validation->quiet_) { ++*quiet_; }
    ~Quietly() { --*quiet_; }
    Quietly(const Quietly&) = delete;
    Quietly& operator=(const Quietly&) = delete;

   private:
    int* quiet_;
  };

  Verdict Fail(const Path& path, std::string_view keyword, std::string_view sentence, std::string_view detail = "") {
    if (quiet_ == 0) {
      result_.pointer = PointerOf(&path);
      result_.keyword = keyword;
      result_.sentence = std::string(sentence) + std::string(detail);
    }
    return Verdict::kFail;
  }

  Verdict FailLimit(const Path& path, std::string_view keyword, std::string_view sentence, int64_t limit) {
    return quiet_ > 0 ? Verdict::kFail : Fail(path, keyword, sentence, std::to_string(limit));
  }

  Verdict FailLimit(const Path& path, std::string_view keyword, std::string_view sentence, const json::Decimal& limit) {
    return quiet_ > 0 ? Verdict::kFail : Fail(path, keyword, sentence, json::Number(limit).text());
  }

  // False when the steps are used up.
  bool Charge(int64_t steps) {
    steps_ -= std::min(steps, steps_ + 1);
    if (steps_ >= 0) return true;
    stop_reason_ = "judging the value against its schema takes more steps than are allowed";
    return false;
  }

  Verdict Check(NodeId id, const Value& value, const Path& path) {
    const Node& node = nodes_[static_cast<size_t>(id)];
    if (!Charge(1)) return Verdict::kStop;
    if (node.never) return Fail(path, "false", "nothing may stand here");
    if (depth_ >= kRecursionMax) {
      stop_reason_ = "the value and its schema are nested too deeply to be judged";
      return Verdict::kStop;
    }
    ++depth_;
    const Verdict verdict =
        node.reference != kNoNode ? Check(node.reference, value, path) : CheckRules(node, value, path);
    --depth_;
    return verdict;
  }

  Verdict CheckRules(const Node& node, const Value& value, const Path& path) {
    if (node.types != kAnyType && (node.types & TypeOf(value)) == 0) {
      return Fail(path, "type", "the value is not of a type that is allowed here");
    }
    if (const Verdict verdict = CheckConstants(node, value, path); verdict != Verdict::kPass) return verdict;
    Verdict verdict = Verdict::kPass;
    if (value.IsNumber()) verdict = CheckNumber(node, *value.AsNumber(), path);
    if (value.IsString()) verdict = CheckString(node, *value.AsString(), path);
    if (value.IsArray()) verdict = CheckArray(node, *value.AsArray(), path);
    if (value.IsObject()) verdict = CheckObject(node, value, path);
    if (verdict != Verdict::kPass) return verdict;
    return CheckInPlace(node, value, path);
  }

  Verdict CheckConstants(const Node& node, const Value& value, const Path& path) {
    if (node.constant) {
      if (!Charge(node.constant->steps)) return Verdict::kStop;
      if (node.constant->value != value) return Fail(path, "const", "the value is not the one that is allowed here");
    }
    if (node.enumeration.empty()) return Verdict::kPass;
    for (const Constant& constant : node.enumeration) {
      if (!Charge(constant.steps)) return Verdict::kStop;
      if (constant.value == value) return Verdict::kPass;
    }
    return Fail(path, "enum", "the value is none of those that are allowed here");
  }

  Verdict CheckNumber(const Node& node, const json::Number& text, const Path& path) {
    if (!node.multiple_of && !node.maximum && !node.exclusive_maximum && !node.minimum && !node.exclusive_minimum) {
      return Verdict::kPass;
    }
    if (!Charge(static_cast<int64_t>(text.text().size() / 16))) return Verdict::kStop;
    const json::Decimal number = text.decimal();
    if (node.multiple_of && !json::IsMultipleOf(number, *node.multiple_of)) {
      return FailLimit(path, "multipleOf", "the number is not a multiple of ", *node.multiple_of);
    }
    if (node.maximum && number > *node.maximum) {
      return FailLimit(path, "maximum", "the number is greater than ", *node.maximum);
    }
    if (node.exclusive_maximum && number >= *node.exclusive_maximum) {
      return FailLimit(path, "exclusiveMaximum", "the number is not less than ", *node.exclusive_maximum);
    }
    if (node.minimum && number < *node.minimum) {
      return FailLimit(path, "minimum", "the number is less than ", *node.minimum);
    }
    if (node.exclusive_minimum && number <= *node.exclusive_minimum) {
      return FailLimit(path, "exclusiveMinimum", "the number is not greater than ", *node.exclusive_minimum);
    }
    return Verdict::kPass;
  }

  Verdict CheckString(const Node& node, const std::string& string, const Path& path) {
    if (node.max_length || node.min_length) {
      if (!Charge(static_cast<int64_t>(string.size() / 64))) return Verdict::kStop;
      const int64_t length = static_cast<int64_t>(json::CountCodePoints(string));
      if (node.max_length && length > *node.max_length) {
        return FailLimit(path, "maxLength", "the string is longer, in characters, than ", *node.max_length);
      }
      if (node.min_length && length < *node.min_length) {
        return FailLimit(path, "minLength", "the string is shorter, in characters, than ", *node.min_length);
      }
    }
    if (node.pattern) {
      if (!Charge(node.pattern->Steps(string))) return Verdict::kStop;
      if (!node.pattern->Matches(string)) {
        return Fail(path, "pattern", "the string does not match ", node.pattern->source());
      }
    }
    return Verdict::kPass;
  }

  // The schema for an array's element, or kNoNode.
  static NodeId ElementSchema(const Node& node, size_t index) {
    if (!node.items_are_listed) return node.items;
    return index < node.items_each.size() ? node.items_each[index] : node.additional_items;
  }

  Verdict CheckArray(const Node& node, const json::Array& array, const Path& path) {
    const int64_t size = static_cast<int64_t>(array.size());
    if (node.max_items && size > *node.max_items) {
      return FailLimit(path, "maxItems", "the array has more elements than ", *node.max_items);
    }
    if (node.min_items && size < *node.min_items) {
      return FailLimit(path, "minItems", "the array has fewer elements than ", *node.min_items);
    }
    if (node.unique_items) {
      if (const Verdict verdict = CheckUnique(array, path); verdict != Verdict::kPass) return verdict;
    }
    if (node.items != kNoNode || node.items_are_listed) {
      for (size_t i = 0; i < array.size(); ++i) {
        const NodeId schema = ElementSchema(node, i);
        if (schema == kNoNode) break;
        const Verdict verdict = Check(schema, array[i], Path{&path, nullptr, i});
        if (verdict != Verdict::kPass) return verdict;
      }
    }
    return node.contains == kNoNode ? Verdict::kPass : CheckContains(node, array, path);
  }

  // Equal values have equal canonical bytes, so sorting these finds them.
  Verdict CheckUnique(const json::Array& array, const Path& path) {
    std::vector<std::string> elements;
    for (const Value& element : array) {
      json::AppendCanonical(element, &elements.emplace_back());
      if (!Charge(2 + static_cast<int64_t>(elements.back().size() / 16))) return Verdict::kStop;
    }
    std::sort(elements.begin(), elements.end());
    if (std::adjacent_find(elements.begin(), elements.end()) == elements.end()) return Verdict::kPass;
    return Fail(path, "uniqueItems", "two elements of the array are equal");
  }

  Verdict CheckContains(const Node& node, const json::Array& array, const Path& path) {
    for (size_t i = 0; i < array.size(); ++i) {
      const Quietly quietly(this);
      const Verdict verdict = Check(node.contains, array[i], Path{&path, nullptr, i});
      if (verdict != Verdict::kFail) return verdict;
    }
    return Fail(path, "contains", "no element of the array is what one of them has to be");
  }

  Verdict CheckObject(const Node& node, const Value& value, const Path& path) {
    const json::Object& object = *value.AsObject();
    const int64_t size = static_cast<int64_t>(object.size());
    if (!Charge(static_cast<int64_t>(node.required.size()))) return Verdict::kStop;
    for (const std::string& name : node.required) {
      if (object.Find(name) == nullptr) return Fail(path, "required", "a required member is missing: ", name);
    }
    if (node.max_properties && size > *node.max_properties) {
      return FailLimit(path, "maxProperties", "the object has more members than ", *node.max_properties);
    }
    if (node.min_properties && size < *node.min_properties) {
      return FailLimit(path, "minProperties", "the object has fewer members than ", *node.min_properties);
    }
    for (const Dependency& dependency : node.dependencies) {
      const Verdict verdict = CheckDependency(dependency, value, path);
      if (verdict != Verdict::kPass) return verdict;
    }
    for (const Member& member : object.members()) {
      const Verdict verdict = CheckMember(node, member, Path{&path, &member.name, 0});
      if (verdict != Verdict::kPass) return verdict;
    }
    return Verdict::kPass;
  }

  Verdict CheckDependency(const Dependency& dependency, const Value& value, const Path& path) {
    const json::Object& object = *value.AsObject();
    if (!Charge(1)) return Verdict::kStop;
    if (object.Find(dependency.name) == nullptr) return Verdict::kPass;
    if (dependency.schema != kNoNode) return Check(dependency.schema, value, path);
    if (!Charge(static_cast<int64_t>(dependency.required.size()))) return Verdict::kStop;
    for (const std::string& name : dependency.required) {
      if (object.Find(name) == nullptr) {
        return Fail(path, "dependencies", "a member is missing that another one requires: ", name);
      }
    }
    return Verdict::kPass;
  }

  Verdict CheckMember(const Node& node, const Member& member, const Path& path) {
    if (!Charge(1)) return Verdict::kStop;
    if (node.property_names != kNoNode) {
      const Verdict verdict = Check(node.property_names, Value(member.name), path);
      if (verdict != Verdict::kPass) return verdict;
    }
    bool named = false;
    const auto property =
        std::lower_bound(node.properties.begin(), node.properties.end(), member.name,
                         [](const auto& entry, const std::string& name) { return entry.first < name; });
    if (property != node.properties.end() && property->first == member.name) {
      named = true;
      const Verdict verdict = Check(property->second, member.value, path);
      if (verdict != Verdict::kPass) return verdict;
    }
    for (const PatternProperty& entry : node.pattern_properties) {
      if (!Charge(entry.pattern.Steps(member.name))) return Verdict::kStop;
      if (!entry.pattern.Matches(member.name)) continue;
      named = true;
      const Verdict verdict = Check(entry.schema, member.value, path);
      if (verdict != Verdict::kPass) return verdict;
    }
    if (named || node.additional_properties == kNoNode) return Verdict::kPass;
    if (nodes_[static_cast<size_t>(node.additional_properties)].never) {
      return Fail(path, "additionalProperties", "no member of this name is allowed here");
    }
    return Check(node.additional_properties, member.value, path);
  }

  Verdict CheckQuietly(NodeId id, const Value& value, const Path& path) {
    const Quietly quietly(this);
    return Check(id, value, path);
  }

  Verdict CheckInPlace(const Node& node, const Value& value, const Path& path) {
    for (NodeId id : node.all_of) {
      if (const Verdict verdict = Check(id, value, path); verdict != Verdict::kPass) return verdict;
    }
    if (!node.any_of.empty()) {
      const Verdict verdict = CheckAnyOf(node, value, path);
      if (verdict != Verdict::kPass) return verdict;
    }
    if (!node.one_of.empty()) {
      const Verdict verdict = CheckOneOf(node, value, path);
      if (verdict != Verdict::kPass) return verdict;
    }
    if (node.not_schema != kNoNode) {
      const Verdict verdict = CheckQuietly(node.not_schema, value, path);
      if (verdict == Verdict::kStop) return verdict;
      if (verdict == Verdict::kPass) return Fail(path, "not", "the value is what it must not be");
    }
    if (node.if_schema == kNoNode || (node.then_schema == kNoNode && node.else_schema == kNoNode)) {
      return Verdict::kPass;
    }
    const Verdict condition = CheckQuietly(node.if_schema, value, path);
    if (condition == Verdict::kStop) return condition;
    const NodeId branch = condition == Verdict::kPass ? node.then_schema : node.else_schema;
    return branch == kNoNode ? Verdict::kPass : Check(branch, value, path);
  }

  Verdict CheckAnyOf(const Node& node, const Value& value, const Path& path) {
    for (NodeId id : node.any_of) {
      const Verdict verdict = CheckQuietly(id, value, path);
      if (verdict != Verdict::kFail) return verdict;
    }
    return Fail(path, "anyOf", "the value is none of what is allowed here");
  }

  Verdict CheckOneOf(const Node& node, const Value& value, const Path& path) {
    int passed = 0;
    for (NodeId id : node.one_of) {
      const Verdict verdict = CheckQuietly(id, value, path);
      if (verdict == Verdict::kStop) return verdict;
      if (verdict == Verdict::kPass && ++passed > 1) {
        return Fail(path, "oneOf", "the value is more than one of what is allowed here");
      }
    }
    return passed == 1 ? Verdict::kPass : Fail(path, "oneOf", "the value is none of what is allowed here");
  }

  const std::deque<Node>& nodes_;
  int64_t steps_;
  int depth_ = 0;
  int quiet_ = 0;
  std::string_view stop_reason_;
  Result result_;
};

}  // namespace

Result Schema::Validate(const json::Value& instance, int64_t steps_max) const {
  return Validation(compiled_->nodes, steps_max).Run(compiled_->root, instance);
}

}  // namespace tally::schema
