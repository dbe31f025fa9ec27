#ifndef TALLY_LIB_DECIDE_CHANGE_H_
#define TALLY_LIB_DECIDE_CHANGE_H_

#include <optional>
#include <vector>

#include "lib/decide/request.h"
#include "lib/decide/tables.h"
#include "lib/decide/world.h"

// The changes that decisions are made of. Inside lib/decide only.
namespace tally::decide {

// A call's permit and grant, which every change needs.
struct Scene {
  World& world;
  Permit& permit;
  Call& call;
  const Principal* speaker;  // null: the server itself

  const GrantTerms& terms() const { return permit.terms->grants[call.grant_index - 1]; }
  Counters& grant() const { return permit.grants[call.grant_index - 1]; }
};

Permit* FindPermit(World& world, const Id& permit_id);
Call* FindCall(World& world, const CallName& name);  // by id, or by permit and key; not following bound_to
Call* FollowBound(World& world, Call* call);         // the call that answers for this key
Attempt* FindAttempt(Call& call, const Id& attempt_id);
// A call of the principal's tenant, with its permit; null: it looks missing.
Call* OwnCall(World& world, const Principal& principal, const Id& call_id, Permit*& permit);
bool ClaimIsLive(const World& world, const Call& call, const std::optional<Id>& claim_id);
// The first of the call and those it is bound to that has the attempt; null: none.
Call* FindHolder(World& world, Call* call, const Id& attempt_id);

// Where the attempt stands; null: unseen.
AttemptIs Where(const Attempt* attempt);

// ---- Money and slots ----

// Reserves a slot and `amount` for a new attempt. The guards have found room.
void Reserve(Scene& scene, Attempt& attempt, Money amount);
// Gives the hold, the charge and the slot back.
void GiveBack(Scene& scene, Attempt& attempt);
// Ends the hold and makes the attempt's charge `amount`, whatever it was; takes the slot if it is not taken.
void Charge(Scene& scene, Attempt& attempt, Money amount);
// What success costs: the hold, or what is reported, to ten times the hold; beyond that a person is called.
Money SettledAmount(Scene& scene, const Attempt& attempt, std::optional<Money> reported, bool counts);
// a + b, or nullopt past int64.
std::optional<Money> Sum(Money a, Money b);

// ---- Intents ----

void ClaimIntents(Scene& scene, const Attempt& attempt);
void TouchLease(Scene& scene, const Attempt& attempt);  // after the lease's end moved, or the attempt was parked
void FreeIntents(Scene& scene);                         // only where they were held till now
void MarkDone(Scene& scene, const Attempt& attempt);
void ExtendDone(Scene& scene, const Attempt& attempt);  // a longer window than MarkDone gave
void UnmarkDone(Scene& scene);

// ---- Receipts ----

// A receipt about the permit; counters must stand as after the decision.
Draft& WriteReceipt(World& world, Permit& permit, v1::ReceiptKind kind, const Principal* speaker);
// A receipt about a call, and an attempt of it if there is one. `before`: counters before the decision, for the
// overrun.
Draft& WriteCallReceipt(Scene& scene, v1::ReceiptKind kind, const Attempt* attempt, v1::EffectKnown effect,
                        std::string_view code = "");
// The receipt supersedes the one that brought the attempt's present state.
void Supersede(Draft& draft, const Attempt& attempt);
// The receipt is the one that brought the attempt's (new) state.
void SetState(Draft& draft, Attempt& attempt);

// ---- A call's turns ----

// Looks at the lease first: an AUTHORIZED attempt whose lease is over is parked. True if it was.
bool ParkIfLapsed(World& world, Permit& permit, Call& call);
void Park(Scene& scene, Attempt& attempt, std::string_view code);
// An attempt leaves AUTHORIZED or UNCERTAIN for `end`, or one end for another: the permit's counts follow.
void Count(Permit& permit, v1::CallState from, v1::CallState to);
// After the last open call of a closing permit has ended: PERMIT_CLOSED. To be called at the end of every decision.
void CloseIfDone(World& world, Permit& permit);

// An attempt that had been given back or had answered an error has happened after all.
void StandsAsHappened(Scene& scene, Attempt& attempt, v1::ReceiptKind kind, Money charge, Answer& answer);

// Fills the answer's states from the call, and its receipt.
Answer About(Verdict verdict, const Call& call, const Attempt* attempt, std::vector<int64_t> sequences);

inline bool IsZero(const Hash& hash) { return hash == Hash{}; }

}  // namespace tally::decide

#endif  // TALLY_LIB_DECIDE_CHANGE_H_
