#include "lib/decide/terms.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lib/decide/prepare.h"
#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/keys/text.h"
#include "lib/money/unit.h"
#include "lib/schema/schema.h"

namespace tally::decide {
namespace {

constexpr int kGrantsMax = 256;
constexpr int kMaxAttemptsMost = 100;
constexpr int64_t kRepeatWindowMaxMs = 366LL * 24 * 3600 * 1000;
constexpr int kPointersMax = 64;

absl::Status Invalid(std::string_view where, std::string_view what) {
  return absl::InvalidArgumentError(keys::Cat(where, ": ", what, ". Nothing was minted."));
}

absl::Status CheckLimit(std::string_view where, const v1::Limit& limit, bool must_be_written) {
  switch (limit.limit_case()) {
    case v1::Limit::kAtMost:
      return limit.at_most() >= 0 ? absl::OkStatus() : Invalid(where, "must not be negative");
    case v1::Limit::kUnlimited:
      return limit.unlimited() ? absl::OkStatus() : Invalid(where, "unlimited = false says nothing; write a number");
    default:
      break;
  }
  return must_be_written ? Invalid(where, "must be written, if only as \"unlimited\"") : absl::OkStatus();
}

absl::StatusOr<std::vector<json::Pointer>> Pointers(std::string_view where,
                                                    const google::protobuf::RepeatedPtrField<std::string>& texts) {
  if (texts.size() > kPointersMax) return Invalid(where, keys::Cat("at most ", kPointersMax, " pointers"));
  std::vector<json::Pointer> pointers;
  for (const std::string& text : texts) {
    absl::StatusOr<json::Pointer> pointer = json::Pointer::Parse(text);
    if (!pointer.ok()) return Invalid(where, keys::Cat(pointer.status().message()));
    pointers.push_back(*std::move(pointer));
  }
  return pointers;
}

bool IsPattern(std::string_view tool) {
  if (tool == "*") return true;
  if (tool.ends_with('*')) tool.remove_suffix(1);
  return IsToolName(tool);
}

// Fills in what was left to its default and refuses what could not be enforced.
absl::Status CompleteGrant(std::string_view where, v1::GrantTerms& grant) {
  if (!IsPattern(grant.tool())) {
    return Invalid(where, "tool must be a name [A-Za-z0-9_.\\-/]{1,128}, or a prefix ending in *");
  }
  if (auto status = CheckLimit(keys::Cat(where, ", cap"), grant.cap(), true); !status.ok()) return status;
  if (auto status = CheckLimit(keys::Cat(where, ", budget"), grant.budget(), true); !status.ok()) return status;
  if (auto status = CheckLimit(keys::Cat(where, ", per_call"), grant.per_call(), false); !status.ok()) return status;
  if (grant.per_call().limit_case() == v1::Limit::LIMIT_NOT_SET) grant.mutable_per_call()->set_unlimited(true);

  v1::CostRule& cost = *grant.mutable_cost();
  switch (cost.rule_case()) {
    case v1::CostRule::kFixed:
      if (cost.fixed() < 0) return Invalid(where, "a fixed cost must not be negative");
      break;
    case v1::CostRule::kPointer:
      if (auto pointer = json::Pointer::Parse(cost.pointer()); !pointer.ok()) {
        return Invalid(where, keys::Cat("cost: ", keys::Cat(pointer.status().message())));
      }
      break;
    case v1::CostRule::kCaller:
      if (!cost.caller()) return Invalid(where, "cost: caller = false says nothing");
      break;
    default:
      cost.set_none(true);
      if (grant.budget().has_at_most()) {
        return Invalid(where, "a budget without a cost would limit nothing; write a cost, or budget \"unlimited\"");
      }
  }

  if (grant.effect() == v1::EFFECT_UNSPECIFIED) grant.set_effect(v1::WRITE);
  if (grant.intent_scope() == v1::INTENT_SCOPE_UNSPECIFIED) grant.set_intent_scope(v1::INTENT_SCOPE_SUBJECT);
  if (grant.on_tool_error() == v1::ON_TOOL_ERROR_UNSPECIFIED) grant.set_on_tool_error(v1::KEEP);
  if (grant.settle() == v1::SETTLE_UNSPECIFIED) grant.set_settle(v1::SETTLE_HOLD);
  if (grant.lease_ms() == 0) grant.set_lease_ms(120'000);
  if (grant.send_within_ms() == 0) grant.set_send_within_ms(std::min<int64_t>(10'000, grant.lease_ms()));
  if (grant.max_attempts() == 0) grant.set_max_attempts(5);
  if (!grant.has_repeat_window_ms()) grant.set_repeat_window_ms(600'000);
  if (!v1::Effect_IsValid(grant.effect()) || !v1::IntentScope_IsValid(grant.intent_scope()) ||
      !v1::OnToolError_IsValid(grant.on_tool_error()) || !v1::Settle_IsValid(grant.settle())) {
    return Invalid(where, "effect, intent_scope, on_tool_error or settle has a value that this server does not know");
  }
  if (grant.lease_ms() < kLeaseMin / 1000 || grant.lease_ms() > kLeaseMax / 1000) {
    return Invalid(where, "lease must be from 1 s to 24 h");
  }
  if (grant.send_within_ms() < 1 || grant.send_within_ms() > grant.lease_ms()) {
    return Invalid(where, "send_within must be positive and not longer than the lease");
  }
  if (grant.max_attempts() < 1 || grant.max_attempts() > kMaxAttemptsMost) {
    return Invalid(where, keys::Cat("max_attempts must be from 1 to ", kMaxAttemptsMost));
  }
  if (grant.repeat_window_ms() < 0 || grant.repeat_window_ms() > kRepeatWindowMaxMs) {
    return Invalid(where, "repeat_window must be from 0 to 366 days");
  }
  if (grant.intent_ignore_size() > 0 && grant.intent_fields_size() > 0) {
    return Invalid(where, "intent_ignore and intent_fields exclude each other");
  }
  if (!grant.arguments_schema().empty()) {
    const auto schema = json::Parse(grant.arguments_schema(), {.case_variants = json::CaseVariants::kAdmit});
    if (!schema.ok()) return Invalid(keys::Cat(where, ", arguments"), keys::Cat(schema.status().message()));
    grant.set_arguments_schema(json::Canonical(*schema));
  }
  return absl::OkStatus();
}

Limit FromLimit(const v1::Limit& limit) { return limit.has_at_most() ? Limit(limit.at_most()) : std::nullopt; }

absl::StatusOr<GrantTerms> FromGrant(std::string_view where, const v1::GrantTerms& grant) {
  GrantTerms terms;
  terms.tool = grant.tool();
  terms.prefix = grant.tool().ends_with('*');
  if (terms.prefix) terms.tool.pop_back();
  terms.cap = FromLimit(grant.cap());
  terms.budget = FromLimit(grant.budget());
  terms.per_call = FromLimit(grant.per_call());
  switch (grant.cost().rule_case()) {
    case v1::CostRule::kFixed:
      terms.cost = {CostRule::From::kFixed, grant.cost().fixed(), {}};
      break;
    case v1::CostRule::kCaller:
      terms.cost.from = CostRule::From::kCaller;
      break;
    case v1::CostRule::kPointer: {
      terms.cost.from = CostRule::From::kPointer;
      auto pointer = json::Pointer::Parse(grant.cost().pointer());
      if (!pointer.ok()) return Invalid(where, keys::Cat(pointer.status().message()));
      terms.cost.pointer = *std::move(pointer);
      break;
    }
    default:
      break;
  }
  if (!grant.arguments_schema().empty()) {
    const auto text = json::Parse(grant.arguments_schema(), {.case_variants = json::CaseVariants::kAdmit});
    if (!text.ok()) return Invalid(keys::Cat(where, ", arguments"), keys::Cat(text.status().message()));
    auto schema = schema::Compile(*text);
    if (!schema.ok()) return Invalid(keys::Cat(where, ", arguments"), keys::Cat(schema.status().message()));
    terms.arguments = *std::move(schema);
  }
  const bool only = grant.intent_fields_size() > 0;
  if (only || grant.intent_ignore_size() > 0) {
    const std::string what = keys::Cat(where, only ? ", intent_fields" : ", intent_ignore");
    const auto pointers = Pointers(what, only ? grant.intent_fields() : grant.intent_ignore());
    if (!pointers.ok()) return pointers.status();
    auto part = only ? json::Projection::Only(*pointers) : json::Projection::Without(*pointers);
    if (!part.ok()) return Invalid(what, keys::Cat(part.status().message()));
    terms.intent_part = *std::move(part);
  }
  terms.effect = grant.effect();
  terms.scope = grant.intent_scope();
  terms.repeat_window = grant.repeat_window_ms() * 1000;
  terms.charge_tool_errors = grant.on_tool_error() == v1::KEEP;
  terms.settle_reported = grant.settle() == v1::SETTLE_REPORTED;
  terms.lease = grant.lease_ms() * 1000;
  terms.send_within = grant.send_within_ms() * 1000;
  terms.max_attempts = grant.max_attempts();
  return terms;
}

}  // namespace

absl::StatusOr<v1::PermitTerms> TermsOfMint(const v1::MintRequest& request, Time now) {
  v1::PermitTerms terms;
  if (!IsKey(request.subject())) return Invalid("subject", "must be 1 to 255 bytes without control characters");
  if (auto unit = money::Unit::Parse(request.unit()); !unit.ok())
    return Invalid("unit", keys::Cat(unit.status().message()));
  if (auto status = CheckLimit("budget", request.budget(), true); !status.ok()) return status;
  if ((request.expires_at_us() != 0) == (request.expires_in_ms() != 0)) {
    return Invalid("expires_at, expires_in", "exactly one of them must be given");
  }
  if (request.expires_in_ms() < 0 || request.expires_in_ms() > 100 * 366 * kDay / 1000) {
    return Invalid("expires_in", "must be positive and at most a hundred years");
  }
  terms.set_subject(request.subject());
  terms.set_unit(request.unit());
  *terms.mutable_budget() = request.budget();
  terms.set_not_before_us(request.not_before_us() != 0 ? request.not_before_us() : now);
  terms.set_expires_at_us(request.expires_at_us() != 0 ? request.expires_at_us()
                                                       : now + request.expires_in_ms() * 1000);
  if (terms.not_before_us() < 0 || terms.expires_at_us() <= terms.not_before_us() || terms.expires_at_us() <= now) {
    return Invalid("expires_at", "must lie after not_before, and in the future");
  }
  if (request.grants_size() < 1 || request.grants_size() > kGrantsMax) {
    return Invalid("grants", keys::Cat("from 1 to ", kGrantsMax, " must be given"));
  }
  std::set<std::string_view> tools;
  for (int i = 0; i < request.grants_size(); ++i) {
    v1::GrantTerms& grant = *terms.add_grants();
    grant = request.grants(i);
    const std::string where = keys::Cat("grant ", i + 1, " (", grant.tool(), ")");
    if (auto status = CompleteGrant(where, grant); !status.ok()) return status;
    if (auto compiled = FromGrant(where, grant); !compiled.ok()) return compiled.status();
    if (!tools.insert(request.grants(i).tool()).second) return Invalid(where, "this tool is granted twice");
  }
  return terms;
}

absl::StatusOr<std::shared_ptr<const PermitTerms>> FromProto(const v1::PermitTerms& terms, const Id& permit_id,
                                                             int16_t shard, std::string_view tenant) {
  auto made = std::make_shared<PermitTerms>();
  made->permit_id = permit_id;
  made->shard = shard;
  made->tenant = std::string(tenant);
  made->subject = terms.subject();
  made->unit = terms.unit();
  made->budget = FromLimit(terms.budget());
  made->not_before = terms.not_before_us();
  made->expires_at = terms.expires_at_us();
  for (int i = 0; i < terms.grants_size(); ++i) {
    absl::StatusOr<GrantTerms> grant = FromGrant(keys::Cat("grant ", i + 1), terms.grants(i));
    if (!grant.ok()) return grant.status();
    made->grants.push_back(*std::move(grant));
  }
  return made;
}

int32_t GrantFor(const PermitTerms& terms, std::string_view tool) {
  int32_t best = 0;
  for (size_t i = 0; i < terms.grants.size(); ++i) {
    const GrantTerms& grant = terms.grants[i];
    if (!grant.prefix && grant.tool == tool) return static_cast<int32_t>(i + 1);
    if (!grant.prefix || !tool.starts_with(grant.tool)) continue;
    if (best == 0 || grant.tool.size() > terms.grants[best - 1].tool.size()) best = static_cast<int32_t>(i + 1);
  }
  return best;
}

absl::Status CheckSameScope(const PermitTerms& minted, const PermitTerms& live) {
  // Which grant is the best for a tool changes only at the names and prefixes written in either permit. A NUL, which no
  // tool name holds, stands for "any other name with this prefix".
  std::vector<std::string> tools;
  for (const PermitTerms* terms : {&minted, &live}) {
    for (const GrantTerms& grant : terms->grants) tools.push_back(grant.prefix ? grant.tool + '\0' : grant.tool);
  }
  for (const std::string& tool : tools) {
    const int32_t mine = GrantFor(minted, tool);
    const int32_t other = GrantFor(live, tool);
    if (mine == 0 || other == 0) continue;
    const GrantTerms& a = minted.grants[mine - 1];
    const GrantTerms& b = live.grants[other - 1];
    if (a.effect == v1::READ || b.effect == v1::READ || a.scope == b.scope) continue;
    return Invalid(keys::Cat("grant ", mine, " (", a.tool, a.prefix ? "*" : "", "), intent_scope"),
                   "a live permit of this tenant gives the tool another scope; live permits must agree");
  }
  return absl::OkStatus();
}

}  // namespace tally::decide
