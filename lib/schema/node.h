// A schema as compiled: what compile.cc writes, references.cc checks and validate.cc reads. Internal to lib/schema.
#ifndef TALLY_LIB_SCHEMA_NODE_H_
#define TALLY_LIB_SCHEMA_NODE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/json/decimal.h"
#include "lib/json/value.h"
#include "lib/schema/pattern.h"
#include "lib/schema/schema.h"

namespace tally::schema {

// An index into CompiledSchema::nodes.
using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;

// A set of types, one bit each; the type "number" is two of them.
using Types = uint8_t;
inline constexpr Types kNull = 1, kBoolean = 2, kFraction = 4, kInteger = 8, kString = 16, kArray = 32, kObject = 64;
inline constexpr Types kAnyType = 127;

// A constant of enum or const, and the steps that comparing with it may take.
struct Constant {
  json::Value value;
  int64_t steps;
};

struct PatternProperty {
  Pattern pattern;
  NodeId schema;
};

struct Dependency {
  std::string name;
  std::vector<std::string> required;
  NodeId schema = kNoNode;
};

// Absent keywords are kNoNode, nullopt, or empty.
struct Node {
  std::string place;  // JSON pointer in the schema document
  bool never = false;
  NodeId reference = kNoNode;  // where set, nothing below is

  Types types = kAnyType;
  std::vector<Constant> enumeration;
  std::optional<Constant> constant;

  std::optional<json::Decimal> multiple_of;
  std::optional<json::Decimal> maximum, exclusive_maximum, minimum, exclusive_minimum;

  std::optional<int64_t> max_length, min_length;
  std::optional<Pattern> pattern;

  NodeId items = kNoNode;          // for every element
  std::vector<NodeId> items_each;  // or for the first ones, one each
  bool items_are_listed = false;   // which of the two, since the list may be empty
  NodeId additional_items = kNoNode;
  std::optional<int64_t> max_items, min_items;
  bool unique_items = false;
  NodeId contains = kNoNode;

  std::optional<int64_t> max_properties, min_properties;
  std::vector<std::string> required;
  std::vector<std::pair<std::string, NodeId>> properties;  // sorted by name
  std::vector<PatternProperty> pattern_properties;
  NodeId additional_properties = kNoNode;
  NodeId property_names = kNoNode;
  std::vector<Dependency> dependencies;

  std::vector<NodeId> all_of, any_of, one_of;
  NodeId not_schema = kNoNode;
  NodeId if_schema = kNoNode, then_schema = kNoNode, else_schema = kNoNode;
};

struct CompiledSchema {
  std::deque<Node> nodes;  // a deque, so that nodes stay where they are while more are made
  NodeId root = kNoNode;
};

}  // namespace tally::schema

#endif  // TALLY_LIB_SCHEMA_NODE_H_
