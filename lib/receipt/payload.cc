#include "lib/receipt/payload.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>

#include <vector>

#include "lib/keys/text.h"

namespace tally::receipt {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool HasUnknownFields(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  if (!reflection.GetUnknownFields(message).empty()) return true;
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      if (HasUnknownFields(reflection.GetMessage(message, field))) return true;
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (HasUnknownFields(reflection.GetRepeatedMessage(message, field, i))) return true;
    }
  }
  return false;
}

}  // namespace

std::string Serialize(const v1::ReceiptPayload& payload) { return payload.SerializeAsString(); }

absl::StatusOr<v1::ReceiptPayload> Parse(std::string_view bytes) {
  const google::protobuf::LogSilencer quiet;  // it would write to stderr about text that is not UTF-8
  v1::ReceiptPayload out;
  if (bytes.size() > kMaxPayloadSize || !out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("the payload is not a receipt");
  }
  if (out.format_version() > kFormatVersion) {
    return absl::UnimplementedError(keys::Cat("the receipt has format version ", out.format_version(),
                                              "; this program knows ", kFormatVersion, ". Use a newer one"));
  }
  if (HasUnknownFields(out)) return absl::InvalidArgumentError("the payload has fields that its format does not know");
  if (Serialize(out) != bytes) {
    return absl::InvalidArgumentError("the payload is not in the one form that its format allows");
  }
  return out;
}

}  // namespace tally::receipt
