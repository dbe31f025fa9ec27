#include <algorithm>
#include <limits>

#include "tests/model/model.h"

namespace tally::model {
namespace {

constexpr int64_t kOpenCalls = 100'000;
constexpr int64_t kRefusals = 10'000;

bool Fixed(std::string_view code) {
  for (std::string_view fixed :
       {"TOOL_NOT_GRANTED", "CONSTRAINT_VIOLATED", "CONSTRAINT_UNENFORCEABLE", "AMOUNT_OVER_CALL_LIMIT",
        "ATTEMPTS_EXHAUSTED", "PERMIT_EXPIRED", "PERMIT_REVOKED", "PERMIT_CLOSED"}) {
    if (code == fixed) return true;
  }
  return false;
}

// What cannot be counted in 64 bits is over any limit.
bool Over(Wide taken, const Limit& limit) { return taken > limit.value_or(std::numeric_limits<int64_t>::max()); }

}  // namespace

Answer Model::Hear(const Authorize& m) {
  if (m.who.disabled) return {.code = "UNAUTHENTICATED"};
  if (m.who.role != Role::kGateway) return {.code = "PERMISSION_DENIED"};
  const auto found = keys.find({m.permit, m.key});
  const int named = found == keys.end() ? kNobody : found->second;
  int call = named;
  while (call != kNobody && calls[call].same_as != kNobody) call = calls[call].same_as;
  if (call != kNobody) Touch(call);

  // An attempt id is good for one attempt only.
  if (tombstones.count(m.attempt) != 0) return {.code = "ATTEMPT_USED"};
  if (const int owner = OwnerOf(m.attempt); owner != kNobody) {
    if (owner != call) return {.code = "ATTEMPT_USED"};
    const Try& t = *FindTry(call, m.attempt);
    if (t.state != State::kAuthorized && t.state != State::kUncertain) {
      return About(call, t, "ATTEMPT_USED");
    }
  }
  if (named == kNobody) return Decide(m, kNobody);
  if (!(calls[named].meaning == m.meaning)) return {.code = "KEY_REUSED"};
  return SameKey(m, call, named);
}

Answer Model::SameKey(const Authorize& m, int call, int named) {
  Call& c = calls[call];
  const Permit& p = permits[c.permit];
  const bool open = Open(c);
  if (open) {
    const Try& t = c.tries.back();
    if (t.state == State::kUncertain) return About(call, t, "STILL_PENDING");
    if (t.id != m.attempt || t.gateway != m.who.id) return About(call, t, "STILL_PENDING");
    if (Contradicted(c)) return About(call, t, "CALL_CONTRADICTED");
    if (p.revoked != 0) return About(call, t, "PERMIT_REVOKED");
    if (p.closing != 0) return About(call, t, "PERMIT_CLOSED");
    if (now >= p.until) return About(call, t, "PERMIT_EXPIRED");
    if (now >= t.send_until) return About(call, t, "SEND_WINDOW_OVER");
    return About(call, t, "DISPATCH");
  }
  const State state = StateOf(c);
  if (state == State::kSucceeded || state == State::kToolError) return Replay(call, named);
  if (Fixed(c.refusal)) {
    Answer again = AboutCall(call, c.refusal);
    again.receipt = c.refusal_receipt;
    return again;
  }
  return Decide(m, call);
}

Answer Model::Replay(int call, int named) const {
  const Call& c = calls[call];
  // A contradicted call has the result that came late; every other that of its last attempt.
  const Try* t = &c.tries.back();
  int successes = 0;
  for (const Try& other : c.tries) {
    if (other.contradicted) t = &other;
    successes += other.state == State::kSucceeded;
  }
  Answer answer = About(call, *t, t->no_answer ? "READ_NO_ANSWER" : "REPLAY");
  answer.several = successes > 1;
  if (c.answer_of == t - c.tries.data() + 1) answer.result_of = call;
  if (named != call) answer.repeat_of = call;
  return answer;
}

std::string_view Model::Guard(const Authorize& m, int known, int* done_call) {
  const auto key = keys.find({m.permit, m.key});
  const int named = key == keys.end() ? kNobody : key->second;
  const Permit& p = permits[m.permit];
  if (p.closed != 0) return "PERMIT_CLOSED";
  if (p.revoked != 0) return "PERMIT_REVOKED";
  if (p.closing != 0) return "PERMIT_CLOSED";
  if (now < p.from) return "PERMIT_NOT_YET_VALID";
  if (now >= p.until) return "PERMIT_EXPIRED";
  if (m.grant == 0) return "TOOL_NOT_GRANTED";
  if (m.unenforceable) return "CONSTRAINT_UNENFORCEABLE";
  if (m.violated) return "CONSTRAINT_VIOLATED";
  const Grant& g = p.grants[m.grant - 1];
  if (known != kNobody && static_cast<int>(calls[known].tries.size()) >= g.max_attempts) return "ATTEMPTS_EXHAUSTED";
  if (Over(m.amount, g.per_call)) return "AMOUNT_OVER_CALL_LIMIT";
  if (!g.read) {
    for (int intent : {m.intent, m.explicit_intent}) {
      if (intent != kNobody && IntentHeldBy(intent) != kNobody) return "INTENT_PENDING";
    }
    for (int intent : {m.intent, m.explicit_intent}) {
      const auto mark = done.find(intent);
      if (intent == kNobody || mark == done.end() || m.repeat) continue;
      const bool seen_before = named != kNobody && calls[named].first_seen <= mark->second.at;
      if (!seen_before && now >= mark->second.until) continue;
      const bool derived = intent == m.intent;
      if (derived && calls[mark->second.call].permit == m.permit) *done_call = mark->second.call;
      return "ALREADY_DONE";
    }
  }
  if (OpenCalls(m.permit) >= kOpenCalls) return "OPEN_CALLS";
  if (Over(static_cast<Wide>(Slots(m.permit, m.grant)) + 1, g.cap)) return "CALL_CAP";
  if (Over(Taken(m.permit, m.grant) + m.amount, g.budget)) return "TOOL_BUDGET";
  if (Over(Taken(m.permit, 0) + m.amount, p.budget)) return "PERMIT_BUDGET";
  return "";
}

Answer Model::Decide(const Authorize& m, int known) {
  int done_call = kNobody;
  const std::string_view code = Guard(m, known, &done_call);
  if (done_call != kNobody) return Bind(m, known, done_call);
  if (!code.empty()) return Refuse(m, known, code);
  return Grants(m, known);
}

int Model::Record(const Authorize& m, int known) {
  if (known != kNobody) return known;
  calls.push_back(Call{.permit = m.permit, .key = m.key, .grant = m.grant, .meaning = m.meaning, .first_seen = now});
  const int call = static_cast<int>(calls.size()) - 1;
  keys[{m.permit, m.key}] = call;
  return call;
}

Answer Model::Refuse(const Authorize& m, int known, std::string_view code) {
  Permit& p = permits[m.permit];
  Answer answer{.code = code, .call = known};
  if (known != kNobody) answer.call_state = StateOf(calls[known]);
  if (p.closed != 0) answer = {.code = code};
  if (known != kNobody && calls[known].refusal == code) {
    answer.receipt = calls[known].refusal_receipt;
  } else if (p.closed != 0) {
    answer.receipt = p.closed;
  } else if (p.refusals >= kRefusals) {
    if (p.denial_limit == 0) p.denial_limit = Write(m.permit, Kind::kDenialLimit, "");
    answer.receipt = p.denial_limit;
  } else {
    const int call = Record(m, known);
    ++p.refusals;
    calls[call].refusal = code;
    calls[call].refusal_receipt = Write(m.permit, Kind::kDenied, code, call);
    answer.call = call;
    answer.call_state = StateOf(calls[call]);
    answer.receipt = calls[call].refusal_receipt;
  }
  return answer;
}

Answer Model::Bind(const Authorize& m, int known, int to) {
  const int call = Record(m, known);
  calls[call].same_as = to;
  calls[call].repeated = Write(m.permit, Kind::kRepeated, "", call);
  Answer answer = Replay(to, call);
  answer.receipt = calls[call].repeated;
  return answer;
}

Answer Model::Grants(const Authorize& m, int known) {
  const int call = Record(m, known);
  Call& c = calls[call];
  const Grant& g = GrantOf(c);
  c.refusal = "";
  c.refusal_receipt = 0;
  Try t;
  t.id = m.attempt;
  t.gateway = m.who.id;
  t.hold = t.held = m.amount;
  t.granted = now;
  t.lease = std::min(m.lease.value_or(g.lease), g.lease);
  t.lease_until = now + t.lease;
  t.send_until = now + std::min(g.send_within, t.lease);
  if (!g.read) {
    for (int intent : {m.intent, m.explicit_intent}) {
      if (intent != kNobody) t.intents.push_back(intent);
    }
  }
  c.tries.push_back(t);
  Try& last = c.tries.back();
  last.allowed = last.end = Write(m.permit, Kind::kAllowed, "", call, &last);
  return About(call, last, "DISPATCH");
}

}  // namespace tally::model
