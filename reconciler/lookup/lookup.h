// One question to a provider about one parked call.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tally/v1/parked.pb.h"

namespace tally::reconciler {

// What may be asked with. The two names are made from the call id alone, hex, as the gateway sent them; nothing that an
// agent wrote is in them.
struct Case {
  const v1::ParkedCall& parked;  // as claimed, with arguments
  std::string reference;         // what the gateway put where `reference` says
  std::string provider_key;      // what the gateway put where `replay.key` says
  std::string claim_id;          // the claim under which this is asked
};

struct Answer {
  v1::Finding finding = v1::FINDING_UNCLEAR;
  std::string detail;             // why, for a person
  std::string body;               // exactly what the provider said; may be empty where it said nothing
  std::string reference;          // where to find it again, such as the provider's own id; may be empty
  std::optional<int64_t> amount;  // HAPPENED: what it cost, minor units, where the look-up is told where that stands
  std::optional<std::string> result;  // HAPPENED: the answer, as the provider now shows it
};

// Thread-safe; blocks, and ends by the timeout of its configuration. Whatever goes wrong is FINDING_UNCLEAR: an error,
// a timeout, or an answer that it was not told how to read never is FINDING_ABSENT or FINDING_NOT_HAPPENED.
class LookUp {
 public:
  virtual ~LookUp() = default;
  virtual Answer Ask(const Case& asked) = 0;
};

}  // namespace tally::reconciler
