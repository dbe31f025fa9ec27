#include "lib/receipt/form.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <bitset>
#include <initializer_list>
#include <vector>

#include "lib/keys/hash.h"
#include "lib/keys/public_key.h"
#include "lib/keys/text.h"
#include "lib/keys/uuid.h"
#include "lib/receipt/json.h"
#include "lib/receipt/payload.h"

namespace tally::receipt {
namespace {

using keys::Cat;
using P = v1::ReceiptPayload;
using Fields = std::bitset<64>;  // by field number

Fields Of(std::initializer_list<int> numbers) {
  Fields out;
  for (int number : numbers) out.set(static_cast<size_t>(number));
  return out;
}

// ---- The table of kinds ----

struct Form {
  Fields must;
  Fields may;
};

Fields Head() {
  return Of({P::kFormatVersionFieldNumber, P::kKindFieldNumber, P::kIssuerFieldNumber, P::kKeyIdFieldNumber,
             P::kTenantFieldNumber, P::kSequenceFieldNumber, P::kTimeUsFieldNumber});
}
Fields Speaker() { return Of({P::kPrincipalIdFieldNumber, P::kPrincipalRoleFieldNumber}); }
Fields Permit() { return Head() | Of({P::kPermitIdFieldNumber}); }
Fields PermitMoney() { return Of({P::kUnitFieldNumber, P::kPermitBudgetFieldNumber}); }
Fields Call() {
  return Permit() | PermitMoney() |
         Of({P::kCallIdFieldNumber, P::kToolFieldNumber, P::kEffectKnownFieldNumber, P::kStateFieldNumber});
}
Fields Grant() {
  return Of({P::kGrantIndexFieldNumber, P::kEffectFieldNumber, P::kCapFieldNumber, P::kToolBudgetFieldNumber});
}
Fields Intents() { return Of({P::kIntentHashFieldNumber, P::kExplicitIntentHashFieldNumber}); }
Fields Asked() {
  return Of({P::kKeyHashFieldNumber, P::kFingerprintHashFieldNumber, P::kArgumentsCommitmentFieldNumber,
             P::kDispositionFieldNumber});
}
Fields Attempt() {
  return Of({P::kAttemptNumberFieldNumber, P::kAttemptIdHashFieldNumber, P::kAttemptStateFieldNumber,
             P::kLeaseEndUsFieldNumber});
}
Fields AttemptMay() {
  return Intents() |
         Of({P::kHeldFieldNumber, P::kChargedFieldNumber, P::kSentAtUsFieldNumber, P::kUndeliveredFieldNumber});
}
Fields Overrun() { return Of({P::kOverrunFieldNumber, P::kSlotOverrunFieldNumber}); }
Fields Result() { return Of({P::kResultCommitmentFieldNumber, P::kResultSizeFieldNumber}); }
Fields Evidence() { return Of({P::kEvidenceCommitmentFieldNumber, P::kEvidenceSourceFieldNumber}); }
Fields Supersedes() { return Of({P::kSupersedesFieldNumber}); }
Fields Code() { return Of({P::kCodeFieldNumber}); }

// An attempt's later receipts: who, which attempt, what is held and charged now.
Fields About() { return Call() | Grant() | Attempt(); }

std::optional<Form> FormOf(v1::ReceiptKind kind) {
  switch (kind) {
    case v1::PERMIT_MINTED:
      return Form{Permit() | Speaker() | Of({P::kUnitFieldNumber, P::kPermitTermsFieldNumber}), PermitMoney()};
    case v1::PERMIT_REVOKED:
    case v1::PERMIT_CLOSING:
      return Form{Permit() | PermitMoney() | Speaker(), {}};
    case v1::PERMIT_CLOSED:
      return Form{Permit() | PermitMoney() | Of({P::kClosingFieldNumber}), Speaker()};
    case v1::CALL_ALLOWED:
      return Form{About() | Asked() | Speaker(), AttemptMay() | Of({P::kSendWithinMsFieldNumber})};
    case v1::CALL_DENIED:
      return Form{Call() | Asked() | Speaker() | Code(), Grant() | Intents()};
    case v1::CALL_REPEATED:
      return Form{
          Call() | Grant() | Asked() | Speaker() | Of({P::kIntentHashFieldNumber, P::kRepeatOfCallIdFieldNumber}),
          Intents()};
    case v1::CALL_RELEASED:
      return Form{About() | Speaker() | Supersedes(), AttemptMay()};
    case v1::CALL_SUCCEEDED:
      return Form{About() | Speaker() | Supersedes(), AttemptMay() | Result() | Overrun()};
    case v1::CALL_TOOL_ERROR:
      return Form{About() | Supersedes(), AttemptMay() | Speaker() | Result() | Overrun() | Code()};
    case v1::CALL_UNCERTAIN:
      return Form{About() | Code(), AttemptMay() | Speaker()};
    case v1::CALL_ESCALATED:
      return Form{About() | Speaker(), AttemptMay() | Evidence() | Result() | Code()};
    case v1::CALL_RESOLVED_HAPPENED:
    case v1::CALL_RESOLVED_NOT_HAPPENED:
    case v1::CALL_CORRECTED:
      return Form{About() | Speaker() | Supersedes() | Evidence(), AttemptMay() | Result() | Overrun() | Code()};
    case v1::CALL_CONTRADICTED:
      return Form{About() | Speaker() | Supersedes(), AttemptMay() | Result() | Overrun() | Code()};
    case v1::CALL_REPLAY_SENT:
      return Form{About() | Speaker(), AttemptMay() | Evidence() | Code()};
    case v1::ATTEMPT_VOIDED:
      return Form{Permit() | PermitMoney() | Speaker() |
                      Of({P::kAttemptIdHashFieldNumber, P::kAttemptStateFieldNumber, P::kEffectKnownFieldNumber}),
                  Of({P::kKeyHashFieldNumber})};
    case v1::DENIAL_LIMIT:
      return Form{Permit() | PermitMoney() | Speaker() | Of({P::kEffectKnownFieldNumber}), Code()};
    case v1::RECOVERED:  // on a permit's chain or on the tenant's
      return Form{Head(), Speaker() | PermitMoney() | Code() | Evidence() | Of({P::kPermitIdFieldNumber})};
    case v1::PERMIT_HEAD:
      return Form{Permit() | Of({P::kPreviousReceiptIdFieldNumber}), PermitMoney() | Speaker()};
    case v1::TENANT_CREATED:
      return Form{Head(), Speaker()};
    case v1::PRINCIPAL_CREATED:
    case v1::PRINCIPAL_DISABLED:
      return Form{Head() | Of({P::kPrincipalFieldNumber}), Speaker()};
    case v1::KEY_ADDED:
    case v1::KEY_RETIRED:
      return Form{Head() | Of({P::kKeyFieldNumber}), Speaker()};
    default:
      return std::nullopt;
  }
}

std::string NameOf(size_t number) { return P::descriptor()->FindFieldByNumber(static_cast<int>(number))->name(); }

Fault PresenceFault(const P& payload) {
  const auto form = FormOf(payload.kind());
  if (!form) return Cat("its kind is not one that this format knows (", static_cast<int>(payload.kind()), ")");
  std::vector<const google::protobuf::FieldDescriptor*> set;
  payload.GetReflection()->ListFields(payload, &set);
  Fields present;
  for (const auto* field : set) present.set(static_cast<size_t>(field->number()));

  Fields must = form->must;
  Fields may = form->may;
  (payload.sequence() > 1 ? must : may).set(P::kPreviousReceiptIdFieldNumber);
  if (payload.kind() == v1::CALL_DENIED && payload.grant_index() != 0) must |= Grant();
  // An intent belongs to every WRITE that was tried, and to no READ.
  if (payload.attempt_number() != 0 && payload.effect() == v1::WRITE) must.set(P::kIntentHashFieldNumber);
  if (payload.effect() == v1::READ) may &= ~Intents();
  const Fields missing = must & ~present;
  const Fields stray = present & ~must & ~may;
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i]) return Cat("a ", KindName(payload.kind()), " without ", NameOf(i));
    if (stray[i]) return Cat("a ", KindName(payload.kind()), " with ", NameOf(i));
  }
  return std::nullopt;
}

// ---- What each field may hold ----

bool IsDigest(const std::string& bytes) { return bytes.empty() || bytes.size() == keys::kDigestSize; }
bool IsId(const std::string& bytes) { return bytes.empty() || keys::IsUuid7(bytes); }

Fault LengthFault(const P& p) {
  const std::pair<const char*, const std::string*> digests[] = {
      {"key_id", &p.key_id()},
      {"previous_receipt_id", &p.previous_receipt_id()},
      {"attempt_id_hash", &p.attempt_id_hash()},
      {"key_hash", &p.key_hash()},
      {"fingerprint_hash", &p.fingerprint_hash()},
      {"intent_hash", &p.intent_hash()},
      {"explicit_intent_hash", &p.explicit_intent_hash()},
      {"arguments_commitment", &p.arguments_commitment()},
      {"supersedes", &p.supersedes()},
      {"result_commitment", &p.result_commitment()},
      {"evidence_commitment", &p.evidence_commitment()},
      {"token_hash", &p.permit_terms().token_hash()},
      {"certificate_sha256", &p.principal().certificate_sha256()},
      {"key.key_id", &p.key().key_id()}};
  for (const auto& [name, value] : digests) {
    if (!IsDigest(*value)) return Cat("its ", name, " has ", value->size(), " bytes instead of 32");
  }
  const std::pair<const char*, const std::string*> ids[] = {
      {"permit_id", &p.permit_id()}, {"call_id", &p.call_id()}, {"repeat_of_call_id", &p.repeat_of_call_id()}};
  for (const auto& [name, value] : ids) {
    if (!IsId(*value)) return Cat("its ", name, " is not a UUIDv7");
  }
  if (!keys::CheckKeyName(p.issuer()).ok()) return "its issuer is not a key name";
  return std::nullopt;
}

Fault NumberFault(const P& p) {
  const std::pair<const char*, int64_t> numbers[] = {{"sequence", p.sequence() - 1},
                                                     {"time_us", p.time_us()},
                                                     {"attempt_number", p.attempt_number()},
                                                     {"grant_index", p.grant_index()},
                                                     {"held", p.held()},
                                                     {"charged", p.charged()},
                                                     {"overrun", p.overrun()},
                                                     {"slot_overrun", p.slot_overrun()},
                                                     {"result_size", p.result_size()},
                                                     {"lease_end_us", p.lease_end_us()},
                                                     {"sent_at_us", p.sent_at_us()},
                                                     {"send_within_ms", p.send_within_ms()}};
  for (const auto& [name, value] : numbers) {
    if (value < 0) return Cat("its ", name, " is below what it can be");
  }
  if (p.sequence() == 1 && p.kind() != v1::PERMIT_HEAD && !p.previous_receipt_id().empty()) {
    return "the first receipt of a chain names a previous one";
  }
  return std::nullopt;
}

Fault EnumFault(const P& p) {
  if (!v1::Effect_IsValid(p.effect()) || !v1::Disposition_IsValid(p.disposition()) ||
      !v1::EffectKnown_IsValid(p.effect_known()) || !v1::CallState_IsValid(p.state()) ||
      !v1::CallState_IsValid(p.attempt_state()) || !v1::Role_IsValid(p.principal_role())) {
    return "one of its words (effect, disposition, effect_known, state, attempt_state, principal_role) is not one that "
           "this format knows";
  }
  return std::nullopt;
}

Fault LimitFault(const v1::Limit& limit) {
  const bool written = limit.has_at_most() ? limit.at_most() >= 0 : limit.unlimited();
  return written ? Fault() : "one of its limits is neither a number from 0 up nor unlimited";
}

Fault UsageFault(const char* name, const v1::Usage& usage, bool is_cap) {
  if (auto fault = LimitFault(usage.limit())) return fault;
  if (usage.used() < 0 || usage.held() < 0 || usage.spent() < 0) return Cat("its ", name, " has numbers below 0");
  if (is_cap ? usage.held() != 0 || usage.spent() != 0 : usage.used() != 0) {
    return Cat("its ", name, " has numbers of another kind of usage");
  }
  int64_t taken = usage.used();
  if (!is_cap && __builtin_add_overflow(usage.held(), usage.spent(), &taken)) return Cat("its ", name, " overflows");
  const int64_t over = usage.limit().has_at_most() ? std::max<int64_t>(0, taken - usage.limit().at_most()) : 0;
  if (usage.overrun() != over) return Cat("its ", name, " says overrun ", usage.overrun(), " where ", over, " is over");
  return std::nullopt;
}

Fault UsagesFault(const P& p) {
  if (p.has_cap()) {
    if (auto fault = UsageFault("cap", p.cap(), true)) return fault;
  }
  if (p.has_tool_budget()) {
    if (auto fault = UsageFault("tool_budget", p.tool_budget(), false)) return fault;
  }
  if (p.has_permit_budget()) {
    if (auto fault = UsageFault("permit_budget", p.permit_budget(), false)) return fault;
  }
  return std::nullopt;
}

Fault GrantFault(const v1::GrantTerms& grant) {
  const std::string& tool = grant.tool();
  const size_t star = tool.find('*');
  if (tool.empty() || (star != std::string::npos && star + 1 != tool.size()))
    return "a grant's tool is not a name or prefix";
  for (const v1::Limit* limit : {&grant.cap(), &grant.budget()}) {
    if (auto fault = LimitFault(*limit)) return fault;
  }
  if (grant.has_per_call()) {
    if (auto fault = LimitFault(grant.per_call())) return fault;
  }
  if (grant.effect() != v1::WRITE && grant.effect() != v1::READ) return "a grant says neither WRITE nor READ";
  if (!v1::IntentScope_IsValid(grant.intent_scope()) || !v1::OnToolError_IsValid(grant.on_tool_error()) ||
      !v1::Settle_IsValid(grant.settle())) {
    return "a grant has a word that this format does not know";
  }
  if (grant.lease_ms() <= 0 || grant.send_within_ms() < 0 || grant.max_attempts() < 1 || grant.repeat_window_ms() < 0) {
    return "a grant's lease, send window, attempts or repeat window are below what they can be";
  }
  return std::nullopt;
}

Fault TermsFault(const P& p) {
  const v1::PermitTerms& terms = p.permit_terms();
  if (terms.subject().empty()) return "its terms name no subject";
  if (terms.unit().empty() || terms.unit() != p.unit()) return "its terms are in another unit than the receipt";
  if (auto fault = LimitFault(terms.budget())) return fault;
  if (terms.expires_at_us() <= terms.not_before_us()) return "its terms end before they begin";
  if (terms.grants().empty()) return "its terms grant nothing";
  for (const v1::GrantTerms& grant : terms.grants()) {
    if (auto fault = GrantFault(grant)) return fault;
  }
  return std::nullopt;
}

}  // namespace

Fault FormFault(const v1::ReceiptPayload& payload) {
  if (payload.format_version() != kFormatVersion) return Cat("its format version is ", payload.format_version());
  for (auto check : {PresenceFault, LengthFault, NumberFault, EnumFault, UsagesFault}) {
    if (auto fault = check(payload)) return fault;
  }
  return payload.kind() == v1::PERMIT_MINTED ? TermsFault(payload) : std::nullopt;
}

}  // namespace tally::receipt
