// The receipts about calls: the two tables of a call's life, seen from outside.
#include <algorithm>
#include <limits>

#include "lib/keys/text.h"
#include "lib/receipt/json.h"
#include "lib/receipt/replay.h"

namespace tally::receipt {
namespace {

using keys::Cat;

constexpr int64_t kRefusalReceiptsMax = 10'000;
constexpr int64_t kDayUs = 86'400'000'000;
constexpr int64_t kOverrunFactorMax = 10;

Fault Unless(bool right, std::string_view fault) { return right ? Fault() : Fault(std::string(fault)); }

std::string StateName(v1::CallState state) { return v1::CallState_Name(state); }

bool Within(int64_t value, const v1::Limit& limit) { return !limit.has_at_most() || value <= limit.at_most(); }

}  // namespace

Fault PermitReplay::ApplyToCall(const v1::ReceiptPayload& p, std::string_view id) {
  if (p.grant_index() > terms_.grants_size()) return "it names a grant that the permit does not have";
  if (p.grant_index() != GrantFor(p.tool())) return "its grant is not the most specific one for its tool";
  if (p.grant_index() > 0 && p.effect() != terms_.grants(p.grant_index() - 1).effect()) {
    return "its effect is not the grant's";
  }
  Fault fault;
  switch (p.kind()) {
    case v1::CALL_DENIED:
      fault = Deny(p);
      break;
    case v1::CALL_REPEATED:
      fault = Repeat(p);
      break;
    case v1::CALL_ALLOWED:
      fault = Allow(p, id);
      break;
    default:
      fault = LaterOf(p, id);
  }
  if (fault) return fault;
  if (touched_->State() != p.state()) {
    return Cat("it says that the call is ", StateName(p.state()), " where the chain makes it ",
               StateName(touched_->State()));
  }
  if (touched_attempt_ == nullptr) return std::nullopt;
  const Attempt& attempt = *touched_attempt_;
  if (attempt.state != p.attempt_state()) {
    return Cat("it says that the attempt is ", StateName(p.attempt_state()), " where it becomes ",
               StateName(attempt.state));
  }
  if (attempt.held != p.held()) return Cat("its held is ", p.held(), ", but the attempt holds ", attempt.held);
  return Unless(attempt.charged == p.charged(),
                Cat("its charged is ", p.charged(), ", but the attempt is charged ", attempt.charged));
}

// ---- Authorize ----

const std::string& PermitReplay::Followed(const std::string& call_id) const {
  const std::string* at = &call_id;
  for (size_t steps = 0; steps <= calls_.size(); ++steps) {
    const auto found = calls_.find(*at);
    if (found == calls_.end() || found->second.bound_to.empty()) break;
    at = &found->second.bound_to;
  }
  return *at;
}

// What every answer to a key says: one key stands for one call (or the one it was bound to), and one fingerprint.
Fault PermitReplay::Asked(const v1::ReceiptPayload& p) {
  auto [known, fresh] = keys_.try_emplace(p.key_hash());
  Key& key = known->second;
  if (fresh) key = {p.fingerprint_hash(), p.call_id()};
  if (key.fingerprint != p.fingerprint_hash()) return "its key stood for something else before";
  if (p.call_id() != Followed(key.call)) return "its key was another call's before";
  auto [found, first] = calls_.try_emplace(p.call_id());
  touched_ = &found->second;
  if (first) {
    touched_->tool = p.tool();
    touched_->grant_index = p.grant_index();
    touched_->intent = p.intent_hash();
  }
  if (touched_->tool != p.tool()) return "the call was of another tool before";
  return Unless(touched_->intent == p.intent_hash(), "the call had another intent before");
}

Fault PermitReplay::Deny(const v1::ReceiptPayload& p) {
  if (auto fault = Asked(p)) return fault;
  if (p.disposition() == v1::DISPATCH) return "a CALL_DENIED that says DISPATCH";
  if (p.effect_known() != v1::NONE) return "a CALL_DENIED that knows of an effect";
  if (++denied_ > kRefusalReceiptsMax) return Cat("more than ", kRefusalReceiptsMax, " refusals");
  const v1::CallState state = touched_->State();
  if (!touched_->bound_to.empty() || (state != v1::REFUSED && state != v1::RELEASED && state != v1::NOT_HAPPENED)) {
    return "it refuses a key whose call is open or answered, which has an answer";
  }
  if (p.code() == "CALL_CAP" && Within(p.cap().used() + 1, p.cap().limit()))
    return "CALL_CAP where the cap leaves room";
  if (p.code() == "TOOL_NOT_GRANTED" && p.grant_index() != 0) return "TOOL_NOT_GRANTED where the tool is granted";
  if (p.grant_index() == 0 && p.code() == "CALL_CAP") return "CALL_CAP without a grant";
  if (p.code() == "PERMIT_REVOKED" && !revoked_) return "PERMIT_REVOKED where the permit is not";
  if (p.code() == "PERMIT_CLOSED" && !closing_) return "PERMIT_CLOSED where the permit is not closing";
  if (p.code() == "PERMIT_EXPIRED" && p.time_us() < terms_.expires_at_us()) return "PERMIT_EXPIRED before its time";
  return Unless(p.code() != "PERMIT_NOT_YET_VALID" || p.time_us() < terms_.not_before_us(),
                "PERMIT_NOT_YET_VALID after its time");
}

Fault PermitReplay::Repeat(const v1::ReceiptPayload& p) {
  if (auto fault = Asked(p)) return fault;
  if (p.effect_known() != v1::NONE) return "a CALL_REPEATED that knows of an effect";
  if (p.disposition() != v1::REPLAY) return "a CALL_REPEATED that does not say REPLAY";
  if (p.effect() != v1::WRITE) return "a READ that repeats: reads have no intent";
  const v1::CallState state = touched_->State();
  if (state != v1::REFUSED && state != v1::RELEASED && state != v1::NOT_HAPPENED) {
    return "it binds a key whose call is open or answered";
  }
  const auto done = calls_.find(p.repeat_of_call_id());
  if (done == calls_.end() || p.repeat_of_call_id() == p.call_id()) {
    return "it repeats a call that the chain does not have";
  }
  if (done->second.State() != v1::SUCCEEDED) return "it repeats a call that has not succeeded";
  if (done->second.intent != p.intent_hash()) return "it repeats a call of another intent";
  touched_->bound_to = p.repeat_of_call_id();
  return std::nullopt;
}

Fault PermitReplay::AllowedByTerms(const v1::ReceiptPayload& p) const {
  if (revoked_ || closing_) return "a grant after the permit was revoked or closed";
  if (p.time_us() < terms_.not_before_us() || p.time_us() >= terms_.expires_at_us()) {
    return "a grant outside the permit's time";
  }
  const v1::GrantTerms& grant = GrantOf(*touched_);
  if (p.attempt_number() > grant.max_attempts()) return "more attempts than the grant allows";
  if (!Within(p.held(), grant.per_call())) return "a hold over the limit for one call";
  if (grant.cost().has_fixed() && p.held() != grant.cost().fixed()) return "a hold that is not the grant's fixed cost";
  if (grant.cost().has_none() && p.held() != 0) return "a hold where the grant costs nothing";
  if (p.send_within_ms() > grant.send_within_ms()) return "a longer send window than the grant's";
  if (p.lease_end_us() <= p.time_us() || (p.lease_end_us() - p.time_us()) / 1000 > grant.lease_ms()) {
    return "a lease that is not within the grant's";
  }
  const Taken& taken = grants_[static_cast<size_t>(p.grant_index() - 1)];
  if (!Within(taken.slots + 1, grant.cap())) return "a grant beyond the cap";
  int64_t tool = 0;
  int64_t permit = 0;
  if (__builtin_add_overflow(taken.held + taken.spent, p.held(), &tool) ||
      __builtin_add_overflow(permit_.held + permit_.spent, p.held(), &permit)) {
    return "a hold that makes the sums overflow";
  }
  if (!Within(tool, grant.budget())) return "a grant beyond the tool's budget";
  return Unless(Within(permit, terms_.budget()), "a grant beyond the permit's budget");
}

Fault PermitReplay::Allow(const v1::ReceiptPayload& p, std::string_view id) {
  if (auto fault = Asked(p)) return fault;
  if (p.disposition() != v1::DISPATCH) return "a CALL_ALLOWED that does not say DISPATCH";
  if (p.effect_known() != v1::NONE) return "a CALL_ALLOWED that knows of an effect";
  if (!touched_->bound_to.empty()) return "a grant to a call whose key is another call's";
  const auto given_back = [](const Attempt& a) { return a.state == v1::RELEASED || a.state == v1::NOT_HAPPENED; };
  if (!std::all_of(touched_->attempts.begin(), touched_->attempts.end(), given_back)) {
    return "a new attempt while an earlier one is open, answered or has happened";
  }
  if (p.attempt_number() != static_cast<int32_t>(touched_->attempts.size()) + 1)
    return "attempts are not counted by one";
  if (!attempt_ids_.insert(p.attempt_id_hash()).second) return "it grants an attempt that was granted or voided before";
  if (!p.intent_hash().empty() && !open_intents_.try_emplace(p.intent_hash(), p.call_id()).second) {
    return "a grant while another call of the same intent is open";
  }
  if (auto fault = AllowedByTerms(p)) return fault;

  Attempt& attempt = touched_->attempts.emplace_back();
  touched_attempt_ = &attempt;
  attempt.state = v1::AUTHORIZED;
  attempt.id_hash = p.attempt_id_hash();
  attempt.state_receipt = id;
  attempt.hold = attempt.held = p.held();
  attempt.granted_us = p.time_us();
  attempt.lease_end_us = p.lease_end_us();
  attempt.slot = true;
  ++open_attempts_;
  Taken& taken = grants_[static_cast<size_t>(p.grant_index() - 1)];
  taken.slots += 1;
  taken.held += p.held();
  permit_.held += p.held();
  return std::nullopt;
}

// ---- What becomes of an attempt ----

Fault PermitReplay::LaterOf(const v1::ReceiptPayload& p, std::string_view id) {
  const auto found = calls_.find(p.call_id());
  if (found == calls_.end()) return "it is about a call that the chain does not have";
  Call& call = found->second;
  if (call.tool != p.tool() || call.intent != p.intent_hash())
    return "it is about another tool or intent than the call's";
  const auto number = static_cast<size_t>(p.attempt_number());
  if (number < 1 || number > call.attempts.size()) return "it is about an attempt that was never granted";
  Attempt& attempt = call.attempts[number - 1];
  if (attempt.id_hash != p.attempt_id_hash()) return "its attempt_id is not the one that was granted";
  if (p.lease_end_us() < attempt.lease_end_us ||
      p.lease_end_us() > std::max(attempt.granted_us + kDayUs, attempt.lease_end_us)) {
    return "a lease that ends before it did, or more than 24 hours after the grant";
  }
  if (attempt.state != v1::AUTHORIZED && p.lease_end_us() != attempt.lease_end_us) {
    return "the lease of an attempt moved after it was over";
  }
  attempt.lease_end_us = p.lease_end_us();
  if (!p.supersedes().empty() && p.supersedes() != attempt.state_receipt) {
    return "it supersedes another receipt than the one that says how the attempt stands";
  }
  touched_ = &call;
  touched_attempt_ = &attempt;

  const bool attaches =
      attempt.by_verdict && !attempt.open() && (p.kind() == v1::CALL_SUCCEEDED || p.kind() == v1::CALL_TOOL_ERROR);
  const v1::CallState before = attempt.state;
  const bool had_no_answer = attempt.no_answer;
  Fault fault;
  switch (p.kind()) {
    case v1::CALL_RELEASED:
      fault = Release(p, attempt);
      break;
    case v1::CALL_SUCCEEDED:
    case v1::CALL_TOOL_ERROR:
      fault = attaches ? Attach(p, attempt) : Answer(p, call, attempt);
      break;
    case v1::CALL_UNCERTAIN:
      fault = Park(p, call, attempt);
      break;
    case v1::CALL_ESCALATED:
      fault = Escalate(p, attempt);
      break;
    case v1::CALL_REPLAY_SENT:
      fault = ReplaySent(p, attempt);
      break;
    case v1::CALL_RESOLVED_HAPPENED:
    case v1::CALL_RESOLVED_NOT_HAPPENED:
      fault = Resolve(p, attempt);
      break;
    case v1::CALL_CONTRADICTED:
      fault = Contradict(p, call, attempt);
      break;
    case v1::CALL_CORRECTED:
      fault = Correct(p, attempt);
      break;
    default:
      return Cat("a ", KindName(p.kind()), " has no place on a permit's chain");
  }
  if (!fault && (attempt.state != before || attempt.no_answer != had_no_answer)) attempt.state_receipt = id;
  return fault;
}

Fault PermitReplay::Release(const v1::ReceiptPayload& p, Attempt& attempt) {
  if (attempt.state != v1::AUTHORIZED) return Cat("CALL_RELEASED from ", StateName(attempt.state));
  if (p.time_us() >= attempt.lease_end_us) return "CALL_RELEASED after the lease was over";
  if (p.effect_known() != v1::NOT_SENT) return "a CALL_RELEASED whose effect is not not_sent";
  End(attempt, v1::RELEASED, 0, false);
  return std::nullopt;
}

Fault PermitReplay::ChargeFault(const v1::ReceiptPayload& p, const Attempt& attempt, bool stated) const {
  for (const Taken* taken : {&permit_, &grants_[static_cast<size_t>(touched_->grant_index - 1)]}) {
    int64_t sum = taken->held - attempt.held + taken->spent - attempt.charged;
    if (__builtin_add_overflow(sum, p.charged(), &sum)) return "a charge that makes the sums overflow";
  }
  if (p.charged() == attempt.hold) return std::nullopt;
  // Where the sums would pass int64, less is charged than is due.
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const auto full = [](const v1::Usage& usage) { return usage.held() == kMax - usage.spent(); };
  if (p.charged() < attempt.hold && (full(p.tool_budget()) || full(p.permit_budget()))) return std::nullopt;
  if (!stated) return Cat("a charge of ", p.charged(), " where the hold was ", attempt.hold);
  const int64_t most = attempt.hold > kMax / kOverrunFactorMax ? kMax : attempt.hold * kOverrunFactorMax;
  return Unless(p.charged() <= most, "a charge over ten times the hold");
}

// The tool's answer, in time, late, or after a READ had been given up.
Fault PermitReplay::Answer(const v1::ReceiptPayload& p, Call& call, Attempt& attempt) {
  const v1::GrantTerms& grant = GrantOf(call);
  const bool gives_up = p.code() == "READ_NO_ANSWER";
  if (!attempt.open() && !(attempt.no_answer && !gives_up)) {
    return Cat(KindName(p.kind()), " from ", StateName(attempt.state));
  }
  if (gives_up && (grant.effect() != v1::READ || attempt.state != v1::AUTHORIZED || p.kind() != v1::CALL_TOOL_ERROR)) {
    return "READ_NO_ANSWER where no READ was waiting";
  }
  if (p.kind() == v1::CALL_SUCCEEDED) {
    if (p.effect_known() != v1::ANSWERED) return "a CALL_SUCCEEDED whose effect is not answered";
    if (auto fault = ChargeFault(p, attempt, grant.settle() == v1::SETTLE_REPORTED)) return fault;
    End(attempt, v1::SUCCEEDED, p.charged(), true);
  } else {
    if (p.effect_known() != (gives_up ? v1::UNKNOWN : v1::ANSWERED_ERROR)) {
      return "a CALL_TOOL_ERROR that says otherwise of its effect";
    }
    const bool keeps = grant.on_tool_error() != v1::RELEASE;
    const bool may_be_free = !gives_up || !keeps;  // released by the grant, or because the tool did nothing
    if (!(p.charged() == 0 && may_be_free)) {
      if (!keeps) return "a charge for an error where the grant releases it";
      if (auto fault = ChargeFault(p, attempt, false)) return fault;
    }
    End(attempt, v1::TOOL_ERROR, p.charged(), true);
  }
  attempt.no_answer = gives_up;
  attempt.answered = !gives_up;
  return std::nullopt;
}

// An answer that came after a verdict had ended the attempt: it is added, and moves nothing.
Fault PermitReplay::Attach(const v1::ReceiptPayload& p, Attempt& attempt) {
  if (attempt.attached) return "a second answer to an attempt that a verdict ended";
  const bool after_happened = attempt.state == v1::SUCCEEDED && !attempt.answered;
  const bool error_after_not_happened = attempt.state == v1::NOT_HAPPENED && p.kind() == v1::CALL_TOOL_ERROR;
  if (!after_happened && !error_after_not_happened) return Cat(KindName(p.kind()), " from ", StateName(attempt.state));
  if (p.effect_known() != (p.kind() == v1::CALL_SUCCEEDED ? v1::ANSWERED : v1::ANSWERED_ERROR)) {
    return "an answer that says otherwise of its effect";
  }
  attempt.attached = true;
  return std::nullopt;
}

Fault PermitReplay::Park(const v1::ReceiptPayload& p, Call& call, Attempt& attempt) {
  if (GrantOf(call).effect() == v1::READ) return "a READ that is parked";
  if (attempt.state != v1::AUTHORIZED) return Cat("CALL_UNCERTAIN from ", StateName(attempt.state));
  if (p.effect_known() != v1::UNKNOWN) return "a CALL_UNCERTAIN whose effect is not unknown";
  if (p.code() == "LEASE_OVER" && p.time_us() < p.lease_end_us()) return "LEASE_OVER before the lease was over";
  attempt.state = v1::UNCERTAIN;
  return std::nullopt;
}

Fault PermitReplay::Escalate(const v1::ReceiptPayload& p, Attempt& attempt) {
  if (attempt.state != v1::UNCERTAIN) return Cat("CALL_ESCALATED from ", StateName(attempt.state));
  if (p.effect_known() != v1::UNKNOWN) return "a CALL_ESCALATED whose effect is not unknown";
  if (attempt.escalated) return "a second CALL_ESCALATED of one attempt";
  attempt.escalated = true;
  return std::nullopt;
}

Fault PermitReplay::ReplaySent(const v1::ReceiptPayload& p, const Attempt& attempt) const {
  if (attempt.state != v1::UNCERTAIN) return Cat("CALL_REPLAY_SENT from ", StateName(attempt.state));
  if (p.effect_known() != v1::UNKNOWN) return "a CALL_REPLAY_SENT whose effect is not unknown";
  if (p.principal_role() != v1::RECONCILER) return "a replay that no reconciler sent";
  return Unless(!revoked_ && !closing_ && p.time_us() < terms_.expires_at_us(),
                "a replay under a permit that had ended");
}

Fault PermitReplay::Resolve(const v1::ReceiptPayload& p, Attempt& attempt) {
  const bool happened = p.kind() == v1::CALL_RESOLVED_HAPPENED;
  if (attempt.state != v1::UNCERTAIN) return Cat(KindName(p.kind()), " from ", StateName(attempt.state));
  if (p.principal_role() != v1::RECONCILER && p.principal_role() != v1::OPERATOR) {
    return "a resolution by neither a reconciler nor an operator";
  }
  if (p.effect_known() != (happened ? v1::EFFECT_RESOLVED_HAPPENED : v1::EFFECT_RESOLVED_NOT_HAPPENED)) {
    return "a resolution that says otherwise of its effect";
  }
  if (!happened && attempt.escalated && p.principal_role() != v1::OPERATOR) {
    return "NOT_HAPPENED after an escalation by someone else than a person";
  }
  if (happened) {
    if (auto fault = ChargeFault(p, attempt, true)) return fault;
    End(attempt, v1::SUCCEEDED, p.charged(), true);
  } else {
    End(attempt, v1::NOT_HAPPENED, 0, false);
  }
  attempt.by_verdict = true;
  attempt.answered = false;
  return std::nullopt;
}

Fault PermitReplay::Contradict(const v1::ReceiptPayload& p, Call& call, Attempt& attempt) {
  const bool ended = attempt.state == v1::RELEASED || attempt.state == v1::NOT_HAPPENED ||
                     (attempt.state == v1::TOOL_ERROR && !attempt.no_answer);
  if (!ended) return Cat("CALL_CONTRADICTED from ", StateName(attempt.state));
  if (p.effect_known() != v1::CONTRADICTED) return "a CALL_CONTRADICTED whose effect is not contradicted";
  if (auto fault = ChargeFault(p, attempt, GrantOf(call).settle() == v1::SETTLE_REPORTED)) return fault;
  End(attempt, v1::SUCCEEDED, p.charged(), true);
  attempt.by_verdict = attempt.answered = true;
  call.bound_to.clear();  // what has happened itself is no other call's name
  return std::nullopt;
}

Fault PermitReplay::Correct(const v1::ReceiptPayload& p, Attempt& attempt) {
  if (p.principal_role() != v1::OPERATOR) return "a correction by someone else than an operator";
  const bool happened = p.attempt_state() == v1::SUCCEEDED;
  if (p.effect_known() != (happened ? v1::EFFECT_RESOLVED_HAPPENED : v1::EFFECT_RESOLVED_NOT_HAPPENED)) {
    return "a correction that says otherwise of its effect";
  }
  if (happened) {
    if (attempt.open() || attempt.state == v1::SUCCEEDED)
      return Cat("corrected to happened from ", StateName(attempt.state));
    if (auto fault = ChargeFault(p, attempt, true)) return fault;
    End(attempt, v1::SUCCEEDED, p.charged(), true);
    attempt.by_verdict = true;
    attempt.answered = attempt.no_answer = attempt.attached = false;
    touched_->bound_to.clear();
    return std::nullopt;
  }
  if (p.attempt_state() != v1::NOT_HAPPENED) return "a correction to neither happened nor not happened";
  if (attempt.state != v1::SUCCEEDED || !attempt.by_verdict) {
    return Cat("corrected to not happened from ", StateName(attempt.state),
               attempt.by_verdict ? "" : ", which no verdict made");
  }
  End(attempt, v1::NOT_HAPPENED, 0, false);
  attempt.answered = attempt.attached = false;
  return std::nullopt;
}

}  // namespace tally::receipt
