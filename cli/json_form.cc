#include "cli/json_form.h"

#include <algorithm>
#include <array>

#include "lib/client/error_map.h"
#include "lib/keys/encoding.h"
#include "lib/keys/utf8.h"
#include "lib/keys/uuid.h"
#include "lib/receipt/json.h"
#include "tally/v1/calls.pb.h"
#include "tally/v1/receipt.pb.h"

namespace tally::cli {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kDepthMax = 128;

constexpr std::array<std::string_view, 10> kPrefixes = {"INTENT_SCOPE_", "EFFECT_KNOWN_", "EFFECT_",  "ON_TOOL_ERROR_",
                                                        "SETTLE_",       "ROLE_",         "OUTCOME_", "VERDICT_",
                                                        "KIND_",         "CLOSER_"};

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

Json EnumJson(const EnumValueDescriptor& value) {
  std::string_view name = value.name();
  if (value.number() == 0) return nullptr;
  if (value.type() == v1::Kind_descriptor()) return client::Info(static_cast<v1::Kind>(value.number())).name;
  if (value.type() == v1::Retry_descriptor()) return RetryName(static_cast<v1::Retry>(value.number()));
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  }
  return name;
}

bool IsBody(const FieldDescriptor& field) {
  if (field.type() != FieldDescriptor::TYPE_BYTES) return false;
  const std::string& name = field.name();
  return name == "arguments" || name == "result" || name == "partial_answer" || name == "body";
}

// Recursion follows the brackets of a body, so their depth is bounded before it is parsed.
bool Shallow(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest <= kDepthMax;
}

Json LimitJson(const v1::Limit& limit) {
  if (limit.limit_case() == v1::Limit::kAtMost) return limit.at_most();
  return limit.unlimited() ? Json("unlimited") : Json(nullptr);
}

Json Scalar(const Message& message, const FieldDescriptor& field, int index) {
  const Reflection& r = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? r.GetRepeatedInt32(message, &field, index) : r.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? r.GetRepeatedInt64(message, &field, index) : r.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return many ? r.GetRepeatedUInt32(message, &field, index) : r.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return many ? r.GetRepeatedUInt64(message, &field, index) : r.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return many ? r.GetRepeatedBool(message, &field, index) : r.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = many ? r.GetRepeatedEnumValue(message, &field, index) : r.GetEnumValue(message, &field);
      const EnumValueDescriptor* value = field.enum_type()->FindValueByNumber(number);
      return value != nullptr ? EnumJson(*value) : Json(number);
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string value = many ? r.GetRepeatedString(message, &field, index) : r.GetString(message, &field);
      return field.type() == FieldDescriptor::TYPE_BYTES ? keys::HexEncode(value) : value;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(many ? r.GetRepeatedMessage(message, &field, index) : r.GetMessage(message, &field));
    default:
      return nullptr;  // the protos have no floats
  }
}

void AddRefusal(const v1::Refusal* refusal, Json* out) {
  (*out)["kind"] = nullptr;
  (*out)["code"] = nullptr;
  (*out)["message"] = nullptr;
  (*out)["retry"] = nullptr;
  if (refusal == nullptr) return;
  const client::Failure failure = client::FromRefusal(*refusal);
  (*out)["kind"] = failure.info().name;
  (*out)["code"] = failure.code;
  (*out)["message"] = failure.message;
  (*out)["retry"] = RetryName(failure.retry);
}

void AddReceiptIds(const Message& message, const FieldDescriptor& field, Json* out) {
  Json ids = Json::array();
  for (int i = 0; i < message.GetReflection()->FieldSize(message, &field); ++i) {
    const auto& receipt =
        static_cast<const v1::Receipt&>(message.GetReflection()->GetRepeatedMessage(message, &field, i));
    ids.push_back(keys::HexEncode(receipt.receipt_id()));
  }
  (*out)["receipt_ids"] = std::move(ids);
}

void AddField(const Message& message, const FieldDescriptor& field, Json* out) {
  const Reflection& r = *message.GetReflection();
  const std::string& name = field.name();
  const google::protobuf::Descriptor* type =
      field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE ? field.message_type() : nullptr;
  if (type == v1::Refusal::descriptor()) {
    const bool there = r.HasField(message, &field);
    AddRefusal(there ? &static_cast<const v1::Refusal&>(r.GetMessage(message, &field)) : nullptr, out);
  } else if (field.is_repeated() && type == v1::Receipt::descriptor()) {
    AddReceiptIds(message, field, out);
  } else if (field.is_repeated()) {
    Json array = Json::array();
    for (int i = 0; i < r.FieldSize(message, &field); ++i) array.push_back(Scalar(message, field, i));
    (*out)[name] = std::move(array);
  } else if (IsBody(field)) {
    const std::string bytes = r.GetString(message, &field);
    const FieldDescriptor* has = field.containing_type()->FindFieldByName("has_" + name);
    AddBody(name, bytes, has != nullptr ? r.GetBool(message, has) : !bytes.empty(), out);
  } else if (field.real_containing_oneof() != nullptr) {
    if (r.HasField(message, &field)) (*out)[name] = Scalar(message, field, 0);
  } else if (field.has_presence() && !r.HasField(message, &field)) {
    (*out)[name] = nullptr;
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 && name.ends_with("_us")) {
    const int64_t us = r.GetInt64(message, &field);
    (*out)[name.substr(0, name.size() - 3)] = us == 0 ? Json(nullptr) : Json(receipt::Rfc3339(us));
    (*out)[name] = us;
  } else {
    (*out)[name] = Scalar(message, field, 0);
  }
}

}  // namespace

Json ToJson(const Message& message) {
  if (message.GetDescriptor() == v1::Limit::descriptor()) return LimitJson(static_cast<const v1::Limit&>(message));
  Json out = Json::object();
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) AddField(message, *type.field(i), &out);
  return out;
}

void AddBody(std::string_view name, std::string_view bytes, bool present, Json* out) {
  const std::string key(name);
  (*out)[key] = nullptr;
  (*out)[key + "_base64"] = nullptr;
  if (!present) return;
  (*out)[key + "_base64"] = keys::Base64Encode(bytes);
  if (Shallow(bytes)) {
    Json parsed = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_discarded()) {
      (*out)[key] = std::move(parsed);
      return;
    }
  }
  if (keys::IsUtf8(bytes)) (*out)[key] = bytes;
}

std::string_view HappenedName(v1::Kind kind) {
  switch (client::Info(kind).happened) {
    case client::Happened::kNo:
      return "no";
    case client::Happened::kNothingNew:
      return "nothing_new";
    case client::Happened::kMaybe:
      return "maybe";
    case client::Happened::kEarlier:
      return "earlier";
    case client::Happened::kAsRecorded:
      return "as_recorded";
    case client::Happened::kUnknown:
      return "unknown";
  }
  return "maybe";
}

std::string RetryName(v1::Retry retry) {
  constexpr std::string_view kPrefix = "RETRY_";
  const std::string& name = v1::Retry_Name(retry);
  return name.starts_with(kPrefix) ? Lower(name.substr(kPrefix.size())) : "never";
}

std::string Document(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace tally::cli
