#include "reconciler/engine/judge.h"

#include <algorithm>

#include "lib/keys/text.h"
#include "tally/v1/receipt.pb.h"

namespace tally::reconciler {
namespace {

using What = Decision::What;

constexpr int kDoublingsMax = 40;  // no ceiling is further away

int64_t Us(milliseconds duration) { return std::chrono::duration_cast<std::chrono::microseconds>(duration).count(); }

Decision Of(What what, std::string reason) { return {what, {}, {}, std::move(reason)}; }

std::string Words(v1::Finding finding) {
  switch (finding) {
    case v1::FINDING_HAPPENED:
      return "that it happened";
    case v1::FINDING_NOT_HAPPENED:
      return "that it did not happen";
    case v1::FINDING_ABSENT:
      return "that there is no record of it";
    case v1::FINDING_PENDING:
      return "that it is not decided";
    default:
      return "nothing clear";
  }
}

// A provider that said `before` cannot rightly say `now`. A record does not vanish, nor does what happened unhappen.
// UNCLEAR says nothing and contradicts nothing; a record that turns up after an absence is what waiting is for, and one
// that was pending may end either way.
bool Contradicts(v1::Finding before, v1::Finding now) {
  switch (before) {
    case v1::FINDING_HAPPENED:
      return now == v1::FINDING_ABSENT || now == v1::FINDING_NOT_HAPPENED || now == v1::FINDING_PENDING;
    case v1::FINDING_PENDING:
      return now == v1::FINDING_ABSENT;
    case v1::FINDING_NOT_HAPPENED:
      return now == v1::FINDING_HAPPENED || now == v1::FINDING_ABSENT || now == v1::FINDING_PENDING;
    default:
      return false;
  }
}

std::optional<std::string> Contradiction(const Parked& parked, const std::vector<Sighting>& own,
                                         const Sighting& present) {
  std::vector<v1::Finding> before = parked.noted;
  for (const Sighting& sighting : own) before.push_back(sighting.finding);
  for (const v1::Finding finding : before) {
    if (Contradicts(finding, present.finding)) {
      return keys::Cat("the provider contradicts itself: it said ", Words(finding), ", and now ",
                       Words(present.finding));
    }
  }
  for (const Sighting& sighting : own) {
    if (sighting.amount && present.amount && *sighting.amount != *present.amount) {
      return "the provider contradicts itself: it has said two different amounts";
    }
    if (!sighting.provider_id.empty() && !present.provider_id.empty() && sighting.provider_id != present.provider_id) {
      return "the provider has shown two different records of this one call: it may have been carried out twice";
    }
  }
  return std::nullopt;
}

// Seen so late after the last byte can have left that whatever was on its way has arrived.
bool LateEnough(const Limits& limits, const Parked& parked, const Sighting& sighting) {
  return sighting.server_us >= parked.quiet_from_us + Us(limits.absent_is_final_after);
}

bool AbsentIsFinal(const Limits& limits, const Parked& parked, const std::vector<Sighting>& own,
                   const Sighting& present) {
  if (present.finding != v1::FINDING_ABSENT || !LateEnough(limits, parked, present)) return false;
  return std::any_of(own.begin(), own.end(), [&](const Sighting& first) {
    return first.finding == v1::FINDING_ABSENT && LateEnough(limits, parked, first) &&
           present.began - first.ended >= limits.absent_spacing;
  });
}

Decision Again(milliseconds min, milliseconds max, std::string reason) {
  return {What::kLookAgain, min, std::max(min, max), std::move(reason)};
}

// Anywhere below a ceiling that doubles with every look, never below the least pause.
Decision Backoff(const Limits& limits, size_t looks) {
  const int doublings = static_cast<int>(std::min<size_t>(looks, kDoublingsMax));
  milliseconds ceiling = limits.backoff_min;
  for (int i = 0; i < doublings && ceiling < limits.backoff_max; ++i) ceiling *= 2;
  return Again(limits.backoff_min, std::min(ceiling, limits.backoff_max), "");
}

Decision LookAgain(const Limits& limits, const Parked& parked, const std::vector<Sighting>& own,
                   const Sighting& present) {
  if (parked.escalated) {
    return Again(limits.backoff_max / 2, limits.backoff_max, "a person was called; the provider is asked on");
  }
  Decision again = Backoff(limits, std::max(parked.noted.size(), own.size()) + 1);
  if (present.finding != v1::FINDING_ABSENT) return again;
  if (LateEnough(limits, parked, present)) {
    return Again(limits.absent_spacing, limits.absent_spacing + limits.absent_spacing / 4,
                 "no record of it; if that is so once more it is final");
  }
  // No later than it begins to count.
  const int64_t left_us = parked.quiet_from_us + Us(limits.absent_is_final_after) - present.server_us;
  const milliseconds counts_in{left_us / 1000 + 1};
  if (again.wait_max > counts_in) {
    again.wait_max = std::min(again.wait_max, std::max(limits.backoff_min, counts_in + counts_in / 10));
    again.wait_min = std::min(again.wait_min, again.wait_max);
  }
  return Again(again.wait_min, again.wait_max, "no record of it, too early for that to mean anything");
}

bool Over(milliseconds after, const Parked& parked, int64_t server_us) {
  return server_us >= parked.parked_at_us + Us(after);
}

}  // namespace

Parked ParkedOf(const v1::ParkedCall& parked) {
  Parked out;
  out.parked_at_us = parked.parked_at_us();
  out.escalated = parked.escalated();
  int64_t sent_us = 0;
  int64_t lease_end_us = 0;
  if (!parked.call().attempts().empty()) {
    const v1::AttemptInfo& last = *parked.call().attempts().rbegin();
    sent_us = last.sent_at_us();
    lease_end_us = last.lease_end_us();
  }
  out.never_sent = parked.late_not_sent() && sent_us == 0;
  // A known time of sending is the gateway's clock's. Where that is slow, the lease's end is the later one anyway.
  out.quiet_from_us = std::max(sent_us != 0 ? sent_us : parked.send_before_us(), lease_end_us);
  for (const v1::LookUp& look_up : parked.look_ups()) out.noted.push_back(look_up.finding());
  // A replay is a send, of whichever attempt: all have one key. Its receipt is there even if who sent it died on the
  // spot.
  for (const v1::Receipt& receipt : parked.call().receipts()) {
    v1::ReceiptPayload payload;
    if (payload.ParseFromString(receipt.payload()) && payload.kind() != v1::CALL_REPLAY_SENT) continue;
    out.quiet_from_us = std::max(out.quiet_from_us, payload.time_us());
    out.never_sent = false;
  }
  return out;
}

std::optional<Decision> BeforeAsking(const Limits& limits, const Parked& parked, bool can_ask, int64_t server_us) {
  if (parked.escalated) {
    if (can_ask && !Over(limits.look_after_escalation, parked, server_us)) return std::nullopt;
    return Of(What::kLeave, "a person was called, and nothing more is asked");
  }
  const bool seen = std::any_of(parked.noted.begin(), parked.noted.end(), [](v1::Finding finding) {
    return finding == v1::FINDING_HAPPENED || finding == v1::FINDING_PENDING;
  });
  if (parked.never_sent && !seen) {
    return Of(
        What::kNotHappened,
        "the gateway says that it never sent this call, and nothing shows that it did: its word came after the lease "
        "had ended, and is taken here");
  }
  if (!can_ask) return Of(What::kEscalate, "no look-up is configured for this tool: a person must ask its provider");
  return std::nullopt;
}

Decision Judge(const Limits& limits, const Parked& parked, const std::vector<Sighting>& own, const Sighting& present) {
  if (const auto contradiction = Contradiction(parked, own, present)) {
    if (parked.escalated) return Again(limits.backoff_max / 2, limits.backoff_max, *contradiction);
    return Of(What::kEscalate, *contradiction);
  }
  if (present.finding == v1::FINDING_HAPPENED) return Of(What::kHappened, "the provider says that it happened");
  // After escalation only that it happened may be brought.
  if (!parked.escalated) {
    if (present.finding == v1::FINDING_NOT_HAPPENED) {
      return Of(What::kNotHappened, "the provider has a record of it, which says that it was not carried out");
    }
    if (AbsentIsFinal(limits, parked, own, present)) {
      return Of(What::kNotHappened,
                "the provider had no record of it, twice and long enough after it can last have been sent");
    }
    if (Over(limits.give_up_after, parked, present.server_us)) {
      return Of(What::kEscalate,
                keys::Cat("it could not be told in time; the last look-up brought ", Words(present.finding)));
    }
  }
  return LookAgain(limits, parked, own, present);
}

}  // namespace tally::reconciler
