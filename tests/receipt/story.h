// Chains to test with, told call by call: Story().Allow("a").Succeed("a"). It keeps just the books that receipts show,
// and lets a test spoil any receipt before it is sealed.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/receipt/chain.h"
#include "lib/receipt/verify_set.h"
#include "tests/receipt/samples.h"

namespace tally::receipt {

class Story {
 public:
  using Spoil = std::function<void(v1::ReceiptPayload&)>;

  // Grants: 1 payments__refund (WRITE, cap 3, budget 3000, per call 1000), 2 files__* (READ, unlimited),
  // 3 mail__send (WRITE, cap 2, fixed cost 5, errors released, settled as reported). Budget 3500.
  explicit Story(const keys::Signer& signer = samples::Key(), std::string permit_id = samples::PermitId())
      : signer_(&signer), permit_id_(std::move(permit_id)) {
    terms_.set_subject("support-agent-7");
    terms_.set_unit("USD/2");
    terms_.mutable_budget()->set_at_most(3500);
    terms_.set_not_before_us(samples::kTime);
    terms_.set_expires_at_us(samples::kTime + 3600 * kSecond);
    terms_.set_token_hash(samples::Hash("token"));
    Grant("payments__refund", 3, 3000, v1::WRITE)->mutable_per_call()->set_at_most(1000);
    Grant("files__*", -1, -1, v1::READ)->mutable_cost()->set_none(true);
    v1::GrantTerms* mail = Grant("mail__send", 2, -1, v1::WRITE);
    mail->mutable_cost()->set_fixed(5);
    mail->set_on_tool_error(v1::RELEASE);
    mail->set_settle(v1::SETTLE_REPORTED);
    taken_.resize(3);
  }

  Story& Mint(const Spoil& spoil = {}) {
    v1::ReceiptPayload p;
    p.set_kind(v1::PERMIT_MINTED);
    p.set_unit("USD/2");
    *p.mutable_permit_terms() = terms_;
    return Write(p, v1::OPERATOR, spoil);
  }
  Story& OfPermit(v1::ReceiptKind kind, const Spoil& spoil = {}) {
    v1::ReceiptPayload p;
    p.set_kind(kind);
    PermitUsage(p);
    if (kind == v1::DENIAL_LIMIT) p.set_effect_known(v1::NONE);
    return Write(p, kind == v1::PERMIT_CLOSED ? v1::ROLE_UNSPECIFIED : v1::OPERATOR, spoil);
  }
  Story& Revoke(const Spoil& spoil = {}) { return OfPermit(v1::PERMIT_REVOKED, spoil); }
  Story& Closing(const Spoil& spoil = {}) { return OfPermit(v1::PERMIT_CLOSING, spoil); }
  Story& Closed(const Spoil& spoil = {}) {
    return OfPermit(v1::PERMIT_CLOSED, [&](v1::ReceiptPayload& p) {
      v1::ClosingCounts& counts = *p.mutable_closing();
      for (const auto& [name, call] : calls_) {
        counts.set_calls(counts.calls() + (call.attempts.empty() ? 0 : 1));
        for (const Attempt& attempt : call.attempts) {
          counts.set_attempts(counts.attempts() + 1);
          if (attempt.state == v1::SUCCEEDED) counts.set_succeeded(counts.succeeded() + 1);
          if (attempt.state == v1::TOOL_ERROR) counts.set_tool_error(counts.tool_error() + 1);
          if (attempt.state == v1::RELEASED) counts.set_released(counts.released() + 1);
          if (attempt.state == v1::NOT_HAPPENED) counts.set_not_happened(counts.not_happened() + 1);
        }
      }
      counts.set_denied(denied_);
      counts.set_spent(permit_.spent);
      counts.set_overrun(std::max<int64_t>(0, permit_.held + permit_.spent - 3500));
      if (spoil) spoil(p);
    });
  }

  // A call's name is its key and its intent; "a/2" is another key of the same intent as "a".
  Story& Allow(const std::string& name, int64_t amount = 100, int grant = 1, const Spoil& spoil = {}) {
    Call& call = At(name, grant);
    Attempt& attempt = call.attempts.emplace_back();
    attempt.state = v1::AUTHORIZED;
    attempt.hold = attempt.held = amount;
    attempt.id_hash = samples::Hash(name + std::to_string(call.attempts.size()));
    attempt.lease_end = now_ + 1 + 120 * kSecond;
    attempt.slot = true;
    Taken& taken = taken_[static_cast<size_t>(grant - 1)];
    taken.slots += 1;
    taken.held += amount;
    permit_.held += amount;
    v1::ReceiptPayload p = OfCall(v1::CALL_ALLOWED, name, v1::NONE);
    Asked(p, name, v1::DISPATCH);
    p.set_send_within_ms(10000);
    Write(p, v1::GATEWAY, spoil);
    attempt.state_receipt = head_.id;
    return *this;
  }
  Story& Deny(const std::string& name, const std::string& code, int grant = 1, const Spoil& spoil = {}) {
    ++denied_;
    At(name, grant);
    v1::ReceiptPayload p = OfNoAttempt(v1::CALL_DENIED, name);
    p.set_code(code);
    Asked(p, name, code == "INTENT_PENDING" ? v1::PENDING : v1::DENIED);
    return Write(p, v1::GATEWAY, spoil);
  }
  Story& Repeat(const std::string& name, const std::string& done, const Spoil& spoil = {}) {
    At(name, calls_.at(done).grant);
    v1::ReceiptPayload p = OfNoAttempt(v1::CALL_REPEATED, name);
    Asked(p, name, v1::REPLAY);
    p.set_repeat_of_call_id(calls_.at(done).id);
    return Write(p, v1::GATEWAY, spoil);
  }

  Story& Release(const std::string& name, const Spoil& spoil = {}) {
    return End(v1::CALL_RELEASED, name, v1::RELEASED, v1::NOT_SENT, 0, false, v1::GATEWAY, spoil);
  }
  Story& Succeed(const std::string& name, int64_t charged = -1, const Spoil& spoil = {}) {
    return End(v1::CALL_SUCCEEDED, name, v1::SUCCEEDED, v1::ANSWERED, charged, true, v1::GATEWAY, spoil);
  }
  Story& Error(const std::string& name, int64_t charged = -1, const Spoil& spoil = {}) {
    return End(v1::CALL_TOOL_ERROR, name, v1::TOOL_ERROR, v1::ANSWERED_ERROR, charged, true, v1::GATEWAY, spoil);
  }
  Story& NoAnswer(const std::string& name, const Spoil& spoil = {}) {
    return End(v1::CALL_TOOL_ERROR, name, v1::TOOL_ERROR, v1::UNKNOWN, -1, true, v1::ROLE_UNSPECIFIED,
               [&](v1::ReceiptPayload& p) {
                 p.set_code("READ_NO_ANSWER");
                 if (spoil) spoil(p);
               });
  }
  Story& Park(const std::string& name, const Spoil& spoil = {}) {
    return Stay(v1::CALL_UNCERTAIN, name, v1::UNCERTAIN, v1::UNKNOWN, v1::GATEWAY, "NO_ANSWER", spoil);
  }
  Story& Escalate(const std::string& name, const Spoil& spoil = {}) {
    return Stay(v1::CALL_ESCALATED, name, v1::UNCERTAIN, v1::UNKNOWN, v1::RECONCILER, "", spoil);
  }
  Story& ReplaySent(const std::string& name, const Spoil& spoil = {}) {
    return Stay(v1::CALL_REPLAY_SENT, name, v1::UNCERTAIN, v1::UNKNOWN, v1::RECONCILER, "", spoil);
  }
  Story& Resolve(const std::string& name, bool happened, v1::Role by = v1::RECONCILER, int64_t charged = -1,
                 const Spoil& spoil = {}) {
    return End(happened ? v1::CALL_RESOLVED_HAPPENED : v1::CALL_RESOLVED_NOT_HAPPENED, name,
               happened ? v1::SUCCEEDED : v1::NOT_HAPPENED,
               happened ? v1::EFFECT_RESOLVED_HAPPENED : v1::EFFECT_RESOLVED_NOT_HAPPENED, happened ? charged : 0,
               happened, by, WithEvidence(spoil));
  }
  Story& Contradict(const std::string& name, int attempt = 0, const Spoil& spoil = {}) {
    attempt_ = attempt;
    return End(v1::CALL_CONTRADICTED, name, v1::SUCCEEDED, v1::CONTRADICTED, -1, true, v1::GATEWAY, spoil);
  }
  Story& Correct(const std::string& name, bool happened, const Spoil& spoil = {}) {
    return End(v1::CALL_CORRECTED, name, happened ? v1::SUCCEEDED : v1::NOT_HAPPENED,
               happened ? v1::EFFECT_RESOLVED_HAPPENED : v1::EFFECT_RESOLVED_NOT_HAPPENED, happened ? -1 : 0, happened,
               v1::OPERATOR, WithEvidence(spoil));
  }
  // An answer to an attempt that a verdict has ended: moves nothing.
  Story& Attach(const std::string& name, bool error, const Spoil& spoil = {}) {
    v1::ReceiptPayload p =
        OfCall(error ? v1::CALL_TOOL_ERROR : v1::CALL_SUCCEEDED, name, error ? v1::ANSWERED_ERROR : v1::ANSWERED);
    p.set_supersedes(Last(name).state_receipt);
    return Write(p, v1::GATEWAY, spoil);
  }
  Story& Void(const std::string& attempt, const Spoil& spoil = {}) {
    v1::ReceiptPayload p;
    p.set_kind(v1::ATTEMPT_VOIDED);
    PermitUsage(p);
    p.set_attempt_id_hash(samples::Hash(attempt));
    p.set_attempt_state(v1::VOIDED);
    p.set_effect_known(v1::NOT_SENT);
    return Write(p, v1::GATEWAY, spoil);
  }
  Story& Wait(int64_t us) {
    now_ += us;
    return *this;
  }

  // PERMIT_HEAD for the chain as it stands.
  v1::Receipt Head() const {
    v1::ReceiptPayload p;
    p.set_kind(v1::PERMIT_HEAD);
    p.set_tenant("acme");
    p.set_permit_id(permit_id_);
    p.set_time_us(now_);
    PermitUsage(p);
    return *Sign(SealPermitHead(p, head_, *signer_), *signer_);
  }

  const std::vector<v1::Receipt>& receipts() const { return receipts_; }
  std::vector<Input> Inputs() const {
    std::vector<Input> out;
    for (const v1::Receipt& receipt : receipts_) out.push_back({"r" + std::to_string(out.size() + 1), receipt});
    return out;
  }
  static constexpr int64_t kSecond = 1'000'000;

 private:
  struct Attempt {
    v1::CallState state;
    int64_t hold, held, charged = 0, lease_end;
    bool slot;
    std::string id_hash, state_receipt;
  };
  struct Call {
    std::string id, intent;
    int grant = 1;
    std::vector<Attempt> attempts;
  };
  struct Taken {
    int64_t slots = 0, held = 0, spent = 0;
  };

  v1::GrantTerms* Grant(const std::string& tool, int64_t cap, int64_t budget, v1::Effect effect) {
    v1::GrantTerms* grant = terms_.add_grants();
    grant->set_tool(tool);
    for (auto [limit, value] : {std::pair{grant->mutable_cap(), cap}, std::pair{grant->mutable_budget(), budget}}) {
      if (value < 0) {
        limit->set_unlimited(true);
      } else {
        limit->set_at_most(value);
      }
    }
    grant->mutable_cost()->set_caller(true);
    grant->set_effect(effect);
    grant->set_intent_scope(v1::INTENT_SCOPE_SUBJECT);
    grant->set_on_tool_error(v1::KEEP);
    grant->set_settle(v1::SETTLE_HOLD);
    grant->set_lease_ms(120000);
    grant->set_send_within_ms(10000);
    grant->set_max_attempts(3);
    return grant;
  }

  static Spoil WithEvidence(const Spoil& spoil) {
    return [spoil](v1::ReceiptPayload& p) {
      p.set_evidence_commitment(samples::Hash("evidence"));
      p.set_evidence_source("bank");
      if (spoil) spoil(p);
    };
  }

  Call& At(const std::string& name, int grant) {
    auto [found, fresh] = calls_.try_emplace(name);
    if (fresh) {
      char id[] = "019b76da-a800-7000-8000-0000000000";
      found->second.id = samples::Uuid(std::string(id) + "1" + std::to_string(calls_.size() % 10));
      found->second.grant = grant;
      if (grant != 2 && grant != 0) found->second.intent = samples::Hash("intent " + name.substr(0, name.find('/')));
    }
    return found->second;
  }
  Attempt& Last(const std::string& name) {
    auto& attempts = calls_.at(name).attempts;
    return attempt_ > 0 ? attempts[static_cast<size_t>(attempt_ - 1)] : attempts.back();
  }
  static v1::CallState State(const Call& call) {
    if (call.attempts.empty()) return v1::REFUSED;
    const v1::CallState last = call.attempts.back().state;
    for (const Attempt& a : call.attempts) {
      if (a.state == v1::SUCCEEDED && last != v1::AUTHORIZED && last != v1::UNCERTAIN) return v1::SUCCEEDED;
    }
    return last;
  }

  void PermitUsage(v1::ReceiptPayload& p) const {
    p.set_unit("USD/2");
    Fill(*p.mutable_permit_budget(), permit_, terms_.budget());
  }
  static void Fill(v1::Usage& usage, const Taken& taken, const v1::Limit& limit) {
    usage.set_held(taken.held);
    usage.set_spent(taken.spent);
    *usage.mutable_limit() = limit;
    if (limit.has_at_most()) usage.set_overrun(std::max<int64_t>(0, taken.held + taken.spent - limit.at_most()));
  }
  v1::ReceiptPayload OfCall(v1::ReceiptKind kind, const std::string& name, v1::EffectKnown effect) {
    Call& call = calls_.at(name);
    v1::ReceiptPayload p;
    p.set_kind(kind);
    PermitUsage(p);
    p.set_call_id(call.id);
    p.set_tool("unknown__tool");
    p.set_intent_hash(call.intent);
    p.set_effect_known(effect);
    p.set_state(State(call));
    if (call.grant > 0) {
      const v1::GrantTerms& grant = terms_.grants(call.grant - 1);
      const Taken& taken = taken_[static_cast<size_t>(call.grant - 1)];
      p.set_tool(call.grant == 2 ? "files__read" : grant.tool());
      p.set_grant_index(call.grant);
      p.set_effect(grant.effect());
      p.mutable_cap()->set_used(taken.slots);
      *p.mutable_cap()->mutable_limit() = grant.cap();
      if (grant.cap().has_at_most()) {
        p.mutable_cap()->set_overrun(std::max<int64_t>(0, taken.slots - grant.cap().at_most()));
      }
      Fill(*p.mutable_tool_budget(), taken, grant.budget());
    }
    if (!call.attempts.empty()) {
      const Attempt& attempt = Last(name);
      p.set_attempt_number(static_cast<int32_t>(&attempt - call.attempts.data()) + 1);
      p.set_attempt_id_hash(attempt.id_hash);
      p.set_attempt_state(attempt.state);
      p.set_held(attempt.held);
      p.set_charged(attempt.charged);
      p.set_lease_end_us(attempt.lease_end);
    }
    return p;
  }
  // Refusals and bindings are of a call, whatever attempts it has had.
  v1::ReceiptPayload OfNoAttempt(v1::ReceiptKind kind, const std::string& name) {
    Call& call = calls_.at(name);
    std::vector<Attempt> attempts;
    std::swap(attempts, call.attempts);
    v1::ReceiptPayload p = OfCall(kind, name, v1::NONE);
    std::swap(attempts, call.attempts);
    p.set_state(State(call));
    return p;
  }
  void Asked(v1::ReceiptPayload& p, const std::string& name, v1::Disposition disposition) {
    p.set_key_hash(samples::Hash("key " + name));
    p.set_fingerprint_hash(samples::Hash("fingerprint " + name));
    p.set_arguments_commitment(samples::Hash("arguments " + name));
    p.set_disposition(disposition);
  }
  Story& Stay(v1::ReceiptKind kind, const std::string& name, v1::CallState state, v1::EffectKnown effect, v1::Role by,
              const std::string& code, const Spoil& spoil) {
    Attempt& attempt = Last(name);
    const bool moved = attempt.state != state;
    attempt.state = state;
    v1::ReceiptPayload p = OfCall(kind, name, effect);
    p.set_code(code);
    Write(p, by, spoil);
    if (moved) attempt.state_receipt = head_.id;
    return *this;
  }
  Story& End(v1::ReceiptKind kind, const std::string& name, v1::CallState state, v1::EffectKnown effect,
             int64_t charged, bool slot, v1::Role by, const Spoil& spoil) {
    Attempt& attempt = Last(name);
    Taken& taken = taken_[static_cast<size_t>(calls_.at(name).grant - 1)];
    if (charged < 0) charged = attempt.hold;
    const v1::ReceiptPayload before = OfCall(kind, name, effect);
    for (Taken* each : {&taken, &permit_}) {
      each->held -= attempt.held;
      each->spent += charged - attempt.charged;
    }
    taken.slots += int64_t{slot} - int64_t{attempt.slot};
    attempt.held = 0;
    attempt.charged = charged;
    attempt.slot = slot;
    attempt.state = state;
    v1::ReceiptPayload p = OfCall(kind, name, effect);
    p.set_supersedes(attempt.state_receipt);
    p.set_overrun(std::max<int64_t>({0, p.tool_budget().overrun() - before.tool_budget().overrun(),
                                     p.permit_budget().overrun() - before.permit_budget().overrun()}));
    p.set_slot_overrun(std::max<int64_t>(0, p.cap().overrun() - before.cap().overrun()));
    Write(p, by, spoil);
    attempt.state_receipt = head_.id;
    attempt_ = 0;
    return *this;
  }
  Story& Write(v1::ReceiptPayload p, v1::Role by, const Spoil& spoil) {
    p.set_tenant("acme");
    p.set_permit_id(permit_id_);
    p.set_time_us(++now_);
    if (by != v1::ROLE_UNSPECIFIED) {
      p.set_principal_id("019b76da-a800-7000-8000-0000000000ff");
      p.set_principal_role(by);
    }
    if (spoil) spoil(p);
    receipts_.push_back(*Sign(*Seal(p, head_, *signer_), *signer_));
    return *this;
  }

  const keys::Signer* signer_;
  std::string permit_id_;
  v1::PermitTerms terms_;
  ChainHead head_;
  std::vector<v1::Receipt> receipts_;
  std::map<std::string, Call> calls_;
  std::vector<Taken> taken_;
  Taken permit_;
  int64_t denied_ = 0;
  int64_t now_ = samples::kTime;
  int attempt_ = 0;  // which attempt the next receipt is about; 0: the last
};

}  // namespace tally::receipt
