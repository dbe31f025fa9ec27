#include "absl/strings/str_cat.h"
#include "tests/decide/history.h"

namespace tally::decide::testing {
namespace {

constexpr const char* kWho[] = {"gateway",  "gateway2", "reconciler",       "reconciler2",
                                "operator", "auditor",  "gateway-disabled", "gateway-disabled-hard"};
constexpr const char* kOps[] = {"Authorize", "Commit", "Extend", "Resolve", "Correct",
                                "Replay",    "Claim",  "Sweep",  "Revoke",  "Close"};
constexpr const char* kPicks[] = {"a fresh attempt", "the last attempt", "an earlier attempt", "a recent attempt",
                                  "a voided attempt"};
constexpr const char* kNames[] = {"naming its receipt", "naming its CALL_ALLOWED", "naming no receipt"};
constexpr const char* kOutcomes[] = {"NOT_SENT", "UNCERTAIN", "SUCCEEDED", "TOOL_ERROR"};
constexpr const char* kFindings[] = {"HAPPENED", "NOT_HAPPENED", "CANNOT_TELL"};

std::string PrintLimit(const model::Limit& limit) { return limit ? absl::StrCat(*limit) : "unlimited"; }
int64_t Seconds(model::Time time) { return time / 1'000'000; }

}  // namespace

std::string PrintStep(const Step& step) {
  std::string line = absl::StrCat(kOps[static_cast<int>(step.op)], "(permit ", step.permit);
  if (step.op < Op::kRevoke) absl::StrAppend(&line, ", key ", step.key);
  if (step.op < Op::kClaim) {
    absl::StrAppend(&line, ", ", kPicks[static_cast<int>(step.pick)]);
    if (step.pick > Pick::kLast) absl::StrAppend(&line, " #", step.nth);
  }
  if (step.op == Op::kAuthorize) {
    if (step.other_meaning != 0) absl::StrAppend(&line, ", other meaning ", step.other_meaning);
    if (step.repeat) absl::StrAppend(&line, ", repeat");
  }
  if (step.lease_s != 0) absl::StrAppend(&line, ", ", step.lease_s, " s");
  if (step.op == Op::kCommit) absl::StrAppend(&line, ", ", kOutcomes[static_cast<int>(step.outcome)]);
  if (step.op == Op::kResolve || step.op == Op::kCorrect) {
    absl::StrAppend(&line, ", ", kFindings[static_cast<int>(step.finding)]);
  }
  if (step.op == Op::kResolve || step.op == Op::kCorrect || step.op == Op::kReplay) {
    absl::StrAppend(&line, ", ", kNames[static_cast<int>(step.name)]);
    if (!step.right_claim) absl::StrAppend(&line, ", without its claim #", step.nth);
  }
  if (step.result != 0) absl::StrAppend(&line, ", result ", step.result);
  if (step.reported >= 0) absl::StrAppend(&line, ", amount ", step.reported);
  if (step.no_effect) line += ", no effect";
  if (step.undelivered) line += ", undelivered";
  if (step.by_id) line += ", by id";
  return absl::StrCat(line, ") by ", kWho[step.who]);
}

std::string Print(const History& history) {
  std::string text = absl::StrCat("history ", history.seed, "\n");
  for (size_t i = 0; i < history.permits.size(); ++i) {
    const PermitPlan& plan = history.permits[i];
    absl::StrAppend(&text, "Mint permit ", i, ": tenant ", plan.tenant, ", subject ", plan.subject, ", budget ",
                    PrintLimit(plan.terms.budget), ", valid ", Seconds(plan.terms.from), "–", Seconds(plan.terms.until),
                    " s\n");
    for (size_t g = 0; g < plan.terms.grants.size(); ++g) {
      const model::Grant& grant = plan.terms.grants[g];
      absl::StrAppend(&text, "  grant ", g + 1, ": ", grant.read ? "READ" : "WRITE", ", cap ", PrintLimit(grant.cap),
                      ", budget ", PrintLimit(grant.budget), ", per call ", PrintLimit(grant.per_call), ", scope ",
                      plan.scopes[g], ", window ", Seconds(grant.repeat_window), " s, lease ", Seconds(grant.lease),
                      " s, send within ", Seconds(grant.send_within), " s, attempts ", grant.max_attempts,
                      grant.keep_on_error ? ", errors charged" : ", errors released",
                      grant.reported ? ", settled by report\n" : "\n");
    }
  }
  for (size_t i = 0; i < history.keys.size(); ++i) {
    const KeyPlan& key = history.keys[i];
    absl::StrAppend(&text, "key ", i, ": does ", key.core, ", noise ", key.noise, ", amount ", key.amount,
                    key.explicit_amount ? " (explicit)" : "", ", intent ", key.explicit_intent,
                    key.violated ? ", violated" : "", key.unenforceable ? ", unenforceable" : "", "\n");
  }
  for (const Batch& batch : history.batches) {
    if (batch.pass_s != 0) absl::StrAppend(&text, "Pass ", batch.pass_s, " s\n");
    for (size_t i = 0; i < batch.steps.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? "[ " : "  ", PrintStep(batch.steps[i]), i + 1 == batch.steps.size() ? " ]" : "",
                      "\n");
    }
    if (batch.crash) text += "Crash\n";
  }
  return text;
}

}  // namespace tally::decide::testing
