// What follows from an answer, given all that was seen of this attempt before. Pure: no clock, no chance.
//
// The one rule that everything here serves: NOT_HAPPENED gives money back and lets the call be sent again, so it
// follows from nothing but a provider's plain word, from an absence that has become final, or from the gateway's own
// word that it never sent. All else waits, or goes to a person.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tally/v1/parked.pb.h"

namespace tally::reconciler {

using std::chrono::milliseconds;

// One look of this process. Times are a monotonic clock's.
struct Sighting {
  v1::Finding finding = v1::FINDING_UNCLEAR;
  milliseconds began{0};
  milliseconds ended{0};
  // At `began` the database's clock stood at least here.
  int64_t server_us = 0;
  std::optional<int64_t> amount;  // HAPPENED, where the answer said it
  std::string provider_id;        // where the answer said it
};

struct Limits {
  milliseconds absent_is_final_after{0};
  milliseconds absent_spacing{0};
  milliseconds give_up_after{0};
  milliseconds look_after_escalation{0};
  milliseconds backoff_min{0};
  milliseconds backoff_max{0};
};

// The attempt as the server shows it.
struct Parked {
  int64_t parked_at_us = 0;
  // The last instant at which its request can have left: the known time of sending or the end of the interval in which
  // it lies, the lease's end, or a replay's time, whichever is latest.
  int64_t quiet_from_us = 0;
  bool escalated = false;
  // The gateway said, too late to be believed by itself, that it never sent; and nothing says when it was sent.
  bool never_sent = false;
  // What any process noted of this attempt, oldest first.
  std::vector<v1::Finding> noted;
};

// Of a claimed call.
Parked ParkedOf(const v1::ParkedCall& parked);

struct Decision {
  enum class What {
    kHappened,     // resolve
    kNotHappened,  // resolve
    kEscalate,     // resolve CANNOT_TELL: a person is called
    kLookAgain,    // at a time to be drawn between wait_min and wait_max
    kLeave,        // nothing more is asked about it
  };
  What what = What::kLookAgain;
  milliseconds wait_min{0};
  milliseconds wait_max{0};
  std::string reason;  // for a person
};

// Before anything is asked: what needs no question. Nullopt: ask. `can_ask`: the tool has a look-up.
std::optional<Decision> BeforeAsking(const Limits& limits, const Parked& parked, bool can_ask, int64_t server_us);

// `own`: looks of this process at this attempt, oldest first; `present` is not among them, and not noted yet.
Decision Judge(const Limits& limits, const Parked& parked, const std::vector<Sighting>& own, const Sighting& present);

}  // namespace tally::reconciler
