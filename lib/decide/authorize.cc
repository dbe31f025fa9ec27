#include <string>

#include "lib/decide/change.h"
#include "lib/decide/decide.h"
#include "lib/keys/encoding.h"

namespace tally::decide {
namespace {

std::string OpaqueReference(const Hash& intent) {
  return keys::HexEncode({reinterpret_cast<const char*>(intent.data()), 8});
}

// Which parts of the fingerprint differ, for a person; empty: none.
std::string Differing(const Call& call, const AuthorizeRequest& request) {
  std::string fields;
  auto add = [&](bool differs, const char* name) {
    if (differs) fields += (fields.empty() ? "" : ", ") + std::string(name);
  };
  add(call.tool != request.tool, "tool");
  add(call.fp_arguments != request.fp_arguments, "arguments");
  add(call.fp_amount != request.amount, "amount");
  add(call.fp_intent != request.fp_intent, "intent");
  return fields;
}

class Authorizing {
 public:
  Authorizing(World& world, const AuthorizeRequest& request, Permit& permit)
      : world_(world),
        request_(request),
        permit_(permit),
        named_(FindCall(world, CallName::OfKey(request.permit_id, request.key))),
        call_(FollowBound(world, named_)) {}

  Answer Run() {
    if (call_ != nullptr) ParkIfLapsed(world_, permit_, *call_);
    if (auto used = AttemptUsedElsewhere()) return *used;
    switch (OnSameKey(KeyRecord())) {
      case KeyAction::kDecide:
        return Decide();
      case KeyAction::kAttemptUsed:
        return AttemptUsed(FindAttempt(*call_, request_.attempt_id));
      case KeyAction::kKeyReused: {
        Answer answer = About(Verdict::kKeyReused, *named_, nullptr, {});
        answer.detail = "differs in: " + Differing(*named_, request_);
        return answer;
      }
      case KeyAction::kOriginalAnswer:
        return About(Verdict::kDispatch, *call_, call_->last(), {call_->last()->allowed_seq});
      case KeyAction::kPendingWindowOver:
        return About(WhyNotAgain(), *call_, call_->last(), {call_->last()->allowed_seq});
      case KeyAction::kPendingOther:
        return About(Verdict::kStillAuthorized, *call_, call_->last(), {call_->last()->allowed_seq});
      case KeyAction::kPendingUncertain:
        return About(Verdict::kStillPending, *call_, call_->last(), {call_->last()->state_seq});
      case KeyAction::kReplay:
        return Replay(*call_);
      case KeyAction::kSameRefusal:
        return RefusedAgain(*VerdictOfCode(call_->refusal));
    }
    return {};
  }

 private:
  const PermitTerms& terms() const { return *permit_.terms; }
  const GrantTerms& grant_terms() const { return terms().grants[request_.prepared.grant_index - 1]; }
  Counters& grant() const { return permit_.grants[request_.prepared.grant_index - 1]; }

  // ---- Same key ----

  Answer AttemptUsed(const Attempt* attempt) {
    Answer answer;
    answer.verdict = Verdict::kAttemptUsed;
    if (attempt != nullptr) {
      answer = About(Verdict::kAttemptUsed, *call_, attempt, {attempt->state_seq});
      answer.detail = "it ended " + v1::CallState_Name(attempt->state);
    }
    answer.attempt_id = request_.attempt_id;
    return answer;
  }

  // A tombstone, or another call's.
  std::optional<Answer> AttemptUsedElsewhere() {
    if (call_ != nullptr && FindAttempt(*call_, request_.attempt_id) != nullptr) return std::nullopt;
    if (named_ != nullptr && named_ != call_) {  // this key's, from before it became another's name
      if (const Attempt* own = FindAttempt(*named_, request_.attempt_id)) return AttemptUsed(own);
    }
    const auto use = world_.attempts.find(request_.attempt_id);
    if (use == world_.attempts.end()) return std::nullopt;
    Answer answer = AttemptUsed(nullptr);
    if (!use->second.call_id) {
      answer.detail = "it was voided";
      if (use->second.permit_id == request_.permit_id) {
        answer.receipts.push_back({request_.permit_id, use->second.voided_seq});
      }
    }
    return answer;
  }

  KeyIs KeyRecord() {
    if (named_ == nullptr) return KeyIs::kUnknown;
    const Attempt* attempt = FindAttempt(*call_, request_.attempt_id);
    if (attempt != nullptr && !attempt->open()) return KeyIs::kAttemptUsed;
    if (!Differing(*named_, request_).empty()) return KeyIs::kOtherFingerprint;
    // Another principal's attempt is another attempt, whatever its id: only who made it may ask for it again.
    const bool same = attempt != nullptr && attempt->principal_id == request_.principal.id;
    switch (call_->state()) {
      case v1::AUTHORIZED:
        if (!same) return KeyIs::kAuthorizedOther;
        return WhyNotAgain() == Verdict::kDispatch ? KeyIs::kAuthorizedSame : KeyIs::kAuthorizedSameLate;
      case v1::UNCERTAIN:
        return KeyIs::kUncertain;
      case v1::SUCCEEDED:
      case v1::TOOL_ERROR:
        return KeyIs::kAnswered;
      default:
        break;
    }
    const std::optional<Verdict> refusal = VerdictOfCode(call_->refusal);
    if (refusal && Info(*refusal).fixed) return KeyIs::kRefusedFixed;
    if (!call_->attempts.empty()) return KeyIs::kGivenBack;
    return KeyIs::kRefusedPassing;
  }

  // kDispatch, or why the same attempt gets no second go-ahead.
  Verdict WhyNotAgain() const {
    if (call_->contradicted > 0) return Verdict::kPendingContradicted;
    if (permit_.revoked) return Verdict::kPendingRevoked;
    if (permit_.closing) return Verdict::kPendingClosed;
    if (world_.now >= terms().expires_at) return Verdict::kPendingExpired;
    const Attempt& attempt = *call_->last();
    if (world_.now >= attempt.granted_at + attempt.send_within) return Verdict::kSendWindowOver;
    return Verdict::kDispatch;
  }

  Answer Replay(Call& done) {
    const size_t number = done.contradicted > 0 ? static_cast<size_t>(done.contradicted) : done.attempts.size();
    const Attempt& attempt = done.attempts[number - 1];
    Answer answer = About(attempt.read_no_answer ? Verdict::kReadNoAnswer : Verdict::kReplay, done, &attempt, {});
    answer.receipts = {{done.permit_id, attempt.allowed_seq}, {done.permit_id, attempt.state_seq}};
    if (attempt.attached_seq > 0) answer.receipts.push_back({done.permit_id, attempt.attached_seq});
    if (named_ != nullptr && named_->bound_seq > 0) {
      answer.receipts.insert(answer.receipts.begin(), {named_->permit_id, named_->bound_seq});
      answer.repeat_of = done.call_id;
    }
    if (done.result_attempt == attempt.number) answer.result_of = done.call_id;
    return answer;
  }

  // ---- A decision ----

  Answer Decide() {
    if (permit_.closed) {  // the chain has ended: nothing is written any more
      Answer answer;
      answer.verdict = Verdict::kPermitClosed;
      answer.attempt_id = request_.attempt_id;
      answer.receipts.push_back({request_.permit_id, permit_.closed_seq});
      return answer;
    }
    const Verdict verdict = Guards();
    if (verdict == Verdict::kReplay) return Bind(*world_.intents.at(request_.prepared.intent).done_call);
    return verdict == Verdict::kDispatch ? Grant() : Refuse(verdict);
  }

  // One guard a line, in the fixed order; the first that does not hold names the outcome.
  Verdict Guards() {
    const Prepared& prepared = request_.prepared;
    if (permit_.revoked) return Verdict::kPermitRevoked;
    if (permit_.closing) return Verdict::kPermitClosed;
    if (world_.now < terms().not_before) return Verdict::kPermitNotYetValid;
    if (world_.now >= terms().expires_at) return Verdict::kPermitExpired;
    if (prepared.grant_index == 0) return Verdict::kToolNotGranted;
    if (prepared.check == Prepared::Check::kUnenforceable) return Verdict::kConstraintUnenforceable;
    if (prepared.check == Prepared::Check::kViolated) return Verdict::kConstraintViolated;
    if (AttemptsMade() >= grant_terms().max_attempts) return Verdict::kAttemptsExhausted;
    if (grant_terms().per_call && prepared.amount > *grant_terms().per_call) return Verdict::kAmountOverCallLimit;
    if (const Verdict intent = IntentGuard(); intent != Verdict::kDispatch) return intent;
    if (permit_.open_calls >= kOpenCallsMax) return Verdict::kOpenCalls;
    if (grant_terms().cap && grant().slots >= *grant_terms().cap) return Verdict::kCallCap;
    if (!HasRoom(grant(), grant_terms().budget)) return Verdict::kToolBudget;
    if (!HasRoom(permit_.money, terms().budget)) return Verdict::kPermitBudget;
    return Verdict::kDispatch;
  }

  int32_t AttemptsMade() const { return call_ == nullptr ? 0 : static_cast<int32_t>(call_->attempts.size()); }

  // Unlimited still ends at int64: sums that do not fit are refused.
  bool HasRoom(const Counters& counters, const Limit& limit) const {
    const std::optional<Money> taken = Sum(counters.held, counters.spent);
    const std::optional<Money> wanted = taken ? Sum(*taken, request_.prepared.amount) : std::nullopt;
    return wanted && (!limit || *wanted <= *limit);
  }

  // kIntentPending, kAlreadyDone, kReplay (of a call of this permit, by the derived intent), or kDispatch: free.
  Verdict IntentGuard() {
    if (grant_terms().effect == v1::READ) return Verdict::kDispatch;
    std::vector<Hash> hashes = {request_.prepared.intent};
    if (request_.prepared.explicit_intent) hashes.push_back(*request_.prepared.explicit_intent);
    for (const Hash& hash : hashes) {
      const auto row = world_.intents.find(hash);
      if (row == world_.intents.end() || !row->second.open_call) continue;
      if (call_ != nullptr && *row->second.open_call == call_->call_id) continue;
      blocking_ = OpaqueReference(hash);
      return Verdict::kIntentPending;
    }
    if (request_.repeat) return Verdict::kDispatch;
    for (const Hash& hash : hashes) {
      const auto row = world_.intents.find(hash);
      if (row == world_.intents.end() || !row->second.done_call) continue;
      const Intent& intent = row->second;
      if (call_ != nullptr && *intent.done_call == call_->call_id) continue;
      // The instants of one batch are equal: a key that was seen in the success's own counts as seen before it.
      const bool seen_before = named_ != nullptr && named_->first_seen <= intent.done_at;
      if (world_.now >= intent.done_until && !seen_before) continue;
      if (hash == request_.prepared.intent && intent.done_permit == request_.permit_id) {
        const auto done = world_.calls.find(*intent.done_call);
        if (done != world_.calls.end() && done->second.state() == v1::SUCCEEDED) return Verdict::kReplay;
      }
      blocking_ = OpaqueReference(hash);
      return Verdict::kAlreadyDone;
    }
    return Verdict::kDispatch;
  }

  // The key's record, made now if it is new.
  Call& Record() {
    if (call_ != nullptr) return *call_;
    Call& fresh = world_.calls[request_.new_call_id];
    fresh.call_id = request_.new_call_id;
    fresh.permit_id = request_.permit_id;
    fresh.key = request_.key;
    fresh.tool = request_.tool;
    fresh.grant_index = request_.prepared.grant_index;
    fresh.fp_arguments = request_.fp_arguments;
    fresh.fp_amount = request_.amount;
    fresh.fp_intent = request_.fp_intent;
    fresh.first_seen = world_.now;
    fresh.intent = request_.prepared.intent;
    fresh.explicit_intent = request_.prepared.explicit_intent;
    fresh.fresh = fresh.dirty = true;
    world_.keys[{request_.permit_id, request_.key}] = fresh.call_id;
    named_ = call_ = &fresh;
    return fresh;
  }

  void Describe(v1::ReceiptPayload& payload, v1::Disposition disposition) const {
    payload.set_disposition(disposition);
    payload.set_key_hash(Bytes(request_.key_hash));
    payload.set_fingerprint_hash(Bytes(request_.fingerprint_hash));
    payload.set_arguments_commitment(Bytes(request_.arguments_commitment));
  }

  static std::string Bytes(const Hash& hash) { return {reinterpret_cast<const char*>(hash.data()), hash.size()}; }

  Answer Grant() {
    Call& call = Record();
    call.refusal.clear();
    call.refusal_seq = 0;
    call.intent = request_.prepared.intent;
    call.explicit_intent = request_.prepared.explicit_intent;
    call.attempts.emplace_back();
    Attempt& attempt = call.attempts.back();
    attempt.attempt_id = request_.attempt_id;
    attempt.number = static_cast<int32_t>(call.attempts.size());
    attempt.state = v1::AUTHORIZED;
    attempt.granted_at = world_.now;
    attempt.lease = std::min(request_.lease.value_or(grant_terms().lease), grant_terms().lease);
    attempt.send_within = std::min(grant_terms().send_within, attempt.lease);
    attempt.lease_end = world_.now + attempt.lease;
    attempt.principal_id = request_.principal.id;
    world_.attempts[attempt.attempt_id] = {call.call_id, call.permit_id, 0, true};
    permit_.attempts += 1;
    permit_.open_calls += 1;
    if (attempt.number == 1) permit_.calls += 1;

    Scene scene{world_, permit_, call, &request_.principal};
    Reserve(scene, attempt, request_.prepared.amount);
    ClaimIntents(scene, attempt);
    Draft& draft = WriteCallReceipt(scene, v1::CALL_ALLOWED, &attempt, v1::NONE);
    Describe(draft.payload, v1::DISPATCH);
    draft.payload.set_send_within_ms(attempt.send_within / 1000);
    SetState(draft, attempt);
    attempt.allowed_seq = draft.sequence;

    Answer answer = About(Verdict::kDispatch, call, &attempt, {draft.sequence});
    answer.wrote = answer.keep_arguments = true;
    return answer;
  }

  Answer RefusedAgain(Verdict verdict) {
    Answer answer = About(verdict, *call_, call_->last(), {call_->refusal_seq});
    answer.attempt_id = request_.attempt_id;
    answer.detail = request_.prepared.detail;
    answer.opaque_reference = blocking_;
    return Quieten(std::move(answer));
  }

  // A refusal moves no counter but that of refusals.
  Answer Refuse(Verdict verdict) {
    const VerdictInfo& info = Info(verdict);
    if (call_ != nullptr && call_->refusal == info.code) return RefusedAgain(verdict);

    Answer answer;
    answer.wrote = true;
    if (permit_.refusals >= kRefusalReceiptsMax) {
      // The chain must not be grown without end by asking: this receipt stands for all refusals from here on.
      answer.wrote = permit_.denial_limit_seq == 0;
      if (answer.wrote) {
        Draft& draft = WriteReceipt(world_, permit_, v1::DENIAL_LIMIT, &request_.principal);
        draft.payload.set_effect_known(v1::NONE);
        permit_.denial_limit_seq = draft.sequence;
      }
      answer.receipts.push_back({request_.permit_id, permit_.denial_limit_seq});
    } else {
      permit_.refusals += 1;
      Call& call = Record();
      Scene scene{world_, permit_, call, &request_.principal};
      Draft& draft = WriteCallReceipt(scene, v1::CALL_DENIED, nullptr, v1::NONE, info.code);
      Describe(draft.payload, info.disposition);
      call.refusal = info.code;
      call.refusal_seq = draft.sequence;
      answer.receipts.push_back({request_.permit_id, draft.sequence});
    }
    if (call_ != nullptr) {
      answer.call_id = call_->call_id;
      answer.state = call_->state();
    }
    answer.verdict = verdict;
    answer.attempt_id = request_.attempt_id;
    answer.detail = request_.prepared.detail;
    answer.opaque_reference = blocking_;
    return Quieten(std::move(answer));
  }

  static Answer Quieten(Answer answer) {
    if (answer.verdict != Verdict::kConstraintViolated && answer.verdict != Verdict::kConstraintUnenforceable) {
      answer.detail.clear();
    }
    return answer;
  }

  // The key becomes another name of the call that did it, for good.
  Answer Bind(const Id& done_id) {
    Call& name = Record();  // for a key that is another name already: of the call that answers for it
    Call& done = world_.calls.at(done_id);
    Scene scene{world_, permit_, name, &request_.principal};
    Draft& draft = WriteCallReceipt(scene, v1::CALL_REPEATED, nullptr, v1::NONE);
    Describe(draft.payload, v1::REPLAY);
    draft.payload.set_repeat_of_call_id({reinterpret_cast<const char*>(done_id.data()), done_id.size()});
    name.bound_to = done_id;
    name.bound_seq = draft.sequence;
    Answer answer = Replay(done);
    if (named_ != &name) answer.receipts.push_back({name.permit_id, name.bound_seq});
    answer.wrote = true;
    return answer;
  }

  World& world_;
  const AuthorizeRequest& request_;
  Permit& permit_;
  Call* named_;           // the key's own record
  Call* call_;            // the call that answers for it
  std::string blocking_;  // an opaque name of the call in the way
};

}  // namespace

Answer Authorize(World& world, const AuthorizeRequest& request) {
  Answer refused;
  refused.attempt_id = request.attempt_id;
  refused.verdict = Verdict::kPrincipalDisabled;
  if (request.principal.disabled) return refused;
  refused.verdict = Verdict::kPermissionDenied;
  if (request.principal.role != v1::GATEWAY) return refused;
  refused.verdict = Verdict::kNotFound;
  Permit* permit = FindPermit(world, request.permit_id);
  if (permit == nullptr || permit->terms->tenant != request.principal.tenant) return refused;
  const size_t drafted = world.drafts.size();
  Answer answer = Authorizing(world, request, *permit).Run();
  CloseIfDone(world, *permit);
  answer.wrote |= world.drafts.size() > drafted;  // a lease that was found over, too
  return answer;
}

}  // namespace tally::decide
