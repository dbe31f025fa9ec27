// $ref: where it leads, and that following it comes to an end. Internal to lib/schema.
#ifndef TALLY_LIB_SCHEMA_REFERENCES_H_
#define TALLY_LIB_SCHEMA_REFERENCES_H_

#include <deque>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/json/pointer.h"
#include "lib/schema/node.h"

namespace tally::schema {

// The JSON pointer in a local reference: `#`, or `#` and a pointer with percent-encoding. InvalidArgument for any
// other.
absl::StatusOr<json::Pointer> PointerOfReference(std::string_view reference);

// InvalidArgument if schemas apply to one and the same value through one another for ever, or more than kInPlaceMax
// deep. With this, validation recurses only as deep as kInPlaceMax times the instance.
absl::Status CheckInPlaceDepth(const std::deque<Node>& nodes);

}  // namespace tally::schema

#endif  // TALLY_LIB_SCHEMA_REFERENCES_H_
