#include "gateway/call/placement.h"

#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

using Where = Placement::Where;

}  // namespace

void Strip(const Placement& place, CallParts& parts) {
  if (place.where == Where::kArgument) parts.arguments = mcp::WithoutMember(parts.arguments, place.name);
  if (place.where == Where::kMeta) parts.meta = mcp::WithoutMember(parts.meta, place.name);
}

void Put(const Placement& place, std::string_view text, CallParts& parts) {
  const auto with = [&](const std::string& object) {
    return mcp::WithMember(object.empty() ? "{}" : object, place.name, mcp::Quote(text));
  };
  if (place.where == Where::kArgument) parts.arguments = with(parts.arguments);
  if (place.where == Where::kMeta) parts.meta = with(parts.meta);
  if (place.where == Where::kHeader) parts.headers[place.name] = std::string(text);
}

}  // namespace tally::gateway
