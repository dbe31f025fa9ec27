#include "tests/decide/fixture.h"

#include <functional>

#include "absl/strings/str_cat.h"

namespace tally::decide::testing {
namespace {

v1::IntentScope ScopeOf(const PermitTerms& terms, int grant) {
  return terms.grants[static_cast<size_t>(grant) - 1].scope;
}

}  // namespace

GrantTerms Open() {
  GrantTerms grant;
  grant.tool = "pay";
  grant.cost.from = CostRule::From::kCaller;
  return grant;
}

GrantTerms Cap(int64_t cap) {
  GrantTerms grant = Open();
  grant.cap = cap;
  return grant;
}

GrantTerms Read() {
  GrantTerms grant = Open();
  grant.effect = v1::READ;
  return grant;
}

DecideTest::DecideTest() {
  const auto add = [&](const char* name, v1::Role role) {
    Principal& principal = principals_[name];
    principal.id = name;
    principal.role = role;
  };
  add("gateway", v1::GATEWAY);
  add("other gateway", v1::GATEWAY);
  add("operator", v1::OPERATOR);
  add("reconciler", v1::RECONCILER);
  add("other reconciler", v1::RECONCILER);
  add("auditor", v1::AUDITOR);
  add("foreign gateway", v1::GATEWAY);
  add("foreign operator", v1::OPERATOR);
  for (const char* name : {"foreign gateway", "foreign operator"}) principals_[name].tenant = "initech";
}

int DecideTest::Mint(GrantTerms grant, Limit budget) {
  PermitTerms terms;
  terms.budget = budget;
  terms.grants.push_back(std::move(grant));
  return MintPermit(std::move(terms));
}

int DecideTest::MintPermit(PermitTerms terms) {
  Flush();
  const int index = static_cast<int>(store_.permits.size());
  terms.permit_id = PermitId(index);
  if (terms.tenant.empty()) terms.tenant = "acme";
  if (terms.subject.empty()) terms.subject = "agent";
  terms.unit = "USD/2";
  if (terms.expires_at == 0) terms.expires_at = now_ + 365 * kDay;
  store_.Mint(std::make_shared<PermitTerms>(std::move(terms)));
  return index;
}

void DecideTest::Pass(Time time) {
  Flush();
  now_ += time;
}

void DecideTest::Crash() { pending_.reset(); }

void DecideTest::Flush() {
  if (!pending_) return;
  EXPECT_EQ(BrokenStep(store_, *pending_, pending_->now), "");
  EXPECT_EQ(store_.Keep(std::move(*pending_)), "");
  if (check_rules_) {
    EXPECT_EQ(BrokenRule(store_), "");
  }
  pending_.reset();
}

World& DecideTest::Begin(const std::vector<Request>& requests, const std::vector<Id>& permits) {
  Flush();
  pending_ = store_.Load(now_, requests, permits);
  return *pending_;
}

Verdict DecideTest::End(Answer answer) {
  answer_ = std::move(answer);
  if (!pending_->drafts.empty()) {
    receipt_ = pending_->drafts.back().payload;
    EXPECT_TRUE(answer_.wrote) << "a receipt was written and the answer does not say so";
  }
  for (const ReceiptRef& ref : answer_.receipts) {
    const auto permit = pending_->permits.find(ref.permit_id);
    const bool exists =
        permit != pending_->permits.end() && ref.sequence > 0 && ref.sequence <= permit->second.sequence;
    EXPECT_TRUE(exists) << "the answer cites a receipt that does not exist: " << ref.sequence;
  }
  return answer_.verdict;
}

Principal DecideTest::Who(const std::string& name, int permit) const {
  Principal principal = principals_.at(name);
  if (principal.tenant.empty()) principal.tenant = store_.permits.at(PermitId(permit)).terms->tenant;
  return principal;
}

void DecideTest::Disable(const std::string& who, bool hard) {
  principals_.at(who).disabled = true;
  principals_.at(who).hard = hard;
}

Id DecideTest::AttemptId(const std::string& name) {
  return MakeId(kAttemptId, attempts_.try_emplace(name, static_cast<int>(attempts_.size()) + 1).first->second);
}

Id DecideTest::IdOf(const std::string& key, int permit) {
  Flush();
  const auto found = store_.keys.find({PermitId(permit), key});
  return found == store_.keys.end() ? MakeId(kCallId, 1 << 20) : found->second;
}

CallName DecideTest::Named(const std::string& key, int permit, bool by_id) {
  return by_id ? CallName::OfCall(IdOf(key, permit)) : CallName::OfKey(PermitId(permit), key);
}

Hash DecideTest::IntentHash(const std::string& what, int permit, int grant) const {
  const PermitTerms& terms = *store_.permits.at(PermitId(permit)).terms;
  std::string within = terms.tenant;
  if (ScopeOf(terms, grant) != v1::INTENT_SCOPE_TENANT) within += "/" + terms.subject;
  if (ScopeOf(terms, grant) == v1::INTENT_SCOPE_PERMIT) within += absl::StrCat("/", permit);
  return MakeHash(kIntentHash, static_cast<int>(std::hash<std::string>()(within + "|" + what) & 0x7FFFFFFF));
}

Verdict DecideTest::Authorize(const std::string& key, const Ask& ask) {
  const std::string attempt = ask.attempt.empty() ? absl::StrCat("attempt ", next_) : ask.attempt;
  last_attempt_[key] = attempt;
  AuthorizeRequest r;
  r.principal = Who(ask.who, ask.permit);
  r.permit_id = PermitId(ask.permit);
  r.key = key;
  r.key_hash = MakeHash(kKeyHash, 1);
  r.attempt_id = AttemptId(attempt);
  r.new_call_id = MakeId(kCallId, next_++);
  r.tool = ask.tool;
  r.fp_arguments = MakeHash(kArgumentsHash, ask.arguments * 100 + ask.noise);
  r.amount = ask.explicit_amount;
  if (ask.intent) r.fp_intent = MakeHash(kExplicitHash, *ask.intent);
  r.repeat = ask.repeat;
  r.lease = ask.lease;
  r.prepared.grant_index = ask.grant;
  r.prepared.check = ask.check;
  r.prepared.detail = ask.check == Prepared::Check::kPass ? "" : "amount: over the maximum";
  r.prepared.amount = ask.amount;
  if (ask.grant > 0 &&
      store_.permits.at(r.permit_id).terms->grants[static_cast<size_t>(ask.grant) - 1].effect == v1::WRITE) {
    r.prepared.intent = IntentHash(absl::StrCat(ask.tool, " ", ask.arguments), ask.permit, ask.grant);
    if (ask.intent) {
      r.prepared.explicit_intent = IntentHash(absl::StrCat("explicit ", *ask.intent), ask.permit, ask.grant);
    }
  }
  return End(decide::Authorize(Begin({r}), r));
}

Verdict DecideTest::Commit(const std::string& key, Outcome outcome, const Say& say) {
  CommitRequest r;
  r.principal = Who(say.who, say.permit);
  r.call = Named(key, say.permit, say.by_id);
  r.attempt_id = AttemptId(say.attempt.empty() ? last_attempt_[key] : say.attempt);
  r.outcome = outcome;
  const bool answered = outcome == kSucceeded || outcome == kToolError;
  if (answered) {
    r.has_result = say.result != 0;
    r.content =
        MakeHash(kContentHash, 1 + say.result * 100 + (outcome == kToolError ? 10 : 0) + (say.no_effect ? 1 : 0) +
                                   (say.amount ? static_cast<int>(*say.amount % 100'000) * 1000 : 0));
    r.result_commitment = MakeHash(kContentHash, say.result);
  }
  r.amount = say.amount;
  r.no_effect = say.no_effect;
  r.undelivered = say.undelivered;
  r.sent_at = say.sent_at;
  r.has_partial = say.partial;
  return End(decide::Commit(Begin({r}), r));
}

Verdict DecideTest::Extend(const std::string& key, Time lease, const Say& say) {
  ExtendRequest r;
  r.principal = Who(say.who, say.permit);
  r.call = Named(key, say.permit, say.by_id);
  r.attempt_id = AttemptId(say.attempt.empty() ? last_attempt_[key] : say.attempt);
  r.lease = lease;
  return End(decide::Extend(Begin({r}), r));
}

Verdict DecideTest::Resolve(const std::string& key, Finding finding, const Rule& rule) {
  ResolveRequest r;
  r.principal = Who(rule.who, rule.permit);
  r.call_id = IdOf(key, rule.permit);
  r.attempt_id = AttemptId(rule.attempt.empty() ? last_attempt_[key] : rule.attempt);
  r.supersedes = rule.supersedes.empty() ? ReceiptOf(key, rule.permit) : rule.supersedes;
  if (rule.claim) r.claim_id = MakeId(kClaimId, *rule.claim);
  r.finding = finding;
  r.evidence.source = "provider";
  r.evidence.amount = rule.amount;
  r.evidence.has_result = rule.result != 0;
  return End(decide::Resolve(Begin({r}), r));
}

Verdict DecideTest::Correct(const std::string& key, Finding finding, const Rule& rule) {
  CorrectRequest r;
  r.principal = Who(rule.who, rule.permit);
  r.call_id = IdOf(key, rule.permit);
  const std::string attempt = rule.attempt.empty() ? last_attempt_[key] : rule.attempt;
  r.attempt_id = AttemptId(attempt);
  r.supersedes = rule.supersedes;
  if (r.supersedes.empty() && Known(key, rule.permit)) {
    for (const decide::Attempt& a : call(key, rule.permit).attempts) {
      if (a.attempt_id == r.attempt_id) r.supersedes = a.state_receipt;
    }
  }
  r.finding = finding;
  r.evidence.source = "person";
  r.evidence.amount = rule.amount;
  r.evidence.has_result = rule.result != 0;
  return End(decide::Correct(Begin({r}), r));
}

Verdict DecideTest::Claim(const std::string& key, Time time, const std::string& who, int permit) {
  ClaimRequest r;
  r.principal = Who(who, permit);
  r.call_id = IdOf(key, permit);
  r.new_claim_id = MakeId(kClaimId, next_++);
  r.claim = time;
  return End(decide::Claim(Begin({r}), r));
}

Verdict DecideTest::Replay(const std::string& key, const Rule& rule) {
  ReplayRequest r;
  r.principal = Who(rule.who, rule.permit);
  r.call_id = IdOf(key, rule.permit);
  r.attempt_id = AttemptId(rule.attempt.empty() ? last_attempt_[key] : rule.attempt);
  r.supersedes = rule.supersedes.empty() ? ReceiptOf(key, rule.permit) : rule.supersedes;
  r.claim_id = MakeId(kClaimId, rule.claim.value_or(1 << 20));
  return End(decide::BeginReplay(Begin({r}), r));
}

void DecideTest::Sweep(const std::string& key, int permit) {
  SweepRequest r;
  r.call_id = IdOf(key, permit);
  End(decide::Sweep(Begin({r}), r));
}

Verdict DecideTest::Revoke(const std::string& who, int permit) {
  const PermitRequest r{Who(who, permit), PermitId(permit)};
  return End(decide::Revoke(Begin({}, {r.permit_id}), r));
}

Verdict DecideTest::Close(const std::string& who, int permit) {
  const PermitRequest r{Who(who, permit), PermitId(permit)};
  return End(decide::Close(Begin({}, {r.permit_id}), r));
}

Permit& DecideTest::permit(int index) {
  Flush();
  return store_.permits.at(PermitId(index));
}

const Counters& DecideTest::grant(int index) { return permit(index).grants.at(0); }

bool DecideTest::Known(const std::string& key, int permit) {
  Flush();
  return store_.keys.count({PermitId(permit), key}) != 0;
}

Call& DecideTest::call(const std::string& key, int permit) {
  Flush();
  return store_.calls.at(store_.keys.at({PermitId(permit), key}));
}

std::vector<v1::ReceiptKind> DecideTest::Chain(int permit) {
  Flush();
  std::vector<v1::ReceiptKind> kinds;
  for (const Link& link : store_.chains.at(PermitId(permit))) kinds.push_back(link.kind);
  return kinds;
}

std::string DecideTest::ReceiptOf(const std::string& key, int permit) {
  if (!Known(key, permit) || call(key, permit).attempts.empty()) return "";
  return call(key, permit).attempts.back().state_receipt;
}

bool DecideTest::Cites(int64_t sequence) const {
  for (const ReceiptRef& ref : answer_.receipts) {
    if (ref.sequence == sequence) return true;
  }
  return false;
}

}  // namespace tally::decide::testing
