// The verifier against the decisions: two readings of the contract that share no code. Whatever is decided, in whatever
// order, must make a chain that verifies.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "lib/decide/decide.h"
#include "lib/decide/terms.h"
#include "lib/keys/hash.h"
#include "lib/receipt/chain.h"
#include "lib/receipt/json.h"
#include "lib/receipt/verify_set.h"
#include "tests/receipt/samples.h"

namespace tally::receipt {
namespace {

using decide::Hash;
using decide::Id;

Hash HashOf(const std::string& text) {
  Hash out;
  const keys::Digest digest = keys::Sha256(text);
  std::copy(digest.bytes.begin(), digest.bytes.end(), out.begin());
  return out;
}

Id IdOf(const std::string& bytes) {
  Id out;
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return out;
}

v1::PermitTerms Terms() {
  v1::PermitTerms terms;
  terms.set_subject("support-agent-7");
  terms.set_unit("USD/2");
  terms.mutable_budget()->set_at_most(900);
  terms.set_not_before_us(samples::kTime);
  terms.set_expires_at_us(samples::kTime + 40000 * decide::kSecond);
  const auto grant = [&](const char* tool, int64_t cap, v1::Effect effect, v1::OnToolError on_error,
                         v1::Settle settle) {
    v1::GrantTerms* g = terms.add_grants();
    g->set_tool(tool);
    g->mutable_cap()->set_at_most(cap);
    g->mutable_budget()->set_at_most(600);
    g->mutable_per_call()->set_at_most(150);
    g->mutable_cost()->set_caller(true);
    g->set_effect(effect);
    g->set_intent_scope(v1::INTENT_SCOPE_SUBJECT);
    g->set_on_tool_error(on_error);
    g->set_settle(settle);
    g->set_repeat_window_ms(600000);
    g->set_lease_ms(120000);
    g->set_send_within_ms(10000);
    g->set_max_attempts(5);
  };
  grant("refund", 6, v1::WRITE, v1::KEEP, v1::SETTLE_HOLD);
  grant("mail", 5, v1::WRITE, v1::RELEASE, v1::SETTLE_REPORTED);
  grant("read__*", 8, v1::READ, v1::RELEASE, v1::SETTLE_HOLD);
  return terms;
}

// One permit, one gateway, one reconciler, one operator, and chance.
class History {
 public:
  explicit History(uint32_t seed) : random_(seed) {
    const v1::PermitTerms terms = Terms();
    permit_id_ = IdOf(samples::PermitId());
    const auto made = decide::FromProto(terms, permit_id_, 0, "acme");
    if (!made.ok()) throw std::runtime_error(std::string(made.status().message()));
    decide::Permit& permit = world_.permits[permit_id_];
    permit.terms = *made;
    permit.grants.resize(3);
    permit.grant_versions.resize(3);
    permit.grant_dirty.resize(3);
    permit.sequence = 1;
    world_.now = samples::kTime + 1;
    v1::ReceiptPayload minted;
    minted.set_kind(v1::PERMIT_MINTED);
    minted.set_tenant("acme");
    minted.set_permit_id(samples::PermitId());
    minted.set_time_us(world_.now);
    minted.set_unit("USD/2");
    *minted.mutable_permit_terms() = terms;
    minted.set_principal_id("operator");
    minted.set_principal_role(v1::OPERATOR);
    Seal(minted);
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      world_.now += Chance(12) ? 130 * decide::kSecond : Below(3 * decide::kSecond);
      Step();
      Write();
    }
  }

  std::vector<Input> Inputs() const { return inputs_; }

  v1::Receipt Head() const {
    v1::ReceiptPayload p;
    p.set_kind(v1::PERMIT_HEAD);
    p.set_tenant("acme");
    p.set_permit_id(samples::PermitId());
    p.set_time_us(world_.now);
    return *Sign(SealPermitHead(p, head_, samples::Key()), samples::Key());
  }

  const std::map<std::string, int>& kinds() const { return kinds_; }

 private:
  struct Tried {
    Id call_id;
    Id attempt_id;
    std::string key;
    int grant;
  };

  bool Chance(int in) { return Below(in) == 0; }
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  decide::Principal Speaker(v1::Role role) const { return {.id = v1::Role_Name(role), .tenant = "acme", .role = role}; }

  void Step() {
    const int64_t what = Below(100);
    if (what < 35 || tried_.empty()) return Authorize();
    if (what < 70) return Commit();
    if (what < 85) return Resolve();
    if (what < 92) return Correct();
    if (what < 95) return Extend();
    if (what < 97) return Sweep();
    if (Chance(12)) (void)decide::Revoke(world_, {Speaker(v1::OPERATOR), permit_id_});
    if (Chance(8)) (void)decide::Close(world_, {Speaker(v1::OPERATOR), permit_id_});
  }

  void Authorize() {
    const int64_t n = Below(14);
    const int grant = n < 7 ? 1 : n < 11 ? 2 : 3;
    const std::string key = "key " + std::to_string(n);
    const std::string meaning = grant == 1 ? std::to_string(n % 4) : std::to_string(n % 2 + 10 * grant);
    decide::AuthorizeRequest request;
    request.principal = Speaker(v1::GATEWAY);
    request.permit_id = permit_id_;
    request.key = key;
    request.key_hash = HashOf(key);
    request.attempt_id = IdOf(keys::RandomBytes(16));
    request.new_call_id = IdOf(keys::NewUuid7(world_.now / 1000, 0));
    request.tool = Chance(25) && n == 13 ? "unknown" : grant == 1 ? "refund" : grant == 2 ? "mail" : "read__x";
    request.fp_arguments = HashOf("arguments " + meaning);
    request.amount = n == 6 ? 151 : 20 * (n % 5);
    if (n == 4) request.fp_intent = HashOf("explicit 4");
    request.fingerprint_hash = HashOf("fingerprint " + key);
    request.arguments_commitment = HashOf("commitment " + key);
    request.repeat = Chance(4);
    request.prepared.grant_index = request.tool == "unknown" ? 0 : grant;
    request.prepared.amount = *request.amount;
    if (grant != 3 && request.prepared.grant_index != 0) request.prepared.intent = HashOf("intent " + meaning);
    if (request.fp_intent) request.prepared.explicit_intent = HashOf("explicit intent 4");
    if (n == 5 && Chance(2)) request.prepared.check = decide::Prepared::Check::kViolated;
    const decide::Answer answer = decide::Authorize(world_, request);
    if (answer.verdict == decide::Verdict::kDispatch && answer.call_id) {
      tried_.push_back({*answer.call_id, request.attempt_id, key, grant});
    }
  }

  const Tried& Some() {
    const int64_t back = Chance(3) ? Below(static_cast<int64_t>(tried_.size())) : Below(3);
    return tried_[tried_.size() - 1 - static_cast<size_t>(std::min(back, static_cast<int64_t>(tried_.size()) - 1))];
  }

  void Commit() {
    const Tried& tried = Some();
    decide::CommitRequest request;
    request.principal = Speaker(v1::GATEWAY);
    request.call = decide::CallName::OfCall(tried.call_id);
    request.attempt_id = tried.attempt_id;
    if (Chance(20)) {  // an Authorize that was in doubt
      request.call = decide::CallName::OfKey(permit_id_, tried.key);
      request.key_hash = HashOf(tried.key);
      request.attempt_id = IdOf(keys::RandomBytes(16));
    }
    request.outcome = static_cast<decide::Outcome>(Below(4));
    request.content = HashOf("content " + std::to_string(Below(2)));
    request.has_result = Chance(2);
    request.result_commitment = HashOf("result");
    request.result_size = 6;
    if (Chance(3)) request.amount = Below(600);
    request.no_effect = Chance(3);
    request.undelivered = Chance(5);
    if (Chance(2)) request.sent_at = world_.now;
    (void)decide::Commit(world_, request);
  }

  decide::Evidence Evidence() {
    decide::Evidence out;
    out.source = "bank";
    out.commitment = HashOf("evidence");
    if (Chance(4)) out.amount = Below(400);
    out.has_result = Chance(3);
    out.result_commitment = HashOf("late result");
    out.result_size = 11;
    return out;
  }

  const decide::Attempt& AttemptOf(const Tried& tried) {
    for (const decide::Attempt& attempt : world_.calls.at(tried.call_id).attempts) {
      if (attempt.attempt_id == tried.attempt_id) return attempt;
    }
    throw std::logic_error("an attempt vanished");
  }

  void Resolve() {
    const Tried& tried = Some();
    decide::ResolveRequest request;
    request.principal = Speaker(Chance(2) ? v1::OPERATOR : v1::RECONCILER);
    request.call_id = tried.call_id;
    request.attempt_id = tried.attempt_id;
    request.supersedes = AttemptOf(tried).state_receipt;
    if (request.principal.role == v1::RECONCILER) {
      const Id claim = IdOf(keys::NewUuid7(world_.now / 1000, 0));
      (void)decide::Claim(world_, {request.principal, tried.call_id, claim, 60 * decide::kSecond});
      Write();
      request.claim_id = world_.calls.at(tried.call_id).claim_id;
    }
    request.finding = static_cast<decide::Finding>(Below(3));
    request.evidence = Evidence();
    (void)decide::Resolve(world_, request);
  }

  void Correct() {
    const Tried& tried = Some();
    decide::CorrectRequest request;
    request.principal = Speaker(v1::OPERATOR);
    request.call_id = tried.call_id;
    request.attempt_id = tried.attempt_id;
    request.supersedes = AttemptOf(tried).state_receipt;
    request.finding = Chance(2) ? decide::Finding::kHappened : decide::Finding::kNotHappened;
    request.evidence = Evidence();
    (void)decide::Correct(world_, request);
  }

  void Extend() {
    const Tried& tried = Some();
    (void)decide::Extend(world_, {Speaker(v1::GATEWAY), decide::CallName::OfCall(tried.call_id), tried.attempt_id,
                                  (60 + Below(300)) * decide::kSecond});
  }

  void Sweep() { (void)decide::Sweep(world_, {Some().call_id}); }

  // What the ledger does with drafts: fills in ids, seals, signs; then knows the ids.
  void Write() {
    for (decide::Draft& draft : world_.drafts) {
      if (draft.supersedes_seq > 0) draft.payload.set_supersedes(ids_.at(draft.supersedes_seq));
      draft.payload.set_sequence(draft.sequence);
      Seal(draft.payload);
    }
    world_.drafts.clear();
    for (auto& [id, call] : world_.calls) {
      for (decide::Attempt& attempt : call.attempts) {
        if (attempt.state_seq > 0) attempt.state_receipt = ids_.at(attempt.state_seq);
      }
    }
  }

  void Seal(const v1::ReceiptPayload& payload) {
    const auto sealed = receipt::Seal(payload, head_, samples::Key());
    if (!sealed.ok()) throw std::runtime_error(std::string(sealed.status().message()));
    ids_[head_.sequence] = head_.id;
    ++kinds_[KindName(payload.kind())];
    inputs_.push_back({"r" + std::to_string(head_.sequence), *Sign(*sealed, samples::Key())});
  }

  std::mt19937 random_;
  decide::World world_;
  Id permit_id_;
  std::vector<Tried> tried_;
  ChainHead head_;
  std::map<int64_t, std::string> ids_;
  std::vector<Input> inputs_;
  std::map<std::string, int> kinds_;
};

TEST(Decided, EveryHistoryOfDecisionsMakesAChainThatVerifies) {
  const keys::KeyRing ring(
      {{.name = samples::Key().public_key().name(), .bytes = samples::Key().public_key().bytes()}});
  std::map<std::string, int> kinds;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    History history(seed);
    history.Run(120);
    auto inputs = history.Inputs();
    inputs.push_back({"head", history.Head()});
    const SetReport report = VerifySet(inputs, ring);
    for (const ReceiptReport& each : report.receipts) {
      ASSERT_EQ(each.outcome, receipt::Outcome::kGood) << "seed " << seed << " " << each.source << ": " << *each.fault;
    }
    ASSERT_EQ(report.chains.size(), 1u);
    for (const std::string& fault : report.chains[0].faults) ADD_FAILURE() << "seed " << seed << ": " << fault;
    ASSERT_TRUE(report.chains[0].complete) << "seed " << seed;
    for (const auto& [kind, count] : history.kinds()) kinds[kind] += count;
  }
  // The histories are worth something only if everything happens in them.
  for (const char* kind :
       {"PERMIT_REVOKED", "PERMIT_CLOSING", "PERMIT_CLOSED", "CALL_ALLOWED", "CALL_DENIED", "CALL_RELEASED",
        "CALL_SUCCEEDED", "CALL_TOOL_ERROR", "CALL_UNCERTAIN", "CALL_ESCALATED", "CALL_RESOLVED_HAPPENED",
        "CALL_RESOLVED_NOT_HAPPENED", "CALL_REPEATED", "ATTEMPT_VOIDED", "CALL_CONTRADICTED", "CALL_CORRECTED"}) {
    EXPECT_GT(kinds[kind], 20) << kind;
  }
}

}  // namespace
}  // namespace tally::receipt
