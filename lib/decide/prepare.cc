#include "lib/decide/prepare.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "lib/decide/terms.h"
#include "lib/json/canonical.h"
#include "lib/keys/hash.h"
#include "lib/keys/text.h"
#include "lib/money/amount.h"
#include "lib/schema/schema.h"

namespace tally::decide {
namespace {

std::string_view View(const Id& id) { return {reinterpret_cast<const char*>(id.data()), id.size()}; }
std::string_view View(const Hash& hash) { return {reinterpret_cast<const char*>(hash.data()), hash.size()}; }

// Parts that could run together are hashed behind their length.
std::string Sized(std::string_view part) {
  const auto size = static_cast<uint32_t>(part.size());
  std::string sized;
  for (int shift = 24; shift >= 0; shift -= 8) sized.push_back(static_cast<char>(size >> shift));
  sized.append(part);
  return sized;
}

constexpr std::string_view kKeyDomain{"tallystick/key/v1\0", 18};
constexpr std::string_view kArgumentsDomain{"tallystick/fp-arguments/v1\0", 27};
constexpr std::string_view kFpIntentDomain{"tallystick/fp-intent/v1\0", 24};
constexpr std::string_view kFingerprintDomain{"tallystick/fingerprint/v1\0", 26};
constexpr std::string_view kIntentDomain{"tallystick/intent/v1\0", 21};
constexpr std::string_view kExplicitDomain{"tallystick/explicit-intent/v1\0", 30};

// What an intent reaches: everything of the tenant (whose secret keys the hash), a subject, or a permit.
std::string ScopeBytes(const PermitTerms& terms, v1::IntentScope scope) {
  std::string bytes(1, static_cast<char>(scope));
  if (scope == v1::INTENT_SCOPE_SUBJECT) bytes += Sized(terms.subject);
  if (scope == v1::INTENT_SCOPE_PERMIT) bytes += View(terms.permit_id);
  return bytes;
}

struct Cost {
  Money amount = 0;
  std::string wrong;  // empty: none
};

Cost CostOf(const PermitTerms& terms, const GrantTerms& grant, const json::Value& arguments,
            std::optional<Money> amount) {
  Cost cost;
  switch (grant.cost.from) {
    case CostRule::From::kNone:
      return cost;
    case CostRule::From::kFixed:
      cost.amount = grant.cost.fixed;
      return cost;
    case CostRule::From::kCaller:
      if (!amount) return {0, "the grant takes the caller's amount, and none was given"};
      cost.amount = *amount;
      break;
    case CostRule::From::kPointer: {
      const std::string where = keys::Cat("the amount at ", grant.cost.pointer->ToString());
      const json::Value* value = json::Get(arguments, *grant.cost.pointer);
      if (value == nullptr) return {0, keys::Cat(where, " is missing")};
      absl::StatusOr<int64_t> parsed = absl::InvalidArgumentError("it is neither an integer nor a decimal string");
      if (const json::Number* number = value->AsNumber()) parsed = money::ParseMinorUnits(number->text());
      if (const std::string* text = value->AsString()) {
        const auto unit = money::Unit::Parse(terms.unit);
        parsed = unit.ok() ? money::ParseDecimal(*text, *unit) : unit.status();
      }
      if (!parsed.ok()) return {0, keys::Cat(where, ": ", parsed.status().message())};
      cost.amount = *parsed;
      break;
    }
  }
  if (cost.amount < 0) cost.wrong = "the amount is negative";
  return cost;
}

void Judge(const PermitTerms& terms, const json::Value& arguments, AuthorizeRequest& request) {
  Prepared& prepared = request.prepared;
  prepared.grant_index = GrantFor(terms, request.tool);
  if (prepared.grant_index == 0) return;
  const GrantTerms& grant = terms.grants[prepared.grant_index - 1];
  if (grant.arguments != nullptr) {
    const schema::Result result = grant.arguments->Validate(arguments);
    if (result.outcome == schema::Outcome::kUnenforceable) {
      prepared.check = Prepared::Check::kUnenforceable;
      prepared.detail = result.sentence;
      return;
    }
    if (result.outcome == schema::Outcome::kViolated) {
      prepared.check = Prepared::Check::kViolated;
      prepared.detail = keys::Cat(result.keyword, " at \"", result.pointer, "\": ", result.sentence);
      return;
    }
  }
  Cost cost = CostOf(terms, grant, arguments, request.amount);
  if (!cost.wrong.empty()) {
    prepared.check = Prepared::Check::kViolated;
    prepared.detail = std::move(cost.wrong);
    return;
  }
  prepared.amount = cost.amount;
}

}  // namespace

bool IsKey(std::string_view text) {
  return !text.empty() && text.size() <= 255 &&
         std::ranges::none_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool IsToolName(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-' || c == '/';
  });
}

Hash KeyHash(std::string_view tenant_secret, const Id& permit_id, std::string_view key) {
  return keys::HmacSha256(tenant_secret, {kKeyDomain, View(permit_id), key}).bytes;
}

absl::StatusOr<PreparedCall> Prepare(const PermitTerms& terms, std::string_view tenant_secret, std::string_view key,
                                     std::string_view tool, std::string_view arguments, std::optional<Money> amount,
                                     std::optional<std::string_view> intent, bool repeat) {
  auto malformed = [](std::string_view what) {
    return absl::InvalidArgumentError(keys::Cat(what, ". Nothing was done."));
  };
  if (!IsKey(key)) return malformed("key must be 1 to 255 bytes without control characters");
  if (!IsToolName(tool)) return malformed("tool must be [A-Za-z0-9_.\\-/]{1,128}");
  if (intent && !IsKey(*intent)) return malformed("intent must be 1 to 255 bytes without control characters");
  const absl::StatusOr<json::Value> value = json::Parse(arguments.empty() ? "{}" : arguments);
  if (!value.ok()) return malformed(keys::Cat("arguments: ", value.status().message()));

  PreparedCall prepared;
  prepared.canonical_arguments = json::Canonical(*value);
  AuthorizeRequest& request = prepared.request;
  request.permit_id = terms.permit_id;
  request.key = std::string(key);
  request.key_hash = KeyHash(tenant_secret, terms.permit_id, key);
  request.tool = std::string(tool);
  request.fp_arguments = keys::HmacSha256(tenant_secret, {kArgumentsDomain, prepared.canonical_arguments}).bytes;
  request.amount = amount;
  if (intent) request.fp_intent = keys::HmacSha256(tenant_secret, {kFpIntentDomain, *intent}).bytes;
  request.fingerprint_hash =
      keys::HmacSha256(tenant_secret, {kFingerprintDomain, Sized(tool), View(request.fp_arguments),
                                       amount ? Sized(keys::Cat(*amount)) : Sized(""),
                                       request.fp_intent ? View(*request.fp_intent) : std::string_view()})
          .bytes;
  request.repeat = repeat;
  Judge(terms, *value, request);
  if (request.prepared.grant_index == 0) return prepared;

  const GrantTerms& grant = terms.grants[request.prepared.grant_index - 1];
  if (grant.effect == v1::READ) return prepared;
  const std::string scope = ScopeBytes(terms, grant.scope);
  const std::string part = grant.intent_part ? grant.intent_part->Canonical(*value) : prepared.canonical_arguments;
  request.prepared.intent = keys::HmacSha256(tenant_secret, {kIntentDomain, scope, Sized(tool), part}).bytes;
  if (intent) {
    request.prepared.explicit_intent = keys::HmacSha256(tenant_secret, {kExplicitDomain, scope, *intent}).bytes;
  }
  return prepared;
}

}  // namespace tally::decide
