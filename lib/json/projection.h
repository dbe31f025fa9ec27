// Part of a value, in canonical bytes: without the places that some pointers name, or only those. What a grant says
// with intent_ignore and intent_fields.
#ifndef TALLY_LIB_JSON_PROJECTION_H_
#define TALLY_LIB_JSON_PROJECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/json/pointer.h"
#include "lib/json/value.h"

namespace tally::json {

// Made once, used for many values, from any thread.
//
// A pointer that leads nowhere in a value changes nothing: a place that is absent is neither removed nor kept, and is
// something else than a place that holds null.
class Projection {
 public:
  // All but the places named. An array closes up over what is removed from it; indexes are those of the whole value.
  // InvalidArgument for "", which would remove everything, so that all values would look the same.
  static absl::StatusOr<Projection> Without(const std::vector<Pointer>& pointers);

  // Only the places named, inside as much of the objects and arrays around them as leads there. An object or array that
  // leads to none is left out like any other member, so whatever is not named makes no difference. An array keeps its
  // positions: elements not kept before one that is are written as null. Where nothing is found the result is {}.
  static absl::StatusOr<Projection> Only(const std::vector<Pointer>& pointers);

  // Canonical (canonical.h) bytes of the part.
  std::string Canonical(const Value& value) const;

 private:
  // Pointers as a tree, a token a level. `here` is set where one ends: all below it is meant.
  struct Node;
  enum class Mode { kWithout, kOnly };

  Projection(Mode mode, const std::vector<Pointer>& pointers);
  static void WriteWithout(const Value& value, const Node& node, std::string* out);
  static bool WriteOnly(const Value& value, const Node& node, std::string* out);

  Mode mode_;
  std::shared_ptr<const Node> root_;
};

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_PROJECTION_H_
