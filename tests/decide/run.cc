#include "tests/decide/run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/decide/rules.h"
#include "tests/decide/store.h"

namespace tally::decide::testing {
namespace {

constexpr Time kStart = 1'000'000 * kSecond;

std::string PrincipalName(int id) { return absl::StrCat("principal-", id); }

v1::Role RoleOf(model::Role role) {
  switch (role) {
    case model::Role::kAdmin:
      return v1::ADMIN;
    case model::Role::kOperator:
      return v1::OPERATOR;
    case model::Role::kGateway:
      return v1::GATEWAY;
    case model::Role::kReconciler:
      return v1::RECONCILER;
    case model::Role::kAuditor:
      return v1::AUDITOR;
  }
  return v1::ROLE_UNSPECIFIED;
}

v1::CallState StateOf(model::State state) {
  switch (state) {
    case model::State::kNone:
      return v1::CALL_STATE_UNSPECIFIED;
    case model::State::kRefused:
      return v1::REFUSED;
    case model::State::kAuthorized:
      return v1::AUTHORIZED;
    case model::State::kUncertain:
      return v1::UNCERTAIN;
    case model::State::kSucceeded:
      return v1::SUCCEEDED;
    case model::State::kToolError:
      return v1::TOOL_ERROR;
    case model::State::kReleased:
      return v1::RELEASED;
    case model::State::kNotHappened:
      return v1::NOT_HAPPENED;
    case model::State::kVoided:
      return v1::VOIDED;
  }
  return v1::CALL_STATE_UNSPECIFIED;
}

v1::ReceiptKind KindOf(model::Kind kind) {
  switch (kind) {
    case model::Kind::kMinted:
      return v1::PERMIT_MINTED;
    case model::Kind::kRevoked:
      return v1::PERMIT_REVOKED;
    case model::Kind::kClosing:
      return v1::PERMIT_CLOSING;
    case model::Kind::kClosed:
      return v1::PERMIT_CLOSED;
    case model::Kind::kAllowed:
      return v1::CALL_ALLOWED;
    case model::Kind::kDenied:
      return v1::CALL_DENIED;
    case model::Kind::kReleased:
      return v1::CALL_RELEASED;
    case model::Kind::kSucceeded:
      return v1::CALL_SUCCEEDED;
    case model::Kind::kToolError:
      return v1::CALL_TOOL_ERROR;
    case model::Kind::kUncertain:
      return v1::CALL_UNCERTAIN;
    case model::Kind::kEscalated:
      return v1::CALL_ESCALATED;
    case model::Kind::kHappened:
      return v1::CALL_RESOLVED_HAPPENED;
    case model::Kind::kNotHappened:
      return v1::CALL_RESOLVED_NOT_HAPPENED;
    case model::Kind::kRepeated:
      return v1::CALL_REPEATED;
    case model::Kind::kVoided:
      return v1::ATTEMPT_VOIDED;
    case model::Kind::kDenialLimit:
      return v1::DENIAL_LIMIT;
    case model::Kind::kContradicted:
      return v1::CALL_CONTRADICTED;
    case model::Kind::kCorrected:
      return v1::CALL_CORRECTED;
    case model::Kind::kReplaySent:
      return v1::CALL_REPLAY_SENT;
  }
  return v1::RECEIPT_KIND_UNSPECIFIED;
}

decide::Outcome OutcomeOf(model::Outcome outcome) {
  switch (outcome) {
    case model::Outcome::kNotSent:
      return decide::Outcome::kNotSent;
    case model::Outcome::kUncertain:
      return decide::Outcome::kUncertain;
    case model::Outcome::kSucceeded:
      return decide::Outcome::kSucceeded;
    case model::Outcome::kToolError:
      return decide::Outcome::kToolError;
  }
  return decide::Outcome::kUncertain;
}

decide::Finding FindingOf(model::Finding finding) {
  switch (finding) {
    case model::Finding::kHappened:
      return decide::Finding::kHappened;
    case model::Finding::kNotHappened:
      return decide::Finding::kNotHappened;
    case model::Finding::kCannotTell:
      return decide::Finding::kCannotTell;
  }
  return decide::Finding::kCannotTell;
}

std::shared_ptr<const PermitTerms> TermsOf(const PermitPlan& plan, int index, Time start) {
  auto terms = std::make_shared<PermitTerms>();
  terms->permit_id = MakeId(kPermitId, index);
  terms->tenant = absl::StrCat("tenant-", plan.tenant);
  terms->subject = absl::StrCat("subject-", plan.subject);
  terms->unit = "USD/2";
  terms->budget = plan.terms.budget;
  terms->not_before = start + plan.terms.from;
  terms->expires_at = start + plan.terms.until;
  for (size_t i = 0; i < plan.terms.grants.size(); ++i) {
    const model::Grant& from = plan.terms.grants[i];
    GrantTerms grant;
    grant.tool = absl::StrCat("tool-", i);
    grant.cap = from.cap;
    grant.budget = from.budget;
    grant.per_call = from.per_call;
    grant.effect = from.read ? v1::READ : v1::WRITE;
    grant.scope = static_cast<v1::IntentScope>(plan.scopes[i]);
    grant.repeat_window = from.repeat_window;
    grant.charge_tool_errors = from.keep_on_error;
    grant.settle_reported = from.reported;
    grant.lease = from.lease;
    grant.send_within = from.send_within;
    grant.max_attempts = from.max_attempts;
    terms->grants.push_back(std::move(grant));
  }
  return terms;
}

class Runner {
 public:
  Runner(const History& history, Seen* seen, std::string* trace) : history_(history), seen_(seen), trace_(trace) {
    model_.now = kStart;
    for (size_t i = 0; i < history.permits.size(); ++i) {
      const PermitPlan& plan = history.permits[i];
      store_.Mint(TermsOf(plan, static_cast<int>(i), kStart));
      model::Permit permit = plan.terms;
      permit.from += kStart;
      permit.until += kStart;
      model_.Mint(std::move(permit));
    }
  }

  std::string Run() {
    for (size_t i = 0; i < history_.batches.size(); ++i) {
      if (std::string wrong = RunBatch(history_.batches[i]); !wrong.empty()) {
        return absl::StrCat("batch ", i + 1, ": ", wrong);
      }
    }
    return "";
  }

 private:
  // A message as both sides get it.
  struct Said {
    std::optional<Request> request;  // or:
    std::optional<PermitRequest> of_permit;
    bool close = false;
    int permit = 0;
    model::Answer expected;
    std::string text;
  };

  std::string RunBatch(const Batch& batch);
  std::string Decide(World& world, const Said& said);
  std::string Compare(const Answer& answer, const Said& said) const;
  std::string CompareReceipts(const World& world) const;
  std::string CompareReceipt(const Draft& draft, const model::Receipt& expected) const;

  Step Aim(Step step) const;
  Said Make(const Step& step);
  void MakeAuthorize(const Step& step, Said& said);
  void MakeCommit(const Step& step, Said& said);
  void MakeJudge(const Step& step, Said& said);
  void MakeReplay(const Step& step, Said& said);
  struct NamedBy {
    int receipt = 0;
    std::string receipt_id;
    int claim = model::kNobody;
  };
  NamedBy Naming(const Step& step, int call_number, int attempt) const;
  int CallOf(const Step& step) const;
  int AttemptOf(const Step& step);
  model::CallName NameOf(const Step& step) const;
  CallName Named(const model::CallName& name) const;
  Principal Speaker(const Step& step) const;
  int IntentOf(const Step& step, int kind, int core, int grant) const;
  Id CallId(int call) const;
  void Note(const std::string& what) const {
    if (seen_ != nullptr) ++seen_->count[what];
  }

  const History& history_;
  Seen* seen_;
  std::string* trace_;
  model::Model model_;
  Store store_;
  std::vector<Id> call_ids_;          // by the model's number
  std::vector<size_t> acknowledged_;  // chain lengths before the batch: only those receipts' ids can be known
  std::vector<int> recent_;
  int next_attempt_ = 1, next_call_ = 1, next_claim_ = 1;
};

Id Runner::CallId(int call) const {
  return call >= 0 ? call_ids_[static_cast<size_t>(call)] : MakeId(kCallId, 1 << 20);
}

int Runner::CallOf(const Step& step) const {
  const auto found = model_.keys.find({step.permit, step.key});
  return found == model_.keys.end() ? model::kNoSuchCall : found->second;
}

int Runner::AttemptOf(const Step& step) {
  int call = CallOf(step);
  const auto fresh = [&] {
    recent_.push_back(next_attempt_);
    return next_attempt_++;
  };
  if (step.pick == Pick::kVoided && !model_.tombstones.empty()) {
    return std::next(model_.tombstones.begin(), step.nth % static_cast<int>(model_.tombstones.size()))->first;
  }
  if (step.pick == Pick::kRecent && !recent_.empty()) {
    return recent_[recent_.size() - 1 - static_cast<size_t>(step.nth) % std::min<size_t>(recent_.size(), 4)];
  }
  if (step.pick == Pick::kFresh || call < 0) return fresh();
  // A key that has become another name of a call has that call's attempts, and perhaps some of its own.
  if (model_.calls[call].same_as >= 0 && step.nth % 2 == 0) call = model_.calls[call].same_as;
  const auto& tries = model_.calls[call].tries;
  if (tries.empty()) return fresh();
  if (step.pick == Pick::kEarlier) return tries[static_cast<size_t>(step.nth) % tries.size()].id;
  return tries.back().id;
}

model::CallName Runner::NameOf(const Step& step) const {
  model::CallName name{.permit = step.permit, .key = step.key};
  if (step.by_id) name.call = CallOf(step);
  return name;
}

CallName Runner::Named(const model::CallName& name) const {
  CallName named;
  if (name.call != model::kNobody) {
    named.call_id = CallId(name.call);
  } else {
    named.permit_id = MakeId(kPermitId, name.permit);
    named.key = absl::StrCat("key-", name.key);
  }
  return named;
}

Principal Runner::Speaker(const Step& step) const {
  const model::Who speaker = WhoIs(step.who);
  Principal principal;
  principal.id = PrincipalName(speaker.id);
  principal.tenant = absl::StrCat("tenant-", history_.permits[static_cast<size_t>(step.permit)].tenant);
  principal.role = RoleOf(speaker.role);
  principal.disabled = speaker.disabled;
  principal.hard = speaker.hard;
  return principal;
}

// One number for each thing to be done in each scope; the tool is part of `core`.
int Runner::IntentOf(const Step& step, int kind, int core, int grant) const {
  const PermitPlan& plan = history_.permits[static_cast<size_t>(step.permit)];
  const int scope = plan.scopes[static_cast<size_t>(grant) - 1];
  int within = 0;
  if (scope == 1) within = 100 + step.permit;
  if (scope == 2) within = 10 + plan.tenant * 3 + plan.subject;
  if (scope == 3) within = 1 + plan.tenant;
  return ((within * 2 + kind) * 100 + core) * 10 + grant;
}

void Runner::MakeAuthorize(const Step& step, Said& said) {
  const KeyPlan& plan = history_.keys[static_cast<size_t>(step.key)];
  const int grants = static_cast<int>(history_.permits[static_cast<size_t>(step.permit)].scopes.size());
  int tool = plan.core % grants;
  int core = plan.core;
  int explicit_intent = plan.explicit_intent;
  int amount = plan.amount;
  if (step.other_meaning == 1) tool = grants;  // not granted
  if (step.other_meaning == 2) core += 20;
  if (step.other_meaning == 3) amount += 1;
  if (step.other_meaning == 4) explicit_intent = explicit_intent < 0 ? 0 : -1;
  model::Authorize m;
  m.who = WhoIs(step.who);
  m.permit = step.permit;
  m.key = step.key;
  m.attempt = AttemptOf(step);
  m.meaning.tool = tool;
  m.meaning.arguments = core * 2 + plan.noise;
  if (plan.explicit_amount || step.other_meaning == 3) m.meaning.amount = amount;
  if (explicit_intent >= 0) m.meaning.intent = explicit_intent;
  m.grant = tool < grants ? tool + 1 : 0;
  m.unenforceable = plan.unenforceable;
  m.violated = plan.violated;
  m.amount = amount;
  const bool write = m.grant != 0 && !model_.permits[step.permit].grants[m.grant - 1].read;
  if (write) m.intent = IntentOf(step, 0, core, m.grant);
  if (write && explicit_intent >= 0) m.explicit_intent = IntentOf(step, 1, explicit_intent, m.grant);
  m.repeat = step.repeat;
  if (step.lease_s != 0) m.lease = step.lease_s * kSecond;

  AuthorizeRequest r;
  r.principal = Speaker(step);
  r.permit_id = MakeId(kPermitId, m.permit);
  r.key = absl::StrCat("key-", m.key);
  r.key_hash = MakeHash(kKeyHash, m.key);
  r.attempt_id = MakeId(kAttemptId, m.attempt);
  r.new_call_id = MakeId(kCallId, next_call_++);
  r.tool = absl::StrCat("tool-", m.meaning.tool);
  r.fp_arguments = MakeHash(kArgumentsHash, m.meaning.arguments);
  r.amount = m.meaning.amount;
  if (m.meaning.intent) r.fp_intent = MakeHash(kExplicitHash, *m.meaning.intent);
  r.repeat = m.repeat;
  r.lease = m.lease;
  r.prepared.grant_index = m.grant;
  r.prepared.check = m.unenforceable ? Prepared::Check::kUnenforceable
                     : m.violated    ? Prepared::Check::kViolated
                                     : Prepared::Check::kPass;
  r.prepared.amount = m.amount;
  if (m.intent >= 0) r.prepared.intent = MakeHash(kIntentHash, m.intent);
  if (m.explicit_intent >= 0) r.prepared.explicit_intent = MakeHash(kIntentHash, m.explicit_intent);

  said.expected = model_.Say(m);
  if (model_.calls.size() > call_ids_.size()) call_ids_.push_back(r.new_call_id);
  said.request = r;
}

void Runner::MakeCommit(const Step& step, Said& said) {
  model::Commit m;
  m.who = WhoIs(step.who);
  m.call = NameOf(step);
  m.attempt = AttemptOf(step);
  m.outcome = step.outcome;
  const bool error = step.outcome == model::Outcome::kToolError;
  const bool answer = error || step.outcome == model::Outcome::kSucceeded;
  m.no_effect = error && step.no_effect;
  m.undelivered = step.undelivered;
  if (step.reported >= 0) m.amount = step.reported;
  m.has_result = answer && step.result != 0;
  // What the store makes of an answer; an amount belongs to it only where the grant settles by report.
  const int owner = model_.OwnerOf(m.attempt);
  const bool by_report =
      owner >= 0 && model_.permits[model_.calls[owner].permit].grants[model_.calls[owner].grant - 1].reported;
  m.content = 1 + step.result * 10 + (error ? 3 : 0) + (m.no_effect ? 2 : 0) +
              (by_report && !error && m.amount ? (static_cast<int>(*m.amount) + 1) * 100 : 0);

  CommitRequest r;
  r.principal = Speaker(step);
  r.call = Named(m.call);
  r.key_hash = MakeHash(kKeyHash, step.key);
  r.attempt_id = MakeId(kAttemptId, m.attempt);
  r.outcome = OutcomeOf(m.outcome);
  r.has_result = m.has_result;
  if (answer) r.content = MakeHash(kContentHash, m.content);
  if (m.has_result) r.result_commitment = MakeHash(kContentHash, step.result);
  r.amount = m.amount;
  r.no_effect = m.no_effect;
  r.undelivered = m.undelivered;
  said.expected = model_.Say(m);
  said.request = r;
}

// Which receipt and claim somebody names who speaks of a parked call.
Runner::NamedBy Runner::Naming(const Step& step, int call_number, int attempt) const {
  NamedBy named{.receipt_id = std::string(32, 'x')};
  if (call_number < 0) return named;
  const model::Call& call = model_.calls[call_number];
  for (const model::Try& t : call.tries) {
    if (t.id != attempt) continue;
    // A judge may speak of what was parked and has been judged since: the same words again.
    named.receipt = step.name == Name::kPresent ? t.end : step.name == Name::kAllowed ? t.allowed : 0;
    if (step.name == Name::kPresent && step.op == Op::kResolve && !t.verdicts.empty())
      named.receipt = t.verdicts.back().named;
  }
  if (static_cast<size_t>(named.receipt) > acknowledged_[static_cast<size_t>(call.permit)]) named.receipt = 0;
  if (named.receipt != 0) named.receipt_id = ReceiptId(MakeId(kPermitId, call.permit), named.receipt);
  if (step.right_claim && call.claim >= 0) named.claim = call.claim;
  if (!step.right_claim && step.nth % 2 == 0) named.claim = 0;
  return named;
}

void Runner::MakeJudge(const Step& step, Said& said) {
  model::Judge m;
  m.who = WhoIs(step.who);
  m.call = CallOf(step);
  m.attempt = AttemptOf(step);
  m.finding = step.finding;
  if (step.reported >= 0) m.amount = step.reported;
  m.has_result = step.result != 0;
  const NamedBy named = Naming(step, m.call, m.attempt);
  m.receipt = named.receipt;
  m.claim = named.claim;
  Evidence evidence;
  evidence.source = "provider";
  evidence.commitment = MakeHash(kContentHash, 77);
  evidence.amount = m.amount;
  evidence.has_result = m.has_result;
  if (m.has_result) evidence.result_commitment = MakeHash(kContentHash, step.result);
  if (step.op == Op::kResolve) {
    ResolveRequest r;
    r.principal = Speaker(step);
    r.call_id = CallId(m.call);
    r.attempt_id = MakeId(kAttemptId, m.attempt);
    r.supersedes = named.receipt_id;
    if (m.claim >= 0) r.claim_id = MakeId(kClaimId, m.claim);
    r.finding = FindingOf(m.finding);
    r.evidence = evidence;
    said.expected = model_.Resolve(m);
    said.request = r;
  } else {
    CorrectRequest r;
    r.principal = Speaker(step);
    r.call_id = CallId(m.call);
    r.attempt_id = MakeId(kAttemptId, m.attempt);
    r.supersedes = named.receipt_id;
    r.finding = FindingOf(m.finding);
    r.evidence = evidence;
    said.expected = model_.Correct(m);
    said.request = r;
  }
}

void Runner::MakeReplay(const Step& step, Said& said) {
  model::SendAgain m{.who = WhoIs(step.who), .call = CallOf(step), .attempt = AttemptOf(step)};
  const NamedBy named = Naming(step, m.call, m.attempt);
  m.receipt = named.receipt;
  m.claim = named.claim;
  ReplayRequest r;
  r.principal = Speaker(step);
  r.call_id = CallId(m.call);
  r.attempt_id = MakeId(kAttemptId, m.attempt);
  r.supersedes = named.receipt_id;
  r.claim_id = MakeId(kClaimId, m.claim >= 0 ? m.claim : 0);
  said.expected = model_.Say(m);
  said.request = r;
}

// What is said of a call that has no attempt yet tells little, so most of it is said of one that has.
Step Runner::Aim(Step step) const {
  const bool judged = step.op == Op::kResolve || step.op == Op::kClaim || step.op == Op::kReplay;
  if (step.op == Op::kAuthorize || step.op >= Op::kSweep || step.nth == 0) return step;
  const int call = CallOf(step);
  const auto fits = [&](const model::Call& c) {
    return judged ? model_.StateOf(c) == model::State::kUncertain : !c.tries.empty();
  };
  if (call >= 0 && fits(model_.calls[call])) return step;
  for (const model::Call& c : model_.calls) {
    if (!fits(c)) continue;
    step.permit = c.permit;
    step.key = c.key;
    break;
  }
  return step;
}

Runner::Said Runner::Make(const Step& step) {
  Said said;
  said.permit = step.permit;
  const int call = CallOf(step);
  switch (step.op) {
    case Op::kAuthorize:
      MakeAuthorize(step, said);
      break;
    case Op::kCommit:
      MakeCommit(step, said);
      break;
    case Op::kExtend: {
      model::Extend m{
          .who = WhoIs(step.who), .call = NameOf(step), .attempt = AttemptOf(step), .lease = step.lease_s * kSecond};
      ExtendRequest r;
      r.principal = Speaker(step);
      r.call = Named(m.call);
      r.attempt_id = MakeId(kAttemptId, m.attempt);
      r.lease = m.lease;
      said.expected = model_.Say(m);
      said.request = r;
      break;
    }
    case Op::kResolve:
    case Op::kCorrect:
      MakeJudge(step, said);
      break;
    case Op::kReplay:
      MakeReplay(step, said);
      break;
    case Op::kClaim: {
      model::Claim m{.who = WhoIs(step.who), .call = call, .claim = next_claim_++, .length = step.lease_s * kSecond};
      ClaimRequest r;
      r.principal = Speaker(step);
      r.call_id = CallId(call);
      r.new_claim_id = MakeId(kClaimId, m.claim);
      r.claim = m.length;
      said.expected = model_.Say(m);
      said.request = r;
      break;
    }
    case Op::kSweep: {
      SweepRequest r;
      r.call_id = CallId(call);
      said.expected = model_.Sweep(call);
      said.request = r;
      break;
    }
    case Op::kRevoke:
    case Op::kClose: {
      said.of_permit = PermitRequest{Speaker(step), MakeId(kPermitId, step.permit)};
      said.close = step.op == Op::kClose;
      said.expected =
          said.close ? model_.Close(WhoIs(step.who), step.permit) : model_.Revoke(WhoIs(step.who), step.permit);
      break;
    }
  }
  return said;
}

std::string Runner::Compare(const Answer& answer, const Said& said) const {
  const model::Answer& expected = said.expected;
  const VerdictInfo& info = Info(answer.verdict);
  std::string_view code = info.code;
  if (answer.verdict == Verdict::kDispatch) code = "DISPATCH";
  if (answer.verdict == Verdict::kReplay) code = "REPLAY";
  if (code != expected.code)
    return absl::StrCat("answered '", std::string(code), "', not '", std::string(expected.code), "'");
  const bool error = info.kind == v1::KIND_UNAUTHORIZED || info.kind == v1::KIND_INVALID;
  if (error) return "";
  if (expected.call >= 0 && answer.call_id != CallId(expected.call)) return "another call";
  if (expected.call >= 0 && answer.state != StateOf(expected.call_state)) {
    return absl::StrCat("call state ", v1::CallState_Name(answer.state), ", not ",
                        v1::CallState_Name(StateOf(expected.call_state)));
  }
  if (expected.try_state != model::State::kNone && answer.attempt_state != StateOf(expected.try_state)) {
    return absl::StrCat("attempt state ", v1::CallState_Name(answer.attempt_state), ", not ",
                        v1::CallState_Name(StateOf(expected.try_state)));
  }
  if (expected.number != 0 && answer.attempt_number != expected.number && !expected.several) {
    return absl::StrCat("attempt ", answer.attempt_number, ", not ", expected.number);
  }
  if (code == "DISPATCH") {
    if (answer.send_within != expected.send_within) return "another send window";
    if (answer.lease != expected.lease) return "another lease";
    if (answer.lease_end != expected.lease_until) return "another lease end";
  }
  if (code == "REPLAY") {
    if (answer.result_of && *answer.result_of != CallId(expected.call)) return "the result of another call";
    if (!expected.several && answer.result_of.has_value() != (expected.result_of >= 0))
      return "a result too many or too few";
    if (answer.repeat_of.has_value() != (expected.repeat_of >= 0)) return "repeat_of";
    if (answer.repeat_of && *answer.repeat_of != CallId(expected.repeat_of)) return "a repeat of another call";
  } else if (answer.result_of) {
    return "a result where none belongs";
  }
  if (expected.receipt != 0 && !expected.several) {
    const ReceiptRef wanted{MakeId(kPermitId, said.permit), expected.receipt};
    if (std::find(answer.receipts.begin(), answer.receipts.end(), wanted) == answer.receipts.end()) {
      return absl::StrCat("receipt ", expected.receipt, " is missing from the answer");
    }
  }
  return "";
}

std::string Runner::Decide(World& world, const Said& said) {
  Answer answer;
  const size_t before = world.drafts.size();
  if (said.request) {
    answer = std::visit(
        [&](const auto& r) {
          using R = std::decay_t<decltype(r)>;
          if constexpr (std::is_same_v<R, AuthorizeRequest>) return Authorize(world, r);
          if constexpr (std::is_same_v<R, CommitRequest>) return Commit(world, r);
          if constexpr (std::is_same_v<R, ExtendRequest>) return Extend(world, r);
          if constexpr (std::is_same_v<R, ResolveRequest>) return Resolve(world, r);
          if constexpr (std::is_same_v<R, CorrectRequest>) return Correct(world, r);
          if constexpr (std::is_same_v<R, ClaimRequest>) return Claim(world, r);
          if constexpr (std::is_same_v<R, SweepRequest>) return Sweep(world, r);
          if constexpr (std::is_same_v<R, ReplayRequest>) return BeginReplay(world, r);
        },
        *said.request);
  } else {
    answer = said.close ? Close(world, *said.of_permit) : Revoke(world, *said.of_permit);
  }
  if (seen_ != nullptr) {
    Note(absl::StrCat(said.request ? said.request->index() : 8 + said.close, " ",
                      v1::Disposition_Name(Info(answer.verdict).disposition), " ",
                      std::string(Info(answer.verdict).code)));
  }
  if (trace_ != nullptr) {
    absl::StrAppend(trace_, "  ", said.text, "\n    → ", v1::Disposition_Name(Info(answer.verdict).disposition), " '",
                    std::string(Info(answer.verdict).code), "' call ", answer.call_id ? NumberOf(*answer.call_id) : 0,
                    " ", v1::CallState_Name(answer.state), ", attempt ", NumberOf(answer.attempt_id), " (",
                    answer.attempt_number, ") ", v1::CallState_Name(answer.attempt_state), "\n");
    for (size_t i = before; i < world.drafts.size(); ++i) {
      const v1::ReceiptPayload& p = world.drafts[i].payload;
      absl::StrAppend(trace_, "    + receipt ", world.drafts[i].sequence, " ", v1::ReceiptKind_Name(p.kind()), " ",
                      p.code(), "\n");
    }
  }
  if (std::string wrong = Compare(answer, said); !wrong.empty()) return wrong;
  if (world.drafts.size() != before && !answer.wrote) return "something was written and the answer does not say so";
  // Rule 6: what an answer cites exists, and is older than the answer or made with it.
  for (const ReceiptRef& ref : answer.receipts) {
    const auto permit = world.permits.find(ref.permit_id);
    if (permit == world.permits.end() || ref.sequence < 1 || ref.sequence > permit->second.sequence) {
      return "rule 6: an answer cites a receipt that does not exist";
    }
  }
  const VerdictInfo& info = Info(answer.verdict);
  const bool decision = info.kind == v1::KIND_DENIED || info.kind == v1::KIND_CAP_EXCEEDED ||
                        info.kind == v1::KIND_ALREADY_DONE || info.kind == v1::KIND_DELIVERY_UNCERTAIN ||
                        answer.verdict == Verdict::kDispatch || answer.verdict == Verdict::kReplay;
  if (decision && answer.receipts.empty()) return "rule 6: a decision without a receipt";
  return "";
}

std::string Runner::CompareReceipt(const Draft& draft, const model::Receipt& expected) const {
  const v1::ReceiptPayload& p = draft.payload;
  if (p.kind() != KindOf(expected.kind)) {
    return absl::StrCat("receipt ", draft.sequence, " is ", v1::ReceiptKind_Name(p.kind()), ", not ",
                        v1::ReceiptKind_Name(KindOf(expected.kind)));
  }
  const std::string which = absl::StrCat("receipt ", draft.sequence, " ", v1::ReceiptKind_Name(p.kind()), ": ");
  if (p.code() != std::string(expected.code))
    return absl::StrCat(which, "code ", p.code(), ", not ", std::string(expected.code));
  if (expected.call < 0) return "";
  if (draft.supersedes_seq != expected.supersedes) {
    return absl::StrCat(which, "supersedes ", draft.supersedes_seq, ", not ", expected.supersedes);
  }
  if (draft.call_id != CallId(expected.call)) return which + "another call";
  if (p.attempt_number() != expected.number)
    return absl::StrCat(which, "attempt ", p.attempt_number(), ", not ", expected.number);
  if (p.held() != expected.held) return absl::StrCat(which, "held ", p.held(), ", not ", expected.held);
  if (p.charged() != expected.charged) return absl::StrCat(which, "charged ", p.charged(), ", not ", expected.charged);
  if (expected.number != 0 && p.attempt_state() != StateOf(expected.try_state)) {
    return absl::StrCat(which, "attempt state ", v1::CallState_Name(p.attempt_state()));
  }
  if (expected.number != 0 && p.state() != StateOf(expected.call_state)) {
    return absl::StrCat(which, "call state ", v1::CallState_Name(p.state()));
  }
  if (model_.calls[expected.call].grant != 0) {
    if (p.cap().used() != expected.slots)
      return absl::StrCat(which, "slots used ", p.cap().used(), ", not ", expected.slots);
    if (p.tool_budget().held() + p.tool_budget().spent() != expected.of_tool) return which + "the tool's budget";
  }
  if (p.permit_budget().held() + p.permit_budget().spent() != expected.of_permit) return which + "the permit's budget";
  return "";
}

std::string Runner::CompareReceipts(const World& world) const {
  std::map<Id, size_t> length;
  for (const Draft& draft : world.drafts) {
    const size_t permit = static_cast<size_t>(NumberOf(draft.permit_id));
    size_t& at = length.try_emplace(draft.permit_id, acknowledged_[permit]).first->second;
    const auto& chain = model_.permits[permit].chain;
    if (at >= chain.size()) {
      return absl::StrCat("a receipt too many: ", v1::ReceiptKind_Name(draft.payload.kind()));
    }
    if (draft.sequence != static_cast<int64_t>(at) + 1) return "a chain that is not dense";
    if (std::string wrong = CompareReceipt(draft, chain[at]); !wrong.empty()) return wrong;
    Note(v1::ReceiptKind_Name(draft.payload.kind()));
    ++at;
  }
  for (size_t i = 0; i < model_.permits.size(); ++i) {
    const auto at = length.find(MakeId(kPermitId, static_cast<int>(i)));
    const size_t written = at == length.end() ? acknowledged_[i] : at->second;
    if (written != model_.permits[i].chain.size()) {
      return absl::StrCat("a receipt is missing: ",
                          v1::ReceiptKind_Name(KindOf(model_.permits[i].chain[written].kind)));
    }
  }
  return "";
}

std::string Runner::RunBatch(const Batch& batch) {
  model_.now += batch.pass_s * kSecond;
  acknowledged_.clear();
  for (const model::Permit& permit : model_.permits) acknowledged_.push_back(permit.chain.size());
  std::optional<model::Model> before;
  const size_t calls_before = call_ids_.size();
  if (batch.crash) before = model_;

  // The whole batch is loaded before its first message is decided.
  std::vector<Said> all;
  std::vector<Request> requests;
  std::vector<Id> permits;
  for (const Step& planned : batch.steps) {
    const Step step = Aim(planned);
    all.push_back(Make(step));
    if (trace_ != nullptr) all.back().text = PrintStep(step);
    if (all.back().request) requests.push_back(*all.back().request);
    if (all.back().of_permit) permits.push_back(all.back().of_permit->permit_id);
  }
  if (trace_ != nullptr) absl::StrAppend(trace_, "at ", (model_.now - kStart) / kSecond, " s\n");
  World world = store_.Load(model_.now, requests, permits);
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::string wrong = Decide(world, all[i]); !wrong.empty()) return absl::StrCat("step ", i + 1, ": ", wrong);
  }
  if (std::string wrong = CompareReceipts(world); !wrong.empty()) return wrong;
  if (std::string wrong = BrokenStep(store_, world, model_.now); !wrong.empty()) return wrong;
  if (batch.crash) {
    // Nothing was acknowledged and nothing is left.
    model_ = std::move(*before);
    call_ids_.resize(calls_before);
    return "";
  }
  if (std::string wrong = store_.Keep(std::move(world)); !wrong.empty()) return "the store refuses: " + wrong;
  return BrokenRule(store_);
}

}  // namespace

std::string RunHistory(const History& history, Seen* seen, std::string* trace) {
  return Runner(history, seen, trace).Run();
}

History Shrink(History history) {
  const auto fails = [](const History& candidate) { return !RunHistory(candidate, nullptr, nullptr).empty(); };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t b = history.batches.size(); b-- > 0;) {
      History without = history;
      without.batches.erase(without.batches.begin() + static_cast<std::ptrdiff_t>(b));
      if (b < without.batches.size()) without.batches[b].pass_s += history.batches[b].pass_s;
      if (fails(without)) {
        history = std::move(without);
        smaller = true;
        continue;
      }
      for (size_t s = history.batches[b].steps.size(); s-- > 0;) {
        without = history;
        auto& steps = without.batches[b].steps;
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(s));
        if (fails(without)) {
          history = std::move(without);
          smaller = true;
        }
      }
    }
  }
  return history;
}

}  // namespace tally::decide::testing
