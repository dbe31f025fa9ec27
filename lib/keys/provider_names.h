// The names under which providers know a call: 32 hex digits, made from the call's id alone, the same for all its
// attempts. Nothing that an agent wrote is in them. The gateway sends them, a reconciler looks the call up by them.
#pragma once

#include <string>
#include <string_view>

namespace tally::keys {

// `call_id` is the text form of the UUID, as tallyd gives it.
std::string ProviderKey(std::string_view call_id);        // by which a provider carries out one call a key
std::string ProviderReference(std::string_view call_id);  // by which the call can be found again

}  // namespace tally::keys
