#include "lib/decide/change.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "lib/keys/hash.h"

namespace tally::decide {
namespace {

std::string_view View(const Id& id) { return {reinterpret_cast<const char*>(id.data()), id.size()}; }
std::string_view View(const Hash& hash) { return {reinterpret_cast<const char*>(hash.data()), hash.size()}; }

void SetLimit(v1::Limit* message, const Limit& limit) {
  if (limit) {
    message->set_at_most(*limit);
  } else {
    message->set_unlimited(true);
  }
}

int64_t Over(int64_t taken, const Limit& limit) { return limit ? std::max<int64_t>(0, taken - *limit) : 0; }

// Authorize never calls this, so that the database's CHECKs bite should it ever grant too much.
void RenewOverrun(Scene& scene) {
  Counters& grant = scene.grant();
  Counters& permit = scene.permit.money;
  grant.slot_overrun = Over(grant.slots, scene.terms().cap);
  grant.overrun = Over(grant.held + grant.spent, scene.terms().budget);
  permit.overrun = Over(permit.held + permit.spent, scene.permit.terms->budget);
}

void MarkDirty(Scene& scene, Attempt& attempt) {
  scene.permit.dirty = true;
  scene.permit.grant_dirty[scene.call.grant_index - 1] = true;
  scene.call.dirty = true;
  attempt.dirty = true;
}

int64_t* EndCount(Permit& permit, v1::CallState state) {
  switch (state) {
    case v1::SUCCEEDED:
      return &permit.succeeded;
    case v1::TOOL_ERROR:
      return &permit.tool_error;
    case v1::RELEASED:
      return &permit.released;
    case v1::NOT_HAPPENED:
      return &permit.not_happened;
    default:
      return &permit.open_calls;
  }
}

// The row of an intent that this call has open. It need not have been loaded.
Intent& OwnRow(Scene& scene, const Hash& hash) {
  auto [row, fresh] = scene.world.intents.try_emplace(hash);
  if (fresh) {
    row->second.hash = hash;
    row->second.open_call = row->second.open_was = scene.call.call_id;
    row->second.open_permit = scene.call.permit_id;
    row->second.own = IsZero(scene.call.intent);
  }
  return row->second;
}

Time Window(const Scene& scene, const Attempt& attempt) {
  const bool doubted = scene.call.ever_uncertain || scene.call.contradicted > 0 || attempt.undelivered;
  return std::max(scene.terms().repeat_window, doubted ? kDay : 0);
}

}  // namespace

Permit* FindPermit(World& world, const Id& permit_id) {
  const auto found = world.permits.find(permit_id);
  return found == world.permits.end() ? nullptr : &found->second;
}

Call* FindCall(World& world, const CallName& name) {
  Id id;
  if (name.call_id) {
    id = *name.call_id;
  } else {
    const auto key = world.keys.find(std::make_pair(name.permit_id, name.key));
    if (key == world.keys.end()) return nullptr;
    id = key->second;
  }
  const auto found = world.calls.find(id);
  return found == world.calls.end() ? nullptr : &found->second;
}

Call* FollowBound(World& world, Call* call) {
  while (call != nullptr && call->bound_to) {
    const auto next = world.calls.find(*call->bound_to);
    if (next == world.calls.end()) return call;
    call = &next->second;
  }
  return call;
}

Attempt* FindAttempt(Call& call, const Id& attempt_id) {
  for (Attempt& attempt : call.attempts) {
    if (attempt.attempt_id == attempt_id) return &attempt;
  }
  return nullptr;
}

Call* FindHolder(World& world, Call* call, const Id& attempt_id) {
  while (call != nullptr && FindAttempt(*call, attempt_id) == nullptr) {
    const auto next = call->bound_to ? world.calls.find(*call->bound_to) : world.calls.end();
    call = next == world.calls.end() ? nullptr : &next->second;
  }
  return call;
}

Call* OwnCall(World& world, const Principal& principal, const Id& call_id, Permit*& permit) {
  Call* call = FindCall(world, CallName::OfCall(call_id));
  permit = call != nullptr ? FindPermit(world, call->permit_id) : nullptr;
  return permit != nullptr && permit->terms->tenant == principal.tenant ? call : nullptr;
}

bool ClaimIsLive(const World& world, const Call& call, const std::optional<Id>& claim_id) {
  return claim_id && call.claim_id == claim_id && world.now < call.claim_until;
}

AttemptIs Where(const Attempt* attempt) {
  if (attempt == nullptr) return AttemptIs::kUnseen;
  switch (attempt->state) {
    case v1::AUTHORIZED:
      return AttemptIs::kLeased;
    case v1::UNCERTAIN:
      return AttemptIs::kUncertain;
    case v1::RELEASED:
      return AttemptIs::kReleased;
    case v1::NOT_HAPPENED:
      return AttemptIs::kNotHappened;
    case v1::TOOL_ERROR:
      return attempt->read_no_answer ? AttemptIs::kReadNoAnswer : AttemptIs::kToolError;
    default:
      return attempt->by_verdict && IsZero(attempt->content) && attempt->attached_seq == 0 ? AttemptIs::kHappened
                                                                                           : AttemptIs::kSucceeded;
  }
}

v1::CallState Call::state() const {
  if (attempts.empty()) return v1::REFUSED;
  if (contradicted > 0 && !attempts.back().open()) return v1::SUCCEEDED;
  return attempts.back().state;
}

std::optional<Money> Sum(Money a, Money b) {
  Money sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

void Reserve(Scene& scene, Attempt& attempt, Money amount) {
  attempt.slot = true;
  attempt.hold = attempt.held = amount;
  scene.grant().slots += 1;
  scene.grant().held += amount;
  scene.permit.money.held += amount;
  MarkDirty(scene, attempt);
}

void GiveBack(Scene& scene, Attempt& attempt) {
  for (Counters* counters : {&scene.grant(), &scene.permit.money}) {
    counters->held -= attempt.held;
    counters->spent -= attempt.charged;
  }
  if (attempt.slot) scene.grant().slots -= 1;
  attempt.held = attempt.charged = 0;
  attempt.slot = false;
  RenewOverrun(scene);
  MarkDirty(scene, attempt);
}

void Charge(Scene& scene, Attempt& attempt, Money amount) {
  for (Counters* counters : {&scene.grant(), &scene.permit.money}) {
    counters->held -= attempt.held;
    counters->spent -= attempt.charged;
  }
  // Sums stay within int64 whatever is reported: what does not fit is not charged, and a person is called.
  for (const Counters* counters : {&scene.grant(), &scene.permit.money}) {
    const Money room = std::numeric_limits<Money>::max() - counters->spent - counters->held;
    if (amount > room) {
      amount = room;
      scene.call.attention = "amount_overflow";
    }
  }
  for (Counters* counters : {&scene.grant(), &scene.permit.money}) counters->spent += amount;
  if (!attempt.slot) scene.grant().slots += 1;
  attempt.held = 0;
  attempt.charged = amount;
  attempt.slot = true;
  RenewOverrun(scene);
  MarkDirty(scene, attempt);
}

Money SettledAmount(Scene& scene, const Attempt& attempt, std::optional<Money> reported, bool counts) {
  if (!reported || !counts) return attempt.hold;
  const Money most = attempt.hold > std::numeric_limits<Money>::max() / kOverrunFactorMax
                         ? std::numeric_limits<Money>::max()
                         : attempt.hold * kOverrunFactorMax;
  if (*reported <= most) return *reported;
  scene.call.attention = "amount_over_ten_times_the_hold";
  return most;
}

std::vector<Hash> ClaimsOf(const Call& call) {
  if (IsZero(call.intent)) {  // a READ stands under its own id
    Hash own{};
    std::copy(call.call_id.begin(), call.call_id.end(), own.begin());
    return {own};
  }
  if (call.explicit_intent) return {call.intent, *call.explicit_intent};
  return {call.intent};
}

void ClaimIntents(Scene& scene, const Attempt& attempt) {
  for (const Hash& hash : ClaimsOf(scene.call)) {
    Intent& row = scene.world.intents[hash];
    row.hash = hash;
    row.own = IsZero(scene.call.intent);
    row.open_call = scene.call.call_id;
    row.open_permit = scene.call.permit_id;
    row.lease_end = attempt.lease_end;
    row.open_dirty = true;
  }
}

void TouchLease(Scene& scene, const Attempt& attempt) {
  for (const Hash& hash : ClaimsOf(scene.call)) {
    Intent& row = OwnRow(scene, hash);
    row.lease_end = attempt.state == v1::AUTHORIZED ? attempt.lease_end : 0;
    row.open_dirty = true;
  }
}

void FreeIntents(Scene& scene) {
  for (const Hash& hash : ClaimsOf(scene.call)) {
    Intent& row = OwnRow(scene, hash);
    if (row.open_call != scene.call.call_id) continue;
    row.open_call.reset();
    row.open_permit = {};
    row.lease_end = 0;
    row.open_dirty = true;
  }
}

void MarkDone(Scene& scene, const Attempt& attempt) {
  if (IsZero(scene.call.intent)) return;
  for (const Hash& hash : ClaimsOf(scene.call)) {
    Intent& row = scene.world.intents[hash];
    row.hash = hash;
    row.done_call = scene.call.call_id;
    row.done_permit = scene.call.permit_id;
    row.done_at = scene.world.now;
    row.done_until = scene.world.now + Window(scene, attempt);
    row.done_dirty = true;
  }
}

void ExtendDone(Scene& scene, const Attempt& attempt) {
  if (IsZero(scene.call.intent)) return;
  for (const Hash& hash : ClaimsOf(scene.call)) {
    Intent& row = scene.world.intents[hash];
    if (row.done_call != scene.call.call_id) continue;
    row.done_until = std::max(row.done_until, row.done_at + Window(scene, attempt));
    row.done_dirty = true;
  }
}

void UnmarkDone(Scene& scene) {
  if (IsZero(scene.call.intent)) return;
  for (const Hash& hash : ClaimsOf(scene.call)) {
    Intent& row = scene.world.intents[hash];
    if (row.done_call != scene.call.call_id) continue;
    row.done_call.reset();
    row.done_permit = {};
    row.done_at = row.done_until = 0;
    row.done_dirty = true;
  }
}

Draft& WriteReceipt(World& world, Permit& permit, v1::ReceiptKind kind, const Principal* speaker) {
  Draft& draft = world.drafts.emplace_back();
  permit.dirty = true;
  draft.permit_id = permit.terms->permit_id;
  draft.sequence = ++permit.sequence;
  v1::ReceiptPayload& payload = draft.payload;
  payload.set_kind(kind);
  payload.set_tenant(permit.terms->tenant);
  payload.set_permit_id(std::string(View(draft.permit_id)));
  payload.set_time_us(world.now);
  payload.set_unit(permit.terms->unit);
  v1::Usage& budget = *payload.mutable_permit_budget();
  budget.set_held(permit.money.held);
  budget.set_spent(permit.money.spent);
  budget.set_overrun(permit.money.overrun);
  SetLimit(budget.mutable_limit(), permit.terms->budget);
  if (speaker != nullptr) {
    payload.set_principal_id(speaker->id);
    payload.set_principal_role(speaker->role);
  }
  return draft;
}

Draft& WriteCallReceipt(Scene& scene, v1::ReceiptKind kind, const Attempt* attempt, v1::EffectKnown effect,
                        std::string_view code) {
  Call& call = scene.call;
  Draft& draft = WriteReceipt(scene.world, scene.permit, kind, scene.speaker);
  draft.call_id = call.call_id;
  draft.call_previous_seq = call.last_seq;
  call.last_seq = draft.sequence;
  call.dirty = true;
  v1::ReceiptPayload& payload = draft.payload;
  payload.set_call_id(std::string(View(call.call_id)));
  payload.set_tool(call.tool);
  payload.set_grant_index(call.grant_index);
  if (!IsZero(call.intent)) payload.set_intent_hash(std::string(View(call.intent)));
  if (call.explicit_intent) payload.set_explicit_intent_hash(std::string(View(*call.explicit_intent)));
  payload.set_effect_known(effect);
  payload.set_code(std::string(code));
  payload.set_state(call.state());
  if (call.grant_index > 0) {
    const Counters& grant = scene.grant();
    payload.set_effect(scene.terms().effect);
    payload.mutable_cap()->set_used(grant.slots);
    payload.mutable_cap()->set_overrun(grant.slot_overrun);
    SetLimit(payload.mutable_cap()->mutable_limit(), scene.terms().cap);
    v1::Usage& budget = *payload.mutable_tool_budget();
    budget.set_held(grant.held);
    budget.set_spent(grant.spent);
    budget.set_overrun(grant.overrun);
    SetLimit(budget.mutable_limit(), scene.terms().budget);
  }
  if (attempt != nullptr) {
    payload.set_attempt_number(attempt->number);
    payload.set_attempt_id_hash(keys::AttemptIdHash(View(attempt->attempt_id)).str());
    payload.set_attempt_state(attempt->state);
    payload.set_held(attempt->held);
    payload.set_charged(attempt->charged);
    payload.set_lease_end_us(attempt->lease_end);
    payload.set_sent_at_us(attempt->sent_at);
    payload.set_undelivered(attempt->undelivered);
  }
  return draft;
}

void Supersede(Draft& draft, const Attempt& attempt) {
  draft.supersedes_seq = attempt.state_seq;
  draft.supersedes_receipt = attempt.state_receipt;
}

void SetState(Draft& draft, Attempt& attempt) {
  attempt.state_seq = draft.sequence;
  attempt.state_receipt.clear();
  attempt.dirty = true;
}

void Park(Scene& scene, Attempt& attempt, std::string_view code) {
  if (scene.terms().effect == v1::READ) {
    // Nothing that matters happened: the read ends, and a late answer may still replace this end.
    Count(scene.permit, attempt.state, v1::TOOL_ERROR);
    attempt.state = v1::TOOL_ERROR;
    attempt.read_no_answer = true;
    Charge(scene, attempt, scene.terms().charge_tool_errors ? attempt.hold : 0);
    Draft& draft = WriteCallReceipt(scene, v1::CALL_TOOL_ERROR, &attempt, v1::UNKNOWN, "READ_NO_ANSWER");
    Supersede(draft, attempt);
    SetState(draft, attempt);
    FreeIntents(scene);
    return;
  }
  attempt.state = v1::UNCERTAIN;
  scene.call.ever_uncertain = true;
  Draft& draft = WriteCallReceipt(scene, v1::CALL_UNCERTAIN, &attempt, v1::UNKNOWN, code);
  SetState(draft, attempt);
  TouchLease(scene, attempt);
}

bool ParkIfLapsed(World& world, Permit& permit, Call& call) {
  Attempt* attempt = call.last();
  if (attempt == nullptr || attempt->state != v1::AUTHORIZED || world.now < attempt->lease_end) return false;
  Scene scene{world, permit, call, nullptr};
  Park(scene, *attempt, "LEASE_OVER");
  return true;
}

void Count(Permit& permit, v1::CallState from, v1::CallState to) {
  if (EndCount(permit, from) == EndCount(permit, to)) return;
  *EndCount(permit, from) -= 1;
  *EndCount(permit, to) += 1;
  permit.dirty = true;
}

void CloseIfDone(World& world, Permit& permit) {
  if (!permit.closing || permit.closed || permit.open_calls > 0) return;
  permit.closed = true;
  Draft& draft = WriteReceipt(world, permit, v1::PERMIT_CLOSED, nullptr);
  permit.closed_seq = draft.sequence;
  v1::ClosingCounts& counts = *draft.payload.mutable_closing();
  counts.set_calls(permit.calls);
  counts.set_attempts(permit.attempts);
  counts.set_succeeded(permit.succeeded);
  counts.set_tool_error(permit.tool_error);
  counts.set_released(permit.released);
  counts.set_not_happened(permit.not_happened);
  counts.set_denied(permit.refusals);
  counts.set_spent(permit.money.spent);
  counts.set_overrun(permit.money.overrun);
}

void StandsAsHappened(Scene& scene, Attempt& attempt, v1::ReceiptKind kind, Money charge, Answer& answer) {
  const Counters grant_before = scene.grant();
  const Counters permit_before = scene.permit.money;
  Count(scene.permit, attempt.state, v1::SUCCEEDED);
  attempt.state = v1::SUCCEEDED;
  attempt.by_verdict = true;
  attempt.read_no_answer = false;
  Charge(scene, attempt, charge);
  scene.call.contradicted = attempt.number;
  // What has happened itself is no other call's name: were it one still, two calls could become each other's.
  scene.call.bound_to.reset();
  scene.call.bound_seq = 0;
  Draft& draft = WriteCallReceipt(scene, kind, &attempt, v1::CONTRADICTED);
  draft.payload.set_overrun(std::max<Money>(
      {0, scene.grant().overrun - grant_before.overrun, scene.permit.money.overrun - permit_before.overrun}));
  draft.payload.set_slot_overrun(std::max<int64_t>(0, scene.grant().slot_overrun - grant_before.slot_overrun));
  Supersede(draft, attempt);
  SetState(draft, attempt);
  MarkDone(scene, attempt);
  answer.receipts.push_back({scene.call.permit_id, draft.sequence});
}

Answer About(Verdict verdict, const Call& call, const Attempt* attempt, std::vector<int64_t> sequences) {
  Answer answer;
  answer.verdict = verdict;
  answer.call_id = call.call_id;
  answer.state = call.state();
  if (attempt != nullptr) {
    answer.attempt_id = attempt->attempt_id;
    answer.attempt_number = attempt->number;
    answer.attempt_state = attempt->state;
    answer.send_within = attempt->send_within;
    answer.lease = attempt->lease;
    answer.lease_end = attempt->lease_end;
  }
  for (int64_t sequence : sequences) {
    if (sequence > 0) answer.receipts.push_back({call.permit_id, sequence});
  }
  return answer;
}

}  // namespace tally::decide
