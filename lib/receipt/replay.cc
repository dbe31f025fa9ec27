#include "lib/receipt/replay.h"

#include <algorithm>

#include "lib/keys/text.h"
#include "lib/receipt/json.h"

namespace tally::receipt {
namespace {

using keys::Cat;

constexpr int64_t kRefusalReceiptsMax = 10'000;

int64_t Over(int64_t taken, const v1::Limit& limit) {
  return limit.has_at_most() ? std::max<int64_t>(0, taken - limit.at_most()) : 0;
}

bool SameLimit(const v1::Limit& a, const v1::Limit& b) {
  return a.has_at_most() == b.has_at_most() && a.at_most() == b.at_most();
}

Fault Differs(const char* what, int64_t said, int64_t expected) {
  if (said == expected) return std::nullopt;
  return Cat(what, " is ", said, " where the chain so far makes it ", expected);
}

}  // namespace

Fault PermitReplay::Apply(const v1::ReceiptPayload& p, std::string_view receipt_id) {
  if (!minted_) return p.kind() == v1::PERMIT_MINTED ? Mint(p) : "the chain does not begin with PERMIT_MINTED";
  if (closed_ && p.kind() != v1::CALL_CONTRADICTED && p.kind() != v1::CALL_CORRECTED) {
    return Cat("a ", KindName(p.kind()), " after PERMIT_CLOSED");
  }
  if (p.has_permit_budget() && p.unit() != terms_.unit())
    return Cat("it is in ", p.unit(), ", not in the permit's unit");
  const std::vector<Taken> grants_before = grants_;
  const Taken permit_before = permit_;
  touched_ = nullptr;
  touched_attempt_ = nullptr;
  Fault fault;
  switch (p.kind()) {
    case v1::PERMIT_MINTED:
      return "a second PERMIT_MINTED";
    case v1::PERMIT_REVOKED:
      fault = Revoke();
      break;
    case v1::PERMIT_CLOSING:
      fault = StartClosing();
      break;
    case v1::PERMIT_CLOSED:
      fault = Close(p);
      break;
    case v1::ATTEMPT_VOIDED:
      fault = Void(p);
      break;
    case v1::DENIAL_LIMIT:
      fault = LimitDenials();
      break;
    case v1::RECOVERED:
      break;
    default:
      fault = ApplyToCall(p, receipt_id);
  }
  return fault ? fault : UsageFault(p, grants_before, permit_before);
}

Fault PermitReplay::Mint(const v1::ReceiptPayload& p) {
  terms_ = p.permit_terms();
  grants_.resize(static_cast<size_t>(terms_.grants_size()));
  minted_ = true;
  return std::nullopt;
}

Fault PermitReplay::Revoke() {
  if (revoked_) return "a second PERMIT_REVOKED";
  revoked_ = true;
  return std::nullopt;
}

Fault PermitReplay::StartClosing() {
  if (closing_) return "a second PERMIT_CLOSING";
  closing_ = true;
  return std::nullopt;
}

Fault PermitReplay::Close(const v1::ReceiptPayload& p) {
  if (!closing_) return "a PERMIT_CLOSED without PERMIT_CLOSING";
  if (open_attempts_ > 0) return Cat("a PERMIT_CLOSED with ", open_attempts_, " calls open");
  closed_ = true;
  std::map<v1::CallState, int64_t> ends;
  int64_t calls = 0;
  int64_t attempts = 0;
  for (const auto& [id, call] : calls_) {
    if (!call.attempts.empty()) ++calls;
    for (const Attempt& attempt : call.attempts) {
      ++attempts;
      ++ends[attempt.state];
    }
  }
  const v1::ClosingCounts& said = p.closing();
  const std::tuple<const char*, int64_t, int64_t> counts[] = {
      {"closing.calls", said.calls(), calls},
      {"closing.attempts", said.attempts(), attempts},
      {"closing.succeeded", said.succeeded(), ends[v1::SUCCEEDED]},
      {"closing.tool_error", said.tool_error(), ends[v1::TOOL_ERROR]},
      {"closing.released", said.released(), ends[v1::RELEASED]},
      {"closing.not_happened", said.not_happened(), ends[v1::NOT_HAPPENED]},
      {"closing.denied", said.denied(), denied_},
      {"closing.spent", said.spent(), permit_.spent},
      {"closing.overrun", said.overrun(), Over(permit_.held + permit_.spent, terms_.budget())}};
  for (const auto& [what, was_said, expected] : counts) {
    if (auto fault = Differs(what, was_said, expected)) return fault;
  }
  return std::nullopt;
}

Fault PermitReplay::Void(const v1::ReceiptPayload& p) {
  if (p.attempt_state() != v1::VOIDED) return "an ATTEMPT_VOIDED whose attempt is not VOIDED";
  if (p.effect_known() != v1::NOT_SENT) return "an ATTEMPT_VOIDED whose effect is not not_sent";
  if (!attempt_ids_.insert(p.attempt_id_hash()).second) return "it voids an attempt that was granted or voided before";
  return std::nullopt;
}

Fault PermitReplay::LimitDenials() {
  if (denial_limit_) return "a second DENIAL_LIMIT";
  if (denied_ < kRefusalReceiptsMax) return Cat("a DENIAL_LIMIT after ", denied_, " refusals");
  denial_limit_ = true;
  return std::nullopt;
}

Fault PermitReplay::CheckHead(const v1::ReceiptPayload& head) const {
  return head.has_permit_budget() ? BudgetFault("permit_budget", head.permit_budget(), permit_, terms_.budget())
                                  : std::nullopt;
}

v1::CallState PermitReplay::Call::State() const {
  if (attempts.empty()) return v1::REFUSED;
  const bool succeeded =
      std::any_of(attempts.begin(), attempts.end(), [](const Attempt& a) { return a.state == v1::SUCCEEDED; });
  // An attempt that was given back and had happened after all makes the call SUCCEEDED once none is open.
  return succeeded && !attempts.back().open() ? v1::SUCCEEDED : attempts.back().state;
}

int32_t PermitReplay::GrantFor(std::string_view tool) const {
  int32_t best = 0;
  size_t best_size = 0;
  for (int i = 0; i < terms_.grants_size(); ++i) {
    std::string_view name = terms_.grants(i).tool();
    if (name == tool) return i + 1;
    if (!name.ends_with('*')) continue;
    name.remove_suffix(1);
    if (tool.starts_with(name) && (best == 0 || name.size() > best_size)) {
      best = i + 1;
      best_size = name.size();
    }
  }
  return best;
}

void PermitReplay::End(Attempt& attempt, v1::CallState state, int64_t charged, bool slot) {
  Call& call = *touched_;
  Taken& grant = grants_[static_cast<size_t>(call.grant_index - 1)];
  const bool was_open = attempt.open();
  for (Taken* taken : {&grant, &permit_}) {
    taken->held -= attempt.held;
    taken->spent += charged - attempt.charged;
  }
  grant.slots += int64_t{slot} - int64_t{attempt.slot};
  attempt.state = state;
  attempt.held = 0;
  attempt.charged = charged;
  attempt.slot = slot;
  if (was_open) {
    --open_attempts_;
    open_intents_.erase(call.intent);
  }
}

Fault PermitReplay::BudgetFault(const char* name, const v1::Usage& said, const Taken& taken,
                                const v1::Limit& limit) const {
  if (!SameLimit(said.limit(), limit)) return Cat(name, ".limit is not the permit's");
  if (auto fault = Differs(Cat(name, ".held").c_str(), said.held(), taken.held)) return fault;
  return Differs(Cat(name, ".spent").c_str(), said.spent(), taken.spent);
}

// Form has checked that each usage's overrun fits its own numbers; here the numbers are held against the chain.
Fault PermitReplay::UsageFault(const v1::ReceiptPayload& p, const std::vector<Taken>& before,
                               const Taken& permit_before) const {
  if (p.has_permit_budget()) {
    if (auto fault = BudgetFault("permit_budget", p.permit_budget(), permit_, terms_.budget())) return fault;
  }
  int64_t more = Over(permit_.held + permit_.spent, terms_.budget()) -
                 Over(permit_before.held + permit_before.spent, terms_.budget());
  int64_t more_slots = 0;
  if (touched_ != nullptr && touched_->grant_index > 0) {
    const v1::GrantTerms& grant = GrantOf(*touched_);
    const auto index = static_cast<size_t>(touched_->grant_index - 1);
    const Taken& now = grants_[index];
    const Taken& then = before[index];
    if (!SameLimit(p.cap().limit(), grant.cap())) return "cap.limit is not the grant's";
    if (auto fault = Differs("cap.used", p.cap().used(), now.slots)) return fault;
    if (auto fault = BudgetFault("tool_budget", p.tool_budget(), now, grant.budget())) return fault;
    more = std::max(more, Over(now.held + now.spent, grant.budget()) - Over(then.held + then.spent, grant.budget()));
    more_slots = Over(now.slots, grant.cap()) - Over(then.slots, grant.cap());
  }
  if (auto fault = Differs("overrun", p.overrun(), std::max<int64_t>(0, more))) return fault;
  return Differs("slot_overrun", p.slot_overrun(), std::max<int64_t>(0, more_slots));
}

}  // namespace tally::receipt
