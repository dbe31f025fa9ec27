// Where a text of the gateway's own is put into a tools/call, and taken out of what the caller sent in that place.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "gateway/config/config.h"

namespace tally::gateway {

// The parts of a tools/call that a placement can name. Raw JSON objects, or empty.
struct CallParts {
  std::string arguments;
  std::string meta;
  std::map<std::string, std::string> headers;
};

void Strip(const Placement& place, CallParts& parts);
void Put(const Placement& place, std::string_view text, CallParts& parts);

}  // namespace tally::gateway
