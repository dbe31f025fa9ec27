#include "tests/decide/rules.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"

namespace tally::decide::testing {
namespace {

using Wide = absl::int128;

bool Takes(const Attempt& attempt) {
  return attempt.open() || attempt.state == v1::SUCCEEDED || attempt.state == v1::TOOL_ERROR;
}

Wide Over(Wide taken, const Limit& limit) { return limit && taken > *limit ? taken - *limit : Wide{0}; }

struct Sums {
  int64_t slots = 0;
  Wide held = 0, spent = 0;
};

std::string Differs(const Sums& sums, const Counters& counters, const Limit& cap, const Limit& budget) {
  if (counters.slots != sums.slots) return "rule 2: slots taken are not the attempts that take one";
  if (counters.slot_overrun != Over(sums.slots, cap)) return "rule 2: slot overrun is not what is taken over the cap";
  if (counters.held != sums.held) return "rule 5: held is not the sum of the holds";
  if (counters.spent != sums.spent) return "rule 3: spent is not the sum of the charges";
  if (counters.overrun != Over(sums.held + sums.spent, budget)) return "rule 3: overrun is not what is over the budget";
  return "";
}

std::string BrokenCall(const Call& call, const PermitTerms& terms) {
  if (!call.attempts.empty() && (call.grant_index < 1 || call.grant_index > static_cast<int>(terms.grants.size()))) {
    return "a call with attempts and no grant";
  }
  for (size_t i = 0; i < call.attempts.size(); ++i) {
    const Attempt& attempt = call.attempts[i];
    if (attempt.number != static_cast<int>(i) + 1) return "attempts are not numbered 1, 2, …";
    if (attempt.open() && i + 1 != call.attempts.size()) return "rule 1: an attempt is open that is not the last";
    if (attempt.open() && (attempt.held != attempt.hold || attempt.charged != 0))
      return "rule 5: an open attempt lost its hold";
    if (!attempt.open() && attempt.held != 0) return "an ended attempt still holds money";
    if (attempt.slot != Takes(attempt)) return "rule 2: an attempt's slot does not fit its state";
    if (!attempt.slot && attempt.charged != 0) return "an attempt that was given back is charged";
    if (attempt.state_seq == 0 || attempt.allowed_seq == 0) return "rule 6: an attempt without its receipts";
  }
  if (!call.attempts.empty() &&
      static_cast<int>(call.attempts.size()) > terms.grants[static_cast<size_t>(call.grant_index) - 1].max_attempts) {
    return "rule 1: more attempts than max_attempts";
  }
  return "";
}

}  // namespace

std::string BrokenRule(const Store& store) {
  for (const auto& [id, permit] : store.permits) {
    const PermitTerms& terms = *permit.terms;
    std::vector<Sums> sums(terms.grants.size());
    int64_t open = 0, attempts = 0, with_attempts = 0;
    std::map<v1::CallState, int64_t> ends;
    for (const auto& [call_id, call] : store.calls) {
      if (call.permit_id != id) continue;
      if (std::string broken = BrokenCall(call, terms); !broken.empty()) return broken;
      open += call.open();
      attempts += static_cast<int64_t>(call.attempts.size());
      with_attempts += !call.attempts.empty();
      for (const Attempt& attempt : call.attempts) {
        ++ends[attempt.state];
        Sums& sum = sums[static_cast<size_t>(call.grant_index) - 1];
        sum.slots += Takes(attempt);
        sum.held += attempt.held;
        sum.spent += attempt.charged;
      }
    }
    Sums all;
    for (size_t i = 0; i < sums.size(); ++i) {
      const GrantTerms& grant = terms.grants[i];
      if (std::string broken = Differs(sums[i], permit.grants[i], grant.cap, grant.budget); !broken.empty()) {
        return absl::StrCat(broken, " (grant ", i + 1, ")");
      }
      all.held += sums[i].held;
      all.spent += sums[i].spent;
    }
    Counters money = permit.money;
    money.slots = 0;  // a permit has none
    if (std::string broken = Differs(all, money, std::nullopt, terms.budget); !broken.empty())
      return broken + " (permit)";
    if (permit.open_calls != open) return "open_calls is not the number of open calls";
    if (permit.attempts != attempts) return "attempts is not the number of attempts";
    if (permit.calls != with_attempts) return "calls is not the number of calls with an attempt";
    if (permit.succeeded != ends[v1::SUCCEEDED] || permit.tool_error != ends[v1::TOOL_ERROR] ||
        permit.released != ends[v1::RELEASED] || permit.not_happened != ends[v1::NOT_HAPPENED]) {
      return "the closing counts are not the attempts that ended so";
    }
    const auto& chain = store.chains.at(id);
    const auto denied =
        std::count_if(chain.begin(), chain.end(), [](const Link& link) { return link.kind == v1::CALL_DENIED; });
    if (permit.refusals != denied) return "refusals is not the number of refusal receipts";
    if (permit.closed && open != 0) return "a closed permit has an open call";
    if (permit.closing && !permit.closed && open == 0) return "a closing permit without open calls is not closed";
  }
  for (const auto& [hash, intent] : store.intents) {
    if (!intent.open_call) continue;
    const auto call = store.calls.find(*intent.open_call);
    if (call == store.calls.end() || !call->second.open()) return "an intent is kept by a call that is not open";
  }
  return "";
}

std::string BrokenStep(const Store& before, const World& after, Time now) {
  std::map<std::pair<Id, int>, v1::CallState> states;
  std::set<Id> overrun_may_rise;
  for (const Draft& draft : after.drafts) {
    const v1::ReceiptPayload& p = draft.payload;
    if (p.time_us() != now) return "a receipt whose time is not the decision's";
    const auto& chain = before.chains.at(draft.permit_id);
    if (!chain.empty() && before.permits.at(draft.permit_id).closed && p.kind() != v1::CALL_CONTRADICTED &&
        p.kind() != v1::CALL_CORRECTED) {
      return "a closed permit's chain was extended by more than contradictions and corrections";
    }
    if (p.kind() == v1::CALL_CONTRADICTED || p.kind() == v1::CALL_CORRECTED || p.kind() == v1::CALL_SUCCEEDED ||
        p.kind() == v1::CALL_TOOL_ERROR || p.kind() == v1::CALL_RESOLVED_HAPPENED) {
      overrun_may_rise.insert(draft.permit_id);
    }
    if (!draft.call_id || p.attempt_number() == 0) continue;
    // What a receipt says of an attempt follows from what the one before said.
    const auto state_of = [&](int number) {
      if (const auto seen = states.find({*draft.call_id, number}); seen != states.end()) return seen->second;
      const auto call = before.calls.find(*draft.call_id);
      if (call == before.calls.end() || number > static_cast<int>(call->second.attempts.size())) {
        return v1::CALL_STATE_UNSPECIFIED;
      }
      return call->second.attempts[static_cast<size_t>(number) - 1].state;
    };
    const v1::CallState was = state_of(p.attempt_number());
    if (p.kind() == v1::CALL_ALLOWED) {
      if (was != v1::CALL_STATE_UNSPECIFIED) return "rule 1: an attempt was granted twice";
      const int earlier = p.attempt_number() - 1;
      if (earlier > 0 && state_of(earlier) != v1::RELEASED && state_of(earlier) != v1::NOT_HAPPENED) {
        return "rule 1: a new attempt although the one before was not given back";
      }
    }
    if (was == v1::UNCERTAIN && (p.attempt_state() == v1::NOT_HAPPENED || p.attempt_state() == v1::RELEASED)) {
      const bool judge = p.principal_role() == v1::OPERATOR || p.principal_role() == v1::RECONCILER;
      if (p.kind() != v1::CALL_RESOLVED_NOT_HAPPENED || !judge || p.evidence_source().empty()) {
        return "rule 4: something other than a verdict with evidence gave an uncertain attempt back";
      }
    }
    if (p.kind() == v1::CALL_REPLAY_SENT) {
      const Permit& permit = before.permits.at(draft.permit_id);
      const bool ended = permit.revoked || permit.closing || now >= permit.terms->expires_at;
      if (was != v1::UNCERTAIN || p.attempt_state() != v1::UNCERTAIN || p.principal_role() != v1::RECONCILER || ended) {
        return "something was sent again that was not parked, not by a reconciler, or under a permit that had ended";
      }
    }
    states[{*draft.call_id, p.attempt_number()}] = p.attempt_state();
  }
  for (const auto& [id, permit] : after.permits) {
    const Permit& row = before.permits.at(id);
    bool more = permit.money.overrun > row.money.overrun;
    for (size_t i = 0; i < permit.grants.size(); ++i) {
      more = more || permit.grants[i].overrun > row.grants[i].overrun ||
             permit.grants[i].slot_overrun > row.grants[i].slot_overrun;
    }
    if (more && overrun_may_rise.count(id) == 0) return "rules 2, 3: an overrun rose by itself";
  }
  for (const auto& [key, id] : before.keys) {
    const auto call = after.calls.find(id);
    if (call != after.calls.end() && (call->second.key != key.second || call->second.permit_id != key.first)) {
      return "rule 5: a key fell away from its record";
    }
  }
  return "";
}

}  // namespace tally::decide::testing
