#include "tests/model/model.h"

#include <algorithm>

namespace tally::model {

int Model::Mint(Permit permit) {
  permits.push_back(std::move(permit));
  const int index = static_cast<int>(permits.size()) - 1;
  Write(index, Kind::kMinted, "");
  return index;
}

bool Model::Contradicted(const Call& call) const {
  return std::any_of(call.tries.begin(), call.tries.end(), [](const Try& t) { return t.contradicted; });
}

bool Model::Open(const Call& call) const {
  return std::any_of(call.tries.begin(), call.tries.end(),
                     [](const Try& t) { return t.state == State::kAuthorized || t.state == State::kUncertain; });
}

State Model::StateOf(const Call& call) const {
  if (call.tries.empty()) return State::kRefused;
  if (Contradicted(call) && !Open(call)) return State::kSucceeded;
  return call.tries.back().state;
}

int64_t Model::Slots(int permit, int grant) const {
  int64_t taken = 0;
  for (const Call& call : calls) {
    if (call.permit != permit || call.grant != grant) continue;
    for (const Try& t : call.tries) {
      taken += t.state == State::kAuthorized || t.state == State::kUncertain || t.state == State::kSucceeded ||
               t.state == State::kToolError;
    }
  }
  return taken;
}

Wide Model::Taken(int permit, int grant) const {
  Wide taken = 0;
  for (const Call& call : calls) {
    if (call.permit != permit || (grant != 0 && call.grant != grant)) continue;
    for (const Try& t : call.tries) taken += static_cast<Wide>(t.held) + t.spent;
  }
  return taken;
}

int Model::OpenCalls(int permit) const {
  int open = 0;
  for (const Call& call : calls) open += call.permit == permit && Open(call);
  return open;
}

int Model::IntentHeldBy(int intent) const {
  for (size_t i = 0; i < calls.size(); ++i) {
    for (const Try& t : calls[i].tries) {
      const bool open = t.state == State::kAuthorized || t.state == State::kUncertain;
      if (open && std::find(t.intents.begin(), t.intents.end(), intent) != t.intents.end()) return static_cast<int>(i);
    }
  }
  return kNobody;
}

int Model::Write(int permit, Kind kind, std::string_view code, int call, const Try* t, int supersedes) {
  Receipt receipt{.kind = kind, .code = code, .call = call, .supersedes = supersedes};
  if (call != kNobody) receipt.call_state = StateOf(calls[call]);
  if (t != nullptr) {
    receipt.number = static_cast<int>(t - calls[call].tries.data()) + 1;
    receipt.try_state = t->state;
    receipt.held = t->held;
    receipt.charged = t->spent;
  }
  if (call != kNobody && calls[call].grant != 0) {
    receipt.slots = Slots(permit, calls[call].grant);
    receipt.of_tool = Taken(permit, calls[call].grant);
  }
  receipt.of_permit = Taken(permit, 0);
  permits[permit].chain.push_back(receipt);
  return static_cast<int>(permits[permit].chain.size());
}

// A lease that is over is an unknown outcome. It is looked at before anything else about the call.
void Model::Touch(int call) {
  if (calls[call].tries.empty()) return;
  Try& t = calls[call].tries.back();
  if (t.state == State::kAuthorized && now >= t.lease_until) Park(call, t, "LEASE_OVER");
}

void Model::Park(int call, Try& t, std::string_view code) {
  Call& c = calls[call];
  if (!GrantOf(c).read) {
    t.state = State::kUncertain;
    c.ever_uncertain = true;
    t.end = Write(c.permit, Kind::kUncertain, code, call, &t);
    return;
  }
  t.state = State::kToolError;
  t.no_answer = true;
  if (GrantOf(c).keep_on_error) {
    Charge(t, t.hold);
  } else {
    Charge(t, 0);
  }
  t.end = Write(c.permit, Kind::kToolError, "READ_NO_ANSWER", call, &t, t.end);
}

void Model::GiveBack(Try& t) {
  t.slot = false;
  t.held = 0;
  t.spent = 0;
}

void Model::Charge(Try& t, Money amount) {
  t.slot = true;
  t.held = 0;
  t.spent = amount;
}

Money Model::Price(const Grant& grant, const Try& t, std::optional<Money> stated) const {
  if (!grant.reported || !stated) return t.hold;
  const Wide most = static_cast<Wide>(t.hold) * 10;
  return *stated > most ? static_cast<Money>(most) : *stated;
}

// One answer is kept for a call. Where an attempt contradicted its end, its answer is the call's.
void Model::KeepAnswer(int call, const Try& t, bool has_result) {
  Call& c = calls[call];
  for (const Try& other : c.tries) {
    if (other.contradicted && &other != &t && !t.contradicted) return;
  }
  c.answer_of = has_result ? static_cast<int>(&t - c.tries.data()) + 1 : 0;
}

void Model::MarkDone(int call, const Try& t) {
  const Call& c = calls[call];
  const bool long_window = c.ever_uncertain || Contradicted(c) || t.undelivered;
  const Time window = std::max(GrantOf(c).repeat_window, long_window ? kDay : Time{0});
  for (int intent : t.intents) done[intent] = Done{call, now, now + window};
}

Answer Model::Closing(Answer answer) {
  for (size_t i = 0; i < permits.size(); ++i) {
    const int permit = static_cast<int>(i);
    if (permits[i].closing != 0 && permits[i].closed == 0 && OpenCalls(permit) == 0) {
      permits[i].closed = Write(permit, Kind::kClosed, "");
    }
  }
  return answer;
}

Answer Model::Sweep(int call) {
  if (call < 0) return {};
  Touch(call);
  if (calls[call].tries.empty()) return AboutCall(call, "");
  Answer answer = About(call, calls[call].tries.back(), "");
  answer.receipt = 0;
  return Closing(answer);
}

Answer Model::Revoke(const Who& who, int permit) {
  if (who.disabled) return {.code = "UNAUTHENTICATED"};
  if (who.role != Role::kOperator) return {.code = "PERMISSION_DENIED"};
  Permit& p = permits[permit];
  if (p.revoked != 0) return {.receipt = p.revoked};
  if (p.closed != 0) return {.receipt = p.closed};
  p.revoked = Write(permit, Kind::kRevoked, "");
  return {.receipt = p.revoked};
}

Answer Model::Close(const Who& who, int permit) {
  if (who.disabled) return {.code = "UNAUTHENTICATED"};
  if (who.role != Role::kOperator) return {.code = "PERMISSION_DENIED"};
  Permit& p = permits[permit];
  if (p.closed != 0) return {.receipt = p.closed};
  if (p.closing != 0) return {.receipt = p.closing};
  p.closing = Write(permit, Kind::kClosing, "");
  return Closing({.receipt = p.closing});
}

}  // namespace tally::model
