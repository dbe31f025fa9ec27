#include <algorithm>

#include "tests/model/model.h"

// What reconcilers and operators say of a call whose outcome is unknown, or was told wrongly.
namespace tally::model {

// The same was said before, and what came of it stands.
const Verdict* Model::Standing(const Try& t, const Judge& m) const {
  if (t.verdicts.empty()) return nullptr;
  const Verdict& last = t.verdicts.back();
  const bool stands = last.receipt == t.end || (last.finding == Finding::kCannotTell && last.named == t.end);
  return stands && last.named == m.receipt && last.finding == m.finding ? &last : nullptr;
}

Answer Model::HearResolve(const Judge& m) {
  if (m.who.disabled) return {.code = "UNAUTHENTICATED"};
  if (m.who.role != Role::kOperator && m.who.role != Role::kReconciler) return {.code = "PERMISSION_DENIED"};
  if (m.call < 0) return {.code = "NOT_FOUND"};
  Touch(m.call);
  Call& c = calls[m.call];
  Try* t = FindTry(m.call, m.attempt);
  if (t == nullptr) return AboutCall(m.call, "STALE_RESOLUTION");
  if (const Verdict* before = Standing(*t, m)) {
    Answer answer = About(m.call, *t, "");
    answer.receipt = before->receipt;
    return answer;
  }
  if (t->state != State::kUncertain || t->end != m.receipt) return About(m.call, *t, "STALE_RESOLUTION");
  const bool claim_lives = m.claim != kNobody && m.claim == c.claim && now < c.claim_until;
  const bool own = claim_lives && c.claimed_by == m.who.id;
  if (m.who.role == Role::kReconciler ? !own : m.claim != kNobody && !claim_lives) {
    return About(m.call, *t, "STALE_RESOLUTION");
  }
  if (m.who.role == Role::kReconciler && t->escalated != 0 && m.finding == Finding::kNotHappened) {
    return About(m.call, *t, "PERMISSION_DENIED");
  }
  const int named = t->end;
  if (m.finding == Finding::kCannotTell) {
    c.person = true;
    t->escalated = Write(c.permit, Kind::kEscalated, "", m.call, t);
    t->verdicts.push_back({named, m.finding, t->escalated});
    c.claim = kNobody;
    Answer answer = About(m.call, *t, "");
    answer.receipt = t->escalated;
    return answer;
  }
  t->by_verdict = true;
  c.claim = kNobody;
  if (m.finding == Finding::kHappened) {
    t->state = State::kSucceeded;
    KeepAnswer(m.call, *t, m.has_result);
    Charge(*t, Stated(*t, m.amount));
    MarkDone(m.call, *t);
    t->end = Write(c.permit, Kind::kHappened, "", m.call, t, named);
  } else {
    t->state = State::kNotHappened;
    GiveBack(*t);
    t->end = Write(c.permit, Kind::kNotHappened, "", m.call, t, named);
  }
  t->verdicts.push_back({named, m.finding, t->end});
  return About(m.call, *t, "");
}

Money Model::Stated(const Try& t, std::optional<Money> amount) const {
  if (!amount) return t.hold;
  const Wide most = static_cast<Wide>(t.hold) * 10;
  return *amount > most ? static_cast<Money>(most) : *amount;
}

Answer Model::HearCorrect(const Judge& m) {
  if (m.who.disabled) return {.code = "UNAUTHENTICATED"};
  if (m.who.role != Role::kOperator) return {.code = "PERMISSION_DENIED"};
  if (m.call < 0) return {.code = "NOT_FOUND"};
  Touch(m.call);
  Call& c = calls[m.call];
  Try* t = FindTry(m.call, m.attempt);
  if (t == nullptr) return AboutCall(m.call, "STALE_RESOLUTION");
  if (const Verdict* before = Standing(*t, m); before != nullptr && t->state != State::kUncertain) {
    return About(m.call, *t, "");
  }
  if (t->state == State::kAuthorized || t->state == State::kUncertain) return About(m.call, *t, "COMMIT_CONFLICT");
  if (t->end != m.receipt) return About(m.call, *t, "STALE_RESOLUTION");
  const int named = t->end;
  if (m.finding == Finding::kHappened) {
    if (t->state == State::kSucceeded) return About(m.call, *t, "COMMIT_CONFLICT");
    t->state = State::kSucceeded;
    t->no_answer = false;
    t->by_verdict = t->contradicted = true;
    t->contradicted_by_gateway = false;
    StandsForItself(c);
    KeepAnswer(m.call, *t, m.has_result);
    Charge(*t, Stated(*t, m.amount));
    MarkDone(m.call, *t);
  } else {
    if (t->state != State::kSucceeded || !t->by_verdict) return About(m.call, *t, "COMMIT_CONFLICT");
    t->state = State::kNotHappened;
    t->contradicted = t->contradicted_by_gateway = false;
    GiveBack(*t);
    if (c.answer_of == t - c.tries.data() + 1) c.answer_of = 0;
    const bool still =
        std::any_of(c.tries.begin(), c.tries.end(), [](const Try& other) { return other.state == State::kSucceeded; });
    for (int intent : t->intents) {
      const auto mark = done.find(intent);
      if (!still && mark != done.end() && mark->second.call == m.call) done.erase(mark);
    }
  }
  // What was added to the verdict before goes with it.
  t->attached.reset();
  t->attachment = 0;
  t->content.reset();
  t->end = Write(c.permit, Kind::kCorrected, "", m.call, t, named);
  t->verdicts.push_back({named, m.finding, t->end});
  return About(m.call, *t, "");
}

Answer Model::Hear(const Claim& m) {
  if (m.who.disabled) return {.code = "UNAUTHENTICATED"};
  if (m.who.role != Role::kReconciler) return {.code = "PERMISSION_DENIED"};
  if (m.call < 0) return {.code = "NOT_FOUND"};
  Touch(m.call);
  Call& c = calls[m.call];
  if (c.tries.empty() || c.tries.back().state != State::kUncertain) {
    return AboutCall(m.call, "STALE_RESOLUTION");
  }
  if (c.claim != kNobody && now < c.claim_until) {
    Answer claimed = About(m.call, c.tries.back(), "CLAIMED");
    claimed.receipt = 0;
    return claimed;
  }
  c.claim = m.claim;
  c.claimed_by = m.who.id;
  c.claim_until = now + m.length;
  return About(m.call, c.tries.back(), "");
}

Answer Model::Hear(const SendAgain& m) {
  if (m.who.disabled) return {.code = "UNAUTHENTICATED"};
  if (m.who.role != Role::kReconciler) return {.code = "PERMISSION_DENIED"};
  if (m.call < 0) return {.code = "NOT_FOUND"};
  Touch(m.call);
  const Call& c = calls[m.call];
  const Try* t = FindTry(m.call, m.attempt);
  if (t == nullptr) return AboutCall(m.call, "STALE_RESOLUTION");
  const bool present = t->state == State::kUncertain && t->end == m.receipt;
  const bool own = m.claim != kNobody && m.claim == c.claim && now < c.claim_until && c.claimed_by == m.who.id;
  if (!present || !own || Contradicted(c)) return About(m.call, *t, "STALE_RESOLUTION");
  const Permit& p = permits[c.permit];
  if (p.revoked != 0) return About(m.call, *t, "PERMIT_REVOKED");
  if (p.closing != 0) return About(m.call, *t, "PERMIT_CLOSED");
  if (now < p.from) return About(m.call, *t, "PERMIT_NOT_YET_VALID");
  if (now >= p.until) return About(m.call, *t, "PERMIT_EXPIRED");
  Answer answer = About(m.call, *t, "");
  answer.receipt = Write(c.permit, Kind::kReplaySent, "", m.call, t);
  return answer;
}

}  // namespace tally::model
