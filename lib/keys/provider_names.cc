#include "lib/keys/provider_names.h"

#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"

namespace tally::keys {
namespace {

std::string Derived(std::string_view purpose, std::string_view call_id) {
  using namespace std::string_view_literals;
  return HexEncode(Sha256({purpose, "\0"sv, call_id}).view().substr(0, 16));
}

}  // namespace

std::string ProviderKey(std::string_view call_id) { return Derived("tallystick/provider-key/v1", call_id); }
std::string ProviderReference(std::string_view call_id) { return Derived("tallystick/provider-reference/v1", call_id); }

}  // namespace tally::keys
