#include <algorithm>

#include "tests/model/model.h"

namespace tally::model {

int Model::OwnerOf(int attempt) const {
  for (size_t i = 0; i < calls.size(); ++i) {
    for (const Try& t : calls[i].tries) {
      if (t.id == attempt) return static_cast<int>(i);
    }
  }
  return kNobody;
}

Try* Model::FindTry(int call, int attempt) {
  for (Try& t : calls[call].tries) {
    if (t.id == attempt) return &t;
  }
  return nullptr;
}

// A key that became another name of a call still answers for the attempts it had under its own.
int Model::Find(const CallName& name, int attempt) const {
  int call = name.call;
  if (call == kNoSuchCall) return kNobody;
  if (call == kNobody) {
    const auto found = keys.find({name.permit, name.key});
    if (found == keys.end()) return kNobody;
    call = found->second;
  }
  while (calls[call].same_as != kNobody && OwnerOf(attempt) != call) call = calls[call].same_as;
  return call;
}

Answer Model::About(int call, const Try& t, std::string_view code) const {
  const Call& c = calls[call];
  Answer answer{.code = code, .call = call, .call_state = StateOf(c), .try_state = t.state};
  answer.number = static_cast<int>(&t - c.tries.data()) + 1;
  answer.send_within = t.send_until - t.granted;
  answer.lease = t.lease;
  answer.lease_until = t.lease_until;
  answer.receipt = t.end;
  return answer;
}

Answer Model::Hear(const Commit& m) {
  if (m.who.role != Role::kGateway) return {.code = "PERMISSION_DENIED"};
  if (m.call.call == kNoSuchCall) return {.code = "NOT_FOUND"};
  const int call = Find(m.call, m.attempt);
  Try* t = call == kNobody ? nullptr : FindTry(call, m.attempt);
  if (t != nullptr && t->gateway != m.who.id) return {.code = "NOT_FOUND"};
  const bool leased = t != nullptr && t->state == State::kAuthorized && now < t->lease_until;
  if (m.who.disabled && (m.who.hard || !leased)) return {.code = "UNAUTHENTICATED"};
  if (t == nullptr) return Unseen(m, call == kNobody ? m.call.permit : calls[call].permit);
  Touch(call);
  const bool answer = m.outcome == Outcome::kSucceeded || m.outcome == Outcome::kToolError;
  const Kind kind = m.outcome == Outcome::kSucceeded ? Kind::kSucceeded : Kind::kToolError;
  if (answer && t->attached && t->attached == m.content && t->attached_kind == kind) {
    Answer again = About(call, *t, "");
    again.receipt = t->attachment;
    return again;
  }
  switch (m.outcome) {
    case Outcome::kNotSent:
      return NotSent(m, call, *t);
    case Outcome::kSucceeded:
      return Succeed(m, call, *t);
    case Outcome::kToolError:
      return ToolError(m, call, *t);
    case Outcome::kUncertain:
      if (t->state != State::kAuthorized) return About(call, *t, "");
      Park(call, *t, "NO_ANSWER");
      return About(call, *t, "");
  }
  return {};
}

Answer Model::Unseen(const Commit& m, int permit) {
  if (const auto mark = tombstones.find(m.attempt); mark != tombstones.end()) {
    if (mark->second.first != permit) return {.code = "NOT_FOUND"};
    if (m.outcome != Outcome::kNotSent) return {.code = "COMMIT_CONFLICT"};
    return {.try_state = State::kVoided, .receipt = mark->second.second};
  }
  if (OwnerOf(m.attempt) != kNobody || m.outcome != Outcome::kNotSent) return {.code = "NOT_FOUND"};
  if (permits[permit].closed != 0) return {.receipt = permits[permit].closed};
  const int receipt = Write(permit, Kind::kVoided, "");
  tombstones[m.attempt] = {permit, receipt};
  return {.try_state = State::kVoided, .receipt = receipt};
}

Answer Model::NotSent(const Commit&, int call, Try& t) {
  if (t.state == State::kAuthorized) {
    t.state = State::kReleased;
    GiveBack(t);
    t.end = Write(calls[call].permit, Kind::kReleased, "", call, &t, t.end);
    return About(call, t, "");
  }
  if (t.state == State::kUncertain || t.no_answer) {
    if (t.state == State::kUncertain) t.late_not_sent = true;
    return About(call, t, "LEASE_OVER");
  }
  return About(call, t, t.state == State::kReleased ? "" : "COMMIT_CONFLICT");
}

Answer Model::Succeed(const Commit& m, int call, Try& t) {
  Call& c = calls[call];
  const bool closed = permits[c.permit].closed != 0;
  const bool by_person = t.by_verdict && !t.contradicted_by_gateway;
  if (t.state == State::kSucceeded && by_person) return Attach(m, call, t, Kind::kSucceeded);
  if (t.state == State::kSucceeded) {
    if (t.content != m.content) return About(call, t, "COMMIT_CONFLICT");
    if (m.undelivered && !t.undelivered) {
      t.undelivered = true;
      for (int intent : t.intents) {
        Done& mark = done[intent];
        if (mark.call == call) mark.until = std::max(mark.until, mark.at + kDay);
      }
    }
    return About(call, t, "");
  }
  if (t.no_answer && closed) return About(call, t, "");
  const bool given_back =
      t.state == State::kReleased || t.state == State::kNotHappened || (t.state == State::kToolError && !t.no_answer);
  const int before = t.end;
  t.state = State::kSucceeded;
  t.no_answer = false;
  t.content = m.content;
  t.undelivered = m.undelivered;
  t.by_verdict = given_back;
  t.contradicted = t.contradicted_by_gateway = given_back;
  if (given_back) StandsForItself(c);
  KeepAnswer(call, t, m.has_result);
  Charge(t, Price(GrantOf(c), t, m.amount));
  MarkDone(call, t);
  if (given_back) c.person = true;
  t.end = Write(c.permit, given_back ? Kind::kContradicted : Kind::kSucceeded, "", call, &t, before);
  return About(call, t, "");
}

Answer Model::ToolError(const Commit& m, int call, Try& t) {
  Call& c = calls[call];
  const bool by_person = t.by_verdict && !t.contradicted_by_gateway;
  if (by_person && (t.state == State::kSucceeded || t.state == State::kNotHappened))
    return Attach(m, call, t, Kind::kToolError);
  if (t.state == State::kToolError && !t.no_answer) {
    return About(call, t, t.content == m.content ? "" : "COMMIT_CONFLICT");
  }
  if (t.state == State::kSucceeded || t.state == State::kReleased) return About(call, t, "COMMIT_CONFLICT");
  if (t.no_answer && permits[c.permit].closed != 0) return About(call, t, "");
  const int before = t.end;
  t.state = State::kToolError;
  t.no_answer = false;
  t.content = m.content;
  KeepAnswer(call, t, m.has_result);
  Charge(t, GrantOf(c).keep_on_error && !m.no_effect ? t.hold : 0);
  t.end = Write(c.permit, Kind::kToolError, "", call, &t, before);
  return About(call, t, "");
}

// An answer that comes after a verdict is kept beside it, once. It moves nothing.
Answer Model::Attach(const Commit& m, int call, Try& t, Kind kind) {
  if (t.attached) return About(call, t, "COMMIT_CONFLICT");
  if (permits[calls[call].permit].closed != 0) return About(call, t, "");
  if (kind == Kind::kToolError && t.state == State::kSucceeded) calls[call].person = true;
  if (kind == Kind::kSucceeded && m.has_result) KeepAnswer(call, t, true);
  t.attached = m.content;
  t.attached_kind = kind;
  t.attachment = Write(calls[call].permit, kind, "", call, &t, t.end);
  Answer answer = About(call, t, "");
  answer.receipt = t.attachment;
  return answer;
}

Answer Model::Hear(const Extend& m) {
  if (m.who.disabled) return {.code = "UNAUTHENTICATED"};
  if (m.who.role != Role::kGateway) return {.code = "PERMISSION_DENIED"};
  const int call = Find(m.call, m.attempt);
  Try* t = call == kNobody ? nullptr : FindTry(call, m.attempt);
  if (t == nullptr || t->gateway != m.who.id) return {.code = "NOT_FOUND"};
  Touch(call);
  if (t->state == State::kUncertain || t->no_answer) return About(call, *t, "LEASE_OVER");
  if (t->state != State::kAuthorized) return About(call, *t, "COMMIT_CONFLICT");
  t->lease_until = std::max(t->lease_until, std::min(now + m.lease, t->granted + kDay));
  return About(call, *t, "");
}

}  // namespace tally::model
