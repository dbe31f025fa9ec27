#include <algorithm>
#include <utility>

#include "lib/decide/change.h"
#include "lib/decide/decide.h"
#include "lib/keys/hash.h"

namespace tally::decide {
namespace {

Answer Refused(Verdict verdict, const CommitRequest& request) {
  Answer answer;
  answer.verdict = verdict;
  answer.attempt_id = request.attempt_id;
  return answer;
}

void SetResult(Draft& draft, const CommitRequest& request) {
  if (!request.has_result) return;
  draft.payload.set_result_commitment(
      {reinterpret_cast<const char*>(request.result_commitment.data()), request.result_commitment.size()});
  draft.payload.set_result_size(request.result_size);
}

// Carries out one cell of the Commit table.
class Committing {
 public:
  Committing(World& world, const CommitRequest& request, Permit& permit, Call& call, Attempt& attempt)
      : request_(request), scene_{world, permit, call, &request.principal}, call_(call), attempt_(attempt) {}

  Answer Run(CommitAction action) {
    switch (action) {
      case CommitAction::kRelease:
        return Release();
      case CommitAction::kPark:
        return Uncertain();
      case CommitAction::kSucceed:
        return Succeed(v1::CALL_SUCCEEDED);
      case CommitAction::kToolError:
        return ToolError();
      case CommitAction::kRefuseLeaseOver:
        return RefuseLeaseOver();
      case CommitAction::kTheEndItHad:
        return Original();
      case CommitAction::kAddToUncertain:
        return AddToUncertain();
      case CommitAction::kIfSameContent:
        return attempt_.content == request_.content ? SameAgain() : Conflict();
      case CommitAction::kAttach:
        return Attach(false);
      case CommitAction::kAttachAndCall:
        return Attach(true);
      case CommitAction::kContradict:
        return Contradict();
      case CommitAction::kReplaceRead:
        if (scene_.permit.closed) return Original();  // after which only contradictions and corrections may follow
        return request_.outcome == Outcome::kSucceeded ? Succeed(v1::CALL_SUCCEEDED) : ToolError();
      case CommitAction::kConflict:
        return Conflict();
      case CommitAction::kVoid:
      case CommitAction::kNotFound:
        break;  // of unseen attempts only
    }
    return Refused(Verdict::kNotFound, request_);
  }

  // What was attached after a verdict is an end of its own kind: the same again gets its receipt.
  bool AttachedTheSame() const {
    const bool an_answer = request_.outcome == Outcome::kSucceeded || request_.outcome == Outcome::kToolError;
    return an_answer && attempt_.attached_seq > 0 && attempt_.attached == request_.content;
  }
  Answer AttachedAgain() { return About(Verdict::kRecorded, call_, &attempt_, {attempt_.attached_seq}); }

 private:
  Answer Recorded(int64_t sequence) {
    Answer answer = About(Verdict::kRecorded, call_, &attempt_, {sequence});
    answer.wrote = true;
    return answer;
  }
  Answer Original() { return About(Verdict::kRecorded, call_, &attempt_, {attempt_.state_seq}); }
  Answer Conflict() {
    Answer answer = About(Verdict::kCommitConflict, call_, &attempt_, {attempt_.state_seq});
    answer.detail = "it ended " + v1::CallState_Name(attempt_.state);
    return answer;
  }

  void Note() {
    if (request_.sent_at > 0 && attempt_.sent_at == 0) attempt_.sent_at = request_.sent_at;
    if (request_.undelivered) attempt_.undelivered = true;
    call_.dirty = attempt_.dirty = true;
  }

  // From an open state, or from a READ's missing answer.
  void End(v1::CallState end) {
    Count(scene_.permit, attempt_.state, end);
    attempt_.state = end;
    attempt_.read_no_answer = false;
    attempt_.content = request_.content;
    if (call_.attention == "escalated") call_.attention.clear();  // its answer is here: nobody has to find it out
    Note();
  }

  // A result belongs to the call unless a contradicting attempt's result already does.
  void KeepResult(Answer& answer) {
    if (call_.contradicted > 0 && call_.contradicted != attempt_.number) return;
    attempt_.has_result = request_.has_result;
    call_.result_attempt = request_.has_result ? attempt_.number : 0;
    answer.keep_result = request_.has_result;
  }

  Answer Release() {
    End(v1::RELEASED);
    GiveBack(scene_, attempt_);
    FreeIntents(scene_);
    Draft& draft = WriteCallReceipt(scene_, v1::CALL_RELEASED, &attempt_, v1::NOT_SENT);
    Supersede(draft, attempt_);
    SetState(draft, attempt_);
    return Recorded(draft.sequence);
  }

  Answer Uncertain() {
    Note();
    Park(scene_, attempt_, "NO_ANSWER");
    Answer answer = Recorded(attempt_.state_seq);
    answer.keep_partial = request_.has_partial;
    return answer;
  }

  Answer AddToUncertain() {
    Answer answer = Original();
    const bool news =
        (request_.sent_at > 0 && attempt_.sent_at == 0) || (request_.undelivered && !attempt_.undelivered);
    if (news) Note();
    answer.keep_partial = request_.has_partial;
    if (request_.has_partial) call_.dirty = true;
    answer.wrote = news || request_.has_partial;
    return answer;
  }

  Answer Succeed(v1::ReceiptKind kind) {
    const Counters grant_before = scene_.grant();
    const Counters permit_before = scene_.permit.money;
    const bool held = attempt_.open();  // not by a READ that had ended already
    End(v1::SUCCEEDED);
    Charge(scene_, attempt_, SettledAmount(scene_, attempt_, request_.amount, scene_.terms().settle_reported));
    if (held) FreeIntents(scene_);
    MarkDone(scene_, attempt_);
    Draft& draft = WriteCallReceipt(scene_, kind, &attempt_, v1::ANSWERED);
    draft.payload.set_overrun(std::max<Money>(
        {0, scene_.grant().overrun - grant_before.overrun, scene_.permit.money.overrun - permit_before.overrun}));
    SetResult(draft, request_);
    Supersede(draft, attempt_);
    SetState(draft, attempt_);
    Answer answer = Recorded(draft.sequence);
    KeepResult(answer);
    return answer;
  }

  Answer ToolError() {
    const bool charge = scene_.terms().charge_tool_errors && !request_.no_effect;
    const bool held = attempt_.open();
    End(v1::TOOL_ERROR);
    Charge(scene_, attempt_, charge ? attempt_.hold : 0);
    if (held) FreeIntents(scene_);
    Draft& draft = WriteCallReceipt(scene_, v1::CALL_TOOL_ERROR, &attempt_, v1::ANSWERED_ERROR);
    SetResult(draft, request_);
    Supersede(draft, attempt_);
    SetState(draft, attempt_);
    Answer answer = Recorded(draft.sequence);
    KeepResult(answer);
    return answer;
  }

  // Too late to give anything back: the attempt is parked. Kept for whoever resolves it.
  Answer RefuseLeaseOver() {
    Answer answer = About(Verdict::kLeaseOver, call_, &attempt_, {attempt_.state_seq});
    if (attempt_.state == v1::UNCERTAIN && !attempt_.late_not_sent) {
      attempt_.late_not_sent = true;
      attempt_.dirty = call_.dirty = true;
      scene_.world.notes.push_back({call_.call_id, attempt_.attempt_id, "gateway_journal", 0});
      answer.wrote = true;
    }
    return answer;
  }

  Answer SameAgain() {
    Answer answer = Original();
    if (request_.undelivered && !attempt_.undelivered) {
      Note();
      if (attempt_.state == v1::SUCCEEDED) ExtendDone(scene_, attempt_);
      answer.wrote = true;
    }
    return answer;
  }

  // The answer to an attempt that a verdict has ended already: it is added, and moves nothing.
  Answer Attach(bool call_a_person) {
    if (attempt_.attached_seq > 0) return Conflict();
    if (scene_.permit.closed) return Original();
    const bool error = request_.outcome == Outcome::kToolError;
    if (call_a_person) call_.attention = "error_after_happened";
    Note();
    Draft& draft = WriteCallReceipt(scene_, error ? v1::CALL_TOOL_ERROR : v1::CALL_SUCCEEDED, &attempt_,
                                    error ? v1::ANSWERED_ERROR : v1::ANSWERED);
    SetResult(draft, request_);
    Supersede(draft, attempt_);
    attempt_.attached = request_.content;
    attempt_.attached_seq = draft.sequence;
    Answer answer = Recorded(draft.sequence);
    if (error) {
      scene_.world.notes.push_back({call_.call_id, attempt_.attempt_id, "gateway_answer", draft.sequence});
      answer.keep_evidence = true;
    } else if (request_.has_result) {
      KeepResult(answer);
    }
    return answer;
  }

  Answer Contradict() {
    attempt_.content = request_.content;
    attempt_.superseded.clear();
    Note();
    call_.attention = "contradicted";
    Answer answer;
    StandsAsHappened(scene_, attempt_, v1::CALL_CONTRADICTED,
                     SettledAmount(scene_, attempt_, request_.amount, scene_.terms().settle_reported), answer);
    SetResult(scene_.world.drafts.back(), request_);
    answer = Recorded(attempt_.state_seq);
    KeepResult(answer);
    return answer;
  }

  const CommitRequest& request_;
  Scene scene_;
  Call& call_;
  Attempt& attempt_;
};

// NOT_SENT for an attempt never seen: its Authorize was in doubt. From here on it can never be granted: should that
// Authorize still be on its way, its insert of the same attempt_id fails.
Answer Void(World& world, const CommitRequest& request, Permit& permit, Call* call) {
  Answer answer = Refused(Verdict::kRecorded, request);
  answer.attempt_state = v1::VOIDED;
  if (call != nullptr) {
    answer.call_id = call->call_id;
    answer.state = call->state();
  }
  const Id permit_id = permit.terms->permit_id;
  if (permit.closed) {  // nothing can be granted, and nothing is written
    answer.receipts.push_back({permit_id, permit.closed_seq});
    return answer;
  }
  Draft& draft = WriteReceipt(world, permit, v1::ATTEMPT_VOIDED, &request.principal);
  draft.payload.set_attempt_id_hash(
      keys::AttemptIdHash({reinterpret_cast<const char*>(request.attempt_id.data()), request.attempt_id.size()}).str());
  draft.payload.set_attempt_state(v1::VOIDED);
  draft.payload.set_effect_known(v1::NOT_SENT);
  if (!IsZero(request.key_hash)) {
    draft.payload.set_key_hash({reinterpret_cast<const char*>(request.key_hash.data()), request.key_hash.size()});
  }
  world.attempts[request.attempt_id] = {std::nullopt, permit_id, draft.sequence, true};
  answer.receipts.push_back({permit_id, draft.sequence});
  answer.wrote = true;
  return answer;
}

Answer OnTombstone(const CommitRequest& request, const AttemptUse& use) {
  const bool same = OnCommit(request.outcome, AttemptIs::kVoided) == CommitAction::kTheEndItHad;
  Answer answer = Refused(same ? Verdict::kRecorded : Verdict::kCommitConflict, request);
  answer.attempt_state = v1::VOIDED;
  answer.receipts.push_back({use.permit_id, use.voided_seq});
  return answer;
}

}  // namespace

Answer Commit(World& world, const CommitRequest& request) {
  if (request.principal.role != v1::GATEWAY) return Refused(Verdict::kPermissionDenied, request);
  Call* call = FindCall(world, request.call);
  Permit* permit = FindPermit(world, call != nullptr ? call->permit_id : request.call.permit_id);
  if (permit == nullptr || permit->terms->tenant != request.principal.tenant) {
    return Refused(Verdict::kNotFound, request);
  }
  if (call == nullptr && request.call.call_id) return Refused(Verdict::kNotFound, request);

  Attempt* attempt = call != nullptr ? FindAttempt(*call, request.attempt_id) : nullptr;
  if (attempt == nullptr && call != nullptr && call->bound_to) {
    // Granted under this key after it had become another call's name.
    if (Call* holder = FindHolder(world, call, request.attempt_id)) {
      call = holder;
      attempt = FindAttempt(*call, request.attempt_id);
    }
  }
  if (attempt != nullptr && attempt->principal_id != request.principal.id) return Refused(Verdict::kNotFound, request);
  if (request.principal.disabled) {
    const bool leased = attempt != nullptr && attempt->state == v1::AUTHORIZED && world.now < attempt->lease_end;
    if (request.principal.hard || !leased) return Refused(Verdict::kPrincipalDisabled, request);
  }
  if (attempt == nullptr) {
    const auto use = world.attempts.find(request.attempt_id);
    const bool tombstone = use != world.attempts.end() && !use->second.call_id;
    if (tombstone && use->second.permit_id == permit->terms->permit_id) return OnTombstone(request, use->second);
    if (use != world.attempts.end() || OnCommit(request.outcome, AttemptIs::kUnseen) == CommitAction::kNotFound) {
      return Refused(Verdict::kNotFound, request);
    }
    return Void(world, request, *permit, call);
  }

  const bool parked = ParkIfLapsed(world, *permit, *call);
  Committing committing(world, request, *permit, *call, *attempt);
  Answer answer = committing.AttachedTheSame() ? committing.AttachedAgain()
                                               : committing.Run(OnCommit(request.outcome, Where(attempt)));
  answer.wrote |= parked;
  CloseIfDone(world, *permit);
  return answer;
}

}  // namespace tally::decide
