#include "reconciler/engine/work.h"

#include <algorithm>
#include <random>
#include <thread>

#include "lib/keys/encoding.h"
#include "lib/keys/provider_names.h"
#include "lib/keys/text.h"
#include "reconciler/engine/evidence.h"
#include "reconciler/engine/queue.h"
#include "server/ops/log.h"

namespace tally::reconciler {
namespace {

using keys::Cat;
using What = Decision::What;

constexpr milliseconds kPauseFirst{200};
constexpr milliseconds kPauseMax{5'000};
constexpr milliseconds kTryLeast{250};

milliseconds Between(milliseconds min, milliseconds max) {
  thread_local std::mt19937_64 chance{std::random_device{}()};
  return milliseconds(std::uniform_int_distribution<int64_t>(min.count(), std::max(min, max).count())(chance));
}

// tallyd did not speak, or a rival rolled it back: nothing was refused.
bool MayAskAgain(const client::Failure& failure) {
  return failure.kind == v1::KIND_UNAVAILABLE || failure.kind == v1::KIND_CONTENDED ||
         failure.kind == v1::KIND_DELIVERY_UNCERTAIN;
}

bool IsLostRace(const client::Failure& failure) {
  return failure.code == "STALE_RESOLUTION" || failure.code == "CLAIMED" || failure.code == "NOT_FOUND";
}

v1::Verdict VerdictOf(What what) {
  if (what == What::kHappened) return v1::VERDICT_HAPPENED;
  return what == What::kNotHappened ? v1::VERDICT_NOT_HAPPENED : v1::VERDICT_CANNOT_TELL;
}

std::string_view WordOf(What what) {
  if (what == What::kHappened) return "happened";
  return what == What::kNotHappened ? "not_happened" : "cannot_tell";
}

}  // namespace

struct Work::Held {
  v1::ParkedCall parked;
  std::string claim_id;
  std::string attempt_id;
  milliseconds claimed{0};  // no later than tallyd's answer
  milliseconds until{0};    // the claim's end, on our clock
  const ToolConfig& tool;
  const ProviderConfig* provider;

  // At least this stands on the database's clock.
  int64_t ServerUs(milliseconds now) const { return parked.now_us() + (now - claimed).count() * 1000; }
};

Limits LimitsOf(const Config& config, const ToolConfig& tool) {
  return {.absent_is_final_after = tool.absent_is_final_after,
          .absent_spacing = config.reconciler.absent_spacing,
          .give_up_after = tool.give_up_after,
          .look_after_escalation = config.reconciler.look_after_escalation,
          .backoff_min = config.reconciler.backoff_min,
          .backoff_max = config.reconciler.backoff_max};
}

LookUp* Work::LookUpOf(const ToolConfig& tool) const {
  const auto found = look_ups_.find(tool.tool);
  return found == look_ups_.end() ? nullptr : found->second.get();
}

bool Work::MayNeed(const v1::ParkedCall& listed) const {
  if (listed.uncertain_receipt_id().empty() || listed.call().state() != v1::UNCERTAIN) return false;
  const ToolConfig& tool = config_.ForTool(listed.call().tool());
  const auto before =
      BeforeAsking(LimitsOf(config_, tool), ParkedOf(listed), LookUpOf(tool) != nullptr, listed.now_us());
  return !before || before->what != What::kLeave;
}

// After every step that tallyd confirmed: what if this process ends here?
void Work::Handle(const std::string& call_id) {
  v1::ClaimRequest request;
  request.set_call_id(call_id);
  request.set_claim_ms(config_.reconciler.claim.count());
  const milliseconds asked = MonotonicNow();
  client::CallOptions options;
  options.timeout = config_.tallyd.timeout;
  client::Answer<v1::ClaimResponse> claim = tallyd_.Claim(request, options);
  if (!claim.ok()) {
    if (IsLostRace(claim.failure()) || claim.failure().kind == v1::KIND_CONFLICT) return metrics_.LostRace("claim");
    metrics_.TallydFailed("claim");
    return ops::LogWarning("claim_failed", {{"call_id", call_id}, {"code", claim.failure().code}});
  }
  // Crash: the claim runs out, and the call is listed again.
  v1::ParkedCall& parked = *claim.value().mutable_parked();
  if (parked.call().attempts().empty() || parked.uncertain_receipt_id().empty()) return;
  const ToolConfig& tool = config_.ForTool(parked.call().tool());
  const Held held{.parked = parked,
                  .claim_id = claim.value().claim_id(),
                  .attempt_id = parked.call().attempts().rbegin()->attempt_id(),
                  .claimed = MonotonicNow(),
                  .until = asked + config_.reconciler.claim,
                  .tool = tool,
                  .provider = config_.Provider(tool.provider)};
  const Limits limits = LimitsOf(config_, tool);
  const Parked seen = ParkedOf(parked);
  LookUp* const look_up = LookUpOf(tool);
  if (const auto before = BeforeAsking(limits, seen, look_up != nullptr, held.ServerUs(held.claimed))) {
    if (before->what != What::kLeave) Settle(held, *before, {});
    return;
  }

  Sighting sighting;
  sighting.began = MonotonicNow();
  sighting.server_us = held.ServerUs(sighting.began);
  const Case about{held.parked, keys::ProviderReference(call_id), keys::ProviderKey(call_id), held.claim_id};
  const Answer answer = look_up->Ask(about);
  // Crash: the provider was asked in vain. A look-up changes nothing there; a replay is a send of its own, which tallyd
  // has in its record, under the provider's own key.
  sighting.ended = MonotonicNow();
  sighting.finding = answer.finding;
  sighting.amount = answer.amount;
  sighting.provider_id = answer.reference;
  metrics_.LookUp(tool.provider, NameOf(tool.kind), answer.finding,
                  static_cast<double>((sighting.ended - sighting.began).count()) / 1000);
  Decision decision = Judge(limits, seen, memory_.Of(held.attempt_id), sighting);
  memory_.Add(held.attempt_id, sighting);
  ops::LogInfo("look_up", {{"call_id", call_id},
                           {"tool", parked.call().tool()},
                           {"provider", tool.provider},
                           {"kind", NameOf(tool.kind)},
                           {"finding", NameOf(answer.finding)},
                           {"reason", decision.reason}});

  // Not noted, not resolved: a verdict always finds on record what it was drawn from.
  if (!Note(held, answer, decision)) return;
  // Crash: the answer is on record, and whoever claims the call next asks again and must hear nothing that contradicts
  // it.
  if (decision.what != What::kLookAgain) Settle(held, decision, answer);
}

bool Work::Note(const Held& held, const Answer& answer, const Decision& decision) {
  v1::NoteLookUpRequest request;
  request.set_call_id(held.parked.call().call_id());
  request.set_attempt_id(held.attempt_id);
  request.set_supersedes(held.parked.uncertain_receipt_id());
  request.set_claim_id(held.claim_id);
  *request.mutable_look_up() = NoteOf(answer, held.tool);
  if (decision.what == What::kLookAgain) {
    request.set_next_look_ms(Between(decision.wait_min, decision.wait_max).count());
    request.set_release_claim(true);
  } else if (decision.what == What::kEscalate) {
    // For after the escalation. Were this process to end before that, the call would wait this long.
    request.set_next_look_ms(std::min(config_.reconciler.backoff_max, config_.reconciler.claim).count());
  }
  return Deliver<v1::NoteLookUpResponse>(
             held, "note", [&](const client::CallOptions& options) { return tallyd_.NoteLookUp(request, options); })
      .has_value();
}

void Work::Settle(const Held& held, const Decision& decision, const Answer& answer) {
  v1::ResolveRequest request;
  request.set_call_id(held.parked.call().call_id());
  request.set_attempt_id(held.attempt_id);
  request.set_supersedes(held.parked.uncertain_receipt_id());
  request.set_claim_id(held.claim_id);
  request.set_verdict(VerdictOf(decision.what));
  *request.mutable_evidence() = EvidenceOf(held.parked, decision, answer, held.provider);
  const auto resolved = Deliver<v1::ResolveResponse>(
      held, "resolve", [&](const client::CallOptions& options) { return tallyd_.Resolve(request, options); });
  // Crash before tallyd had it: as if it had not been sent. After: it is done. The same Resolve again is answered with
  // the original receipt, a later one of another attempt, receipt or claim with STALE_RESOLUTION.
  if (!resolved) return;
  metrics_.Resolved(WordOf(decision.what));
  if (decision.what != What::kEscalate) memory_.Forget(held.attempt_id);
  ops::LogInfo("resolved", {{"call_id", held.parked.call().call_id()},
                            {"tool", held.parked.call().tool()},
                            {"verdict", WordOf(decision.what)},
                            {"reason", decision.reason}});
}

template <typename Response>
std::optional<Response> Work::Deliver(const Held& held, std::string_view rpc,
                                      const std::function<client::Answer<Response>(const client::CallOptions&)>& ask) {
  milliseconds pause = kPauseFirst;
  // Ends with the claim: after that tallyd would refuse it anyway.
  while (true) {
    const milliseconds left = held.until - MonotonicNow();
    if (left < kTryLeast) break;
    client::CallOptions options;
    options.timeout = std::min(config_.tallyd.timeout, left);
    options.try_timeout = options.timeout;
    client::Answer<Response> answer = ask(options);
    if (answer.ok()) return std::move(answer.value());
    const client::Failure& failure = answer.failure();
    if (IsLostRace(failure)) {
      metrics_.LostRace(rpc);
      memory_.Forget(held.attempt_id);
      return std::nullopt;
    }
    metrics_.TallydFailed(rpc);
    ops::LogWarning(
        "tallyd_failed",
        {{"rpc", rpc}, {"call_id", held.parked.call().call_id()}, {"code", failure.code}, {"error", failure.message}});
    if (!MayAskAgain(failure)) return std::nullopt;
    std::this_thread::sleep_for(std::min(Between(kPauseFirst / 2, pause), std::max(milliseconds(0), left)));
    pause = std::min(pause * 2, kPauseMax);
  }
  ops::LogWarning("claim_ran_out", {{"rpc", rpc}, {"call_id", held.parked.call().call_id()}});
  return std::nullopt;
}

}  // namespace tally::reconciler
