#include "gateway/call/placement.h"

#include <absl/strings/escaping.h>

#include "gateway/mcp/raw.h"
#include "lib/keys/hash.h"

namespace tally::gateway {
namespace {

using Where = Placement::Where;

std::string Derived(std::string_view purpose, std::string_view call_id) {
  using namespace std::string_view_literals;
  return absl::BytesToHexString(std::string(keys::Sha256({purpose, "\0"sv, call_id}).view().substr(0, 16)));
}

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

std::string ProviderKey(std::string_view call_id) { return Derived("tallystick/provider-key/v1", call_id); }
std::string ProviderReference(std::string_view call_id) { return Derived("tallystick/provider-reference/v1", call_id); }

}  // namespace tally::gateway
