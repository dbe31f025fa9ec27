#include "lib/receipt/json.h"

#include <absl/time/time.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/keys/encoding.h"
#include "lib/keys/text.h"
#include "lib/keys/uuid.h"

namespace tally::receipt {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::ordered_json;

// The proto gives these to keep enumerators of one package apart.
constexpr std::array<std::string_view, 6> kPrefixes = {"RECEIPT_KIND_", "EFFECT_",       "ON_TOOL_ERROR_",
                                                       "SETTLE_",       "INTENT_SCOPE_", "ROLE_"};

std::string EnumName(const EnumValueDescriptor* value) {
  std::string_view name = value->name();
  for (std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  std::string out(name);
  if (value->type() == v1::EffectKnown_descriptor()) {
    std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  }
  return out;
}

bool IsUuid(const FieldDescriptor* field) {
  const std::string& name = field->name();
  return name == "permit_id" || name == "call_id" || name == "repeat_of_call_id";
}

// Numbers that mean something when they are 0.
bool AlwaysShown(const FieldDescriptor* field, bool of_call) {
  if (field->containing_type() == v1::Usage::descriptor() ||
      field->containing_type() == v1::ClosingCounts::descriptor()) {
    return true;
  }
  switch (field->number()) {
    case v1::ReceiptPayload::kSequenceFieldNumber:
      return field->containing_type() == v1::ReceiptPayload::descriptor();
    case v1::ReceiptPayload::kAttemptNumberFieldNumber:
    case v1::ReceiptPayload::kGrantIndexFieldNumber:
    case v1::ReceiptPayload::kHeldFieldNumber:
    case v1::ReceiptPayload::kChargedFieldNumber:
    case v1::ReceiptPayload::kOverrunFieldNumber:
    case v1::ReceiptPayload::kSlotOverrunFieldNumber:
      return of_call && field->containing_type() == v1::ReceiptPayload::descriptor();
    default:
      return false;
  }
}

Json ToJson(const Message& message, bool of_call);

Json Scalar(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection& r = *message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? r.GetRepeatedInt32(message, field, index) : r.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? r.GetRepeatedInt64(message, field, index) : r.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return many ? r.GetRepeatedUInt32(message, field, index) : r.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return many ? r.GetRepeatedUInt64(message, field, index) : r.GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return many ? r.GetRepeatedBool(message, field, index) : r.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumName(many ? r.GetRepeatedEnum(message, field, index) : r.GetEnum(message, field));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string value = many ? r.GetRepeatedString(message, field, index) : r.GetString(message, field);
      if (field->type() != FieldDescriptor::TYPE_BYTES) return value;
      return IsUuid(field) ? keys::UuidText(value) : keys::HexEncode(value);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(many ? r.GetRepeatedMessage(message, field, index) : r.GetMessage(message, field), false);
    default:
      return nullptr;  // the format has no floats
  }
}

Json LimitToJson(const v1::Limit& limit) {
  if (limit.has_at_most()) return limit.at_most();
  return limit.unlimited() ? Json("unlimited") : Json(nullptr);
}

void Add(Json& out, const Message& message, const FieldDescriptor* field) {
  const std::string& name = field->name();
  if (field->is_repeated()) {
    out[name] = Json::array();
    for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
      out[name].push_back(Scalar(message, field, i));
    }
    return;
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 && name.ends_with("_us")) {
    out[name.substr(0, name.size() - 3)] = Rfc3339(message.GetReflection()->GetInt64(message, field));
  }
  out[name] = Scalar(message, field, 0);
}

Json ToJson(const Message& message, bool of_call) {
  if (message.GetDescriptor() == v1::Limit::descriptor()) return LimitToJson(static_cast<const v1::Limit&>(message));
  Json out = Json::object();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const Reflection& r = *message.GetReflection();
    const bool set = field->is_repeated() ? r.FieldSize(message, field) > 0 : r.HasField(message, field);
    if (set || AlwaysShown(field, of_call)) Add(out, message, field);
  }
  return out;
}

bool IsCallKind(v1::ReceiptKind kind) {
  return (kind >= v1::CALL_ALLOWED && kind <= v1::ATTEMPT_VOIDED) || kind == v1::CALL_CONTRADICTED ||
         kind == v1::CALL_CORRECTED;
}

}  // namespace

nlohmann::ordered_json ToJson(const v1::ReceiptPayload& payload, std::string_view receipt_id) {
  Json out = {{"receipt_id", keys::HexEncode(receipt_id)}};
  out.update(ToJson(payload, IsCallKind(payload.kind())));
  return out;
}

std::string Rfc3339(int64_t time_us) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(time_us), absl::UTCTimeZone());
}

std::string KindName(v1::ReceiptKind kind) {
  const EnumValueDescriptor* value = v1::ReceiptKind_descriptor()->FindValueByNumber(kind);
  return value == nullptr ? keys::Cat("kind ", static_cast<int>(kind)) : EnumName(value);
}

std::string EffectKnownName(v1::EffectKnown effect) {
  const EnumValueDescriptor* value = v1::EffectKnown_descriptor()->FindValueByNumber(effect);
  return value == nullptr ? keys::Cat("effect ", static_cast<int>(effect)) : EnumName(value);
}

}  // namespace tally::receipt
