#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "lib/json/canonical.h"
#include "lib/json/pointer.h"
#include "lib/schema/node.h"
#include "lib/schema/references.h"
#include "lib/schema/schema.h"

namespace tally::schema {
namespace {

using json::Member;
using json::Value;

std::string Below(const std::string& place, std::string_view token) {
  std::string below = place;
  json::AppendPointerToken(token, &below);
  return below;
}

Types TypeNamed(std::string_view name) {
  static constexpr std::pair<std::string_view, Types> kNames[] = {
      {"null", kNull},       {"boolean", kBoolean}, {"number", kFraction | kInteger},
      {"integer", kInteger}, {"string", kString},   {"array", kArray},
      {"object", kObject}};
  for (const auto& [known, types] : kNames) {
    if (known == name) return types;
  }
  return 0;
}

// One walk over the document. Every Read… returns false once error_ is set.
class Compiler {
 public:
  explicit Compiler(const Value& document) : document_(document) {}

  absl::Status Run(CompiledSchema* compiled) {
    if (!ReadSchema(document_, "", &compiled->root) || !Resolve()) return error_;
    if (absl::Status status = CheckInPlaceDepth(nodes_); !status.ok()) return status;
    compiled->nodes = std::move(nodes_);
    return absl::OkStatus();
  }

 private:
  // A keyword's value, where it stands, and the node that it is compiled into.
  using Reader = bool (Compiler::*)(const Value&, const std::string& place, Node*);

  struct PendingReference {
    Node* node;
    json::Pointer target;
    std::string place;
  };

  static const std::map<std::string_view, Reader>& Readers();
  static bool IsRefusedByName(std::string_view keyword) {
    return keyword == "format" || keyword == "contentEncoding" || keyword == "contentMediaType" || keyword == "$id";
  }
  static bool MeansNothing(std::string_view keyword) {
    static constexpr std::string_view kAnnotations[] = {"title",    "description", "$comment", "default",
                                                        "examples", "readOnly",    "writeOnly"};
    return std::find(std::begin(kAnnotations), std::end(kAnnotations), keyword) != std::end(kAnnotations);
  }

  bool Fail(const std::string& place, const std::string& what) {
    error_ = absl::InvalidArgumentError("schema refused at \"" + place + "\": " + what);
    return false;
  }

  bool ReadSchema(const Value& value, const std::string& place, NodeId* id) {
    if (nesting_ >= kNestingMax) return Fail(place, "schemas stand inside one another over 64 deep");
    *id = static_cast<NodeId>(nodes_.size());
    Node& node = nodes_.emplace_back();
    node.place = place;
    schema_at_.emplace(&value, *id);
    if (const bool* boolean = value.AsBool()) {
      node.never = !*boolean;
      return true;
    }
    const json::Object* object = value.AsObject();
    if (object == nullptr) return Fail(place, "a schema is an object, true or false");
    ++nesting_;
    const bool is_reference = object->Find("$ref") != nullptr;
    for (const Member& member : object->members()) {
      const std::string below = Below(place, member.name);
      if (MeansNothing(member.name)) continue;
      if (IsRefusedByName(member.name)) {
        return Fail(below, "the keyword " + member.name + " cannot be enforced; leave it out");
      }
      const auto reader = Readers().find(member.name);
      if (reader == Readers().end()) {
        return Fail(below, "the keyword " + member.name + " is not one of draft 7, and would not be enforced");
      }
      if (is_reference && member.name != "$ref" && member.name != "definitions" && member.name != "$defs" &&
          member.name != "$schema") {
        return Fail(below, "draft 7 ignores keywords beside $ref; put the $ref into an allOf");
      }
      if (!(this->*reader->second)(member.value, below, &node)) return false;
    }
    --nesting_;
    return true;
  }

  template <NodeId Node::*kField>
  bool ReadOne(const Value& value, const std::string& place, Node* node) {
    return ReadSchema(value, place, &(node->*kField));
  }

  template <std::vector<NodeId> Node::*kField>
  bool ReadList(const Value& value, const std::string& place, Node* node) {
    const json::Array* array = value.AsArray();
    if (array == nullptr || array->empty()) return Fail(place, "must be an array of one or more schemas");
    return ReadElements(*array, place, &(node->*kField));
  }

  bool ReadElements(const json::Array& array, const std::string& place, std::vector<NodeId>* ids) {
    for (size_t i = 0; i < array.size(); ++i) {
      if (!ReadSchema(array[i], Below(place, std::to_string(i)), &ids->emplace_back(kNoNode))) return false;
    }
    return true;
  }

  template <std::optional<json::Decimal> Node::*kField>
  bool ReadNumber(const Value& value, const std::string& place, Node* node) {
    const json::Number* number = value.AsNumber();
    if (number == nullptr) return Fail(place, "must be a number");
    node->*kField = number->decimal();
    return true;
  }

  bool ReadMultipleOf(const Value& value, const std::string& place, Node* node) {
    if (!ReadNumber<&Node::multiple_of>(value, place, node)) return false;
    if (node->multiple_of->IsZero() || node->multiple_of->negative) return Fail(place, "must be greater than 0");
    if (node->multiple_of->digits.size() > json::kDivisorDigitsMax) {
      return Fail(place, "must not have more than 18 significant digits");
    }
    return true;
  }

  template <std::optional<int64_t> Node::*kField>
  bool ReadCount(const Value& value, const std::string& place, Node* node) {
    const json::Number* number = value.AsNumber();
    const json::Decimal decimal = number == nullptr ? json::Decimal{} : number->decimal();
    if (number == nullptr || !decimal.IsInteger() || decimal.negative) {
      return Fail(place, "must be a whole number, 0 or greater");
    }
    // Nothing has 10^18 of anything, so a greater count means the same.
    int64_t count = 0;
    if (decimal.point > 18) {
      count = std::numeric_limits<int64_t>::max();
    } else {
      for (int64_t i = 0; i < decimal.point; ++i) {
        const size_t at = static_cast<size_t>(i);
        count = count * 10 + (at < decimal.digits.size() ? decimal.digits[at] - '0' : 0);
      }
    }
    node->*kField = count;
    return true;
  }

  bool ReadType(const Value& value, const std::string& place, Node* node) {
    const json::Array one = value.IsString() ? json::Array{value} : json::Array{};
    const json::Array* names = value.IsString() ? &one : value.AsArray();
    if (names == nullptr || names->empty()) return Fail(place, "must be the name of a type, or an array of such names");
    node->types = 0;
    for (const Value& name : *names) {
      const Types types = name.IsString() ? TypeNamed(*name.AsString()) : Types{0};
      if (types == 0) {
        return Fail(place, "the types are null, boolean, number, integer, string, array and object");
      }
      node->types = static_cast<Types>(node->types | types);
    }
    return true;
  }

  static Constant MakeConstant(const Value& value) {
    return Constant{value, 1 + static_cast<int64_t>(json::Canonical(value).size() / 16)};
  }

  bool ReadEnum(const Value& value, const std::string& place, Node* node) {
    const json::Array* array = value.AsArray();
    if (array == nullptr || array->empty()) return Fail(place, "must be an array of one or more values");
    for (const Value& constant : *array) node->enumeration.push_back(MakeConstant(constant));
    return true;
  }

  bool ReadConst(const Value& value, const std::string&, Node* node) {
    node->constant = MakeConstant(value);
    return true;
  }

  bool CompilePattern(const std::string& source, const std::string& place, std::optional<Pattern>* pattern) {
    if (++patterns_ > kPatternsMax) return Fail(place, "the schema has over 256 patterns");
    absl::StatusOr<Pattern> compiled = Pattern::Compile(source);
    if (!compiled.ok()) return Fail(place, std::string(compiled.status().message()));
    *pattern = *std::move(compiled);
    return true;
  }

  bool ReadPattern(const Value& value, const std::string& place, Node* node) {
    if (!value.IsString()) return Fail(place, "must be a string");
    return CompilePattern(*value.AsString(), place, &node->pattern);
  }

  bool ReadItems(const Value& value, const std::string& place, Node* node) {
    const json::Array* array = value.AsArray();
    if (array == nullptr) return ReadSchema(value, place, &node->items);
    node->items_are_listed = true;
    return ReadElements(*array, place, &node->items_each);
  }

  bool ReadUniqueItems(const Value& value, const std::string& place, Node* node) {
    if (!value.IsBool()) return Fail(place, "must be true or false");
    node->unique_items = *value.AsBool();
    return true;
  }

  bool ReadNames(const Value& value, const std::string& place, std::vector<std::string>* names) {
    const json::Array* array = value.AsArray();
    if (array == nullptr) return Fail(place, "must be an array of names");
    for (const Value& name : *array) {
      if (!name.IsString()) return Fail(place, "must be an array of names");
      if (std::find(names->begin(), names->end(), *name.AsString()) != names->end()) {
        return Fail(place, "names something twice");
      }
      names->push_back(*name.AsString());
    }
    return true;
  }

  bool ReadRequired(const Value& value, const std::string& place, Node* node) {
    return ReadNames(value, place, &node->required);
  }

  bool ReadProperties(const Value& value, const std::string& place, Node* node) {
    if (!value.IsObject()) return Fail(place, "must be an object of schemas");
    for (const Member& member : value.AsObject()->members()) {
      auto& [name, id] = node->properties.emplace_back(member.name, kNoNode);
      if (!ReadSchema(member.value, Below(place, name), &id)) return false;
    }
    std::sort(node->properties.begin(), node->properties.end());
    return true;
  }

  bool ReadPatternProperties(const Value& value, const std::string& place, Node* node) {
    if (!value.IsObject()) return Fail(place, "must be an object of schemas");
    for (const Member& member : value.AsObject()->members()) {
      const std::string below = Below(place, member.name);
      std::optional<Pattern> pattern;
      NodeId id = kNoNode;
      if (!CompilePattern(member.name, below, &pattern) || !ReadSchema(member.value, below, &id)) return false;
      node->pattern_properties.push_back({*std::move(pattern), id});
    }
    return true;
  }

  bool ReadDependencies(const Value& value, const std::string& place, Node* node) {
    if (!value.IsObject()) return Fail(place, "must be an object of schemas and arrays of names");
    for (const Member& member : value.AsObject()->members()) {
      const std::string below = Below(place, member.name);
      Dependency& dependency = node->dependencies.emplace_back();
      dependency.name = member.name;
      const bool read = member.value.IsArray() ? ReadNames(member.value, below, &dependency.required)
                                               : ReadSchema(member.value, below, &dependency.schema);
      if (!read) return false;
    }
    return true;
  }

  // Compiled even where nothing refers to them: what stands there must be enforceable too.
  bool ReadDefinitions(const Value& value, const std::string& place, Node*) {
    if (!value.IsObject()) return Fail(place, "must be an object of schemas");
    for (const Member& member : value.AsObject()->members()) {
      NodeId id = kNoNode;
      if (!ReadSchema(member.value, Below(place, member.name), &id)) return false;
    }
    return true;
  }

  bool ReadDialect(const Value& value, const std::string& place, Node*) {
    const std::string* uri = value.AsString();
    static constexpr std::string_view kDraft7 = "http://json-schema.org/draft-07/schema";
    if (uri == nullptr || (*uri != kDraft7 && *uri != std::string(kDraft7) + "#")) {
      return Fail(place, "must be http://json-schema.org/draft-07/schema#, the only draft that is enforced");
    }
    return true;
  }

  bool ReadReference(const Value& value, const std::string& place, Node* node) {
    if (!value.IsString()) return Fail(place, "must be a string");
    absl::StatusOr<json::Pointer> target = PointerOfReference(*value.AsString());
    if (!target.ok()) return Fail(place, "the reference cannot be followed: " + std::string(target.status().message()));
    references_.push_back({node, *std::move(target), place});
    return true;
  }

  bool Resolve() {
    for (const PendingReference& reference : references_) {
      const Value* target = json::Get(document_, reference.target);
      const auto found = target == nullptr ? schema_at_.end() : schema_at_.find(target);
      if (found == schema_at_.end()) return Fail(reference.place, "the reference leads to no schema in the document");
      reference.node->reference = found->second;
    }
    return true;
  }

  const Value& document_;
  std::deque<Node> nodes_;
  std::unordered_map<const Value*, NodeId> schema_at_;
  std::vector<PendingReference> references_;
  int nesting_ = 0;
  size_t patterns_ = 0;
  absl::Status error_;
};

const std::map<std::string_view, Compiler::Reader>& Compiler::Readers() {
  static const auto* const kReaders = new std::map<std::string_view, Reader>{
      {"$defs", &Compiler::ReadDefinitions},
      {"$ref", &Compiler::ReadReference},
      {"$schema", &Compiler::ReadDialect},
      {"additionalItems", &Compiler::ReadOne<&Node::additional_items>},
      {"additionalProperties", &Compiler::ReadOne<&Node::additional_properties>},
      {"allOf", &Compiler::ReadList<&Node::all_of>},
      {"anyOf", &Compiler::ReadList<&Node::any_of>},
      {"const", &Compiler::ReadConst},
      {"contains", &Compiler::ReadOne<&Node::contains>},
      {"definitions", &Compiler::ReadDefinitions},
      {"dependencies", &Compiler::ReadDependencies},
      {"else", &Compiler::ReadOne<&Node::else_schema>},
      {"enum", &Compiler::ReadEnum},
      {"exclusiveMaximum", &Compiler::ReadNumber<&Node::exclusive_maximum>},
      {"exclusiveMinimum", &Compiler::ReadNumber<&Node::exclusive_minimum>},
      {"if", &Compiler::ReadOne<&Node::if_schema>},
      {"items", &Compiler::ReadItems},
      {"maxItems", &Compiler::ReadCount<&Node::max_items>},
      {"maxLength", &Compiler::ReadCount<&Node::max_length>},
      {"maxProperties", &Compiler::ReadCount<&Node::max_properties>},
      {"maximum", &Compiler::ReadNumber<&Node::maximum>},
      {"minItems", &Compiler::ReadCount<&Node::min_items>},
      {"minLength", &Compiler::ReadCount<&Node::min_length>},
      {"minProperties", &Compiler::ReadCount<&Node::min_properties>},
      {"minimum", &Compiler::ReadNumber<&Node::minimum>},
      {"multipleOf", &Compiler::ReadMultipleOf},
      {"not", &Compiler::ReadOne<&Node::not_schema>},
      {"oneOf", &Compiler::ReadList<&Node::one_of>},
      {"pattern", &Compiler::ReadPattern},
      {"patternProperties", &Compiler::ReadPatternProperties},
      {"properties", &Compiler::ReadProperties},
      {"propertyNames", &Compiler::ReadOne<&Node::property_names>},
      {"required", &Compiler::ReadRequired},
      {"then", &Compiler::ReadOne<&Node::then_schema>},
      {"type", &Compiler::ReadType},
      {"uniqueItems", &Compiler::ReadUniqueItems},
  };
  return *kReaders;
}

}  // namespace

Schema::Schema(std::unique_ptr<const CompiledSchema> compiled) : compiled_(std::move(compiled)) {}
Schema::~Schema() = default;

absl::StatusOr<std::shared_ptr<const Schema>> Compile(const json::Value& schema) {
  auto compiled = std::make_unique<CompiledSchema>();
  if (absl::Status status = Compiler(schema).Run(compiled.get()); !status.ok()) return status;
  return std::shared_ptr<const Schema>(new Schema(std::move(compiled)));
}

}  // namespace tally::schema
