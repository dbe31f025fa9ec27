#include "gateway/mcp/tool_call.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "lib/json/utf8.h"

namespace tally::mcp {
namespace {

constexpr size_t kKeyBytesMax = 255;

RpcError Refuse(std::string_view what) {
  return {code::kInvalidParams, std::string(what).append(" Nothing was done."), ""};
}

// Addressed to this gateway, or renewed by it for the next server. Other names of the protocol's, those of extensions
// among them, are the caller's affair.
bool IsOfThisHop(std::string_view name) {
  return name.starts_with(meta::kOurPrefix) || name == meta::kProgressToken || name == meta::kProtocolVersion ||
         name == meta::kClientInfo || name == meta::kClientCapabilities;
}

// A structured field's string (RFC 8941 section 3.3.3), which the header's draft standard asks for, or the bare value
// that most clients send.
std::optional<std::string> KeyOfHeader(std::string_view header) {
  if (!header.starts_with('"')) return std::string(header);
  if (header.size() < 2 || !header.ends_with('"')) return std::nullopt;
  header = header.substr(1, header.size() - 2);
  std::string key;
  for (size_t at = 0; at < header.size(); ++at) {
    if (header[at] == '"') return std::nullopt;
    if (header[at] == '\\' && (++at == header.size() || (header[at] != '"' && header[at] != '\\'))) return std::nullopt;
    key.push_back(header[at]);
  }
  return key;
}

// Takes another place's key. False if it is none, or not the one that was found before.
bool TakeKey(const std::optional<std::string>& found, std::optional<std::string>* key, std::string* why) {
  if (!found || !IsIdempotencyKey(*found)) {
    *why = "An idempotency key must be a string of 1 to 255 bytes without control characters.";
    return false;
  }
  if (*key && **key != *found) {
    *why =
        "The idempotency keys in _meta[\"dev.tallystick/idempotency-key\"], params.idempotencyKey and the header "
        "Idempotency-Key differ. Send one, or the same everywhere.";
    return false;
  }
  *key = found;
  return true;
}

// What of _meta is addressed to this gateway. False with *why if it cannot be read.
bool ReadMeta(const RawObject& meta, ToolCall* call, std::string* why) {
  if (const std::string_view* key = meta.Find(meta::kKey)) {
    if (!TakeKey(StringOf(*key), &call->key, why)) return false;
  }
  if (const std::string_view* repeat = meta.Find(meta::kRepeat)) {
    const auto value = BoolOf(*repeat);
    *why = "_meta[\"dev.tallystick/repeat\"] must be true or false.";
    if (!value) return false;
    call->repeat = *value;
  }
  if (const std::string_view* amount = meta.Find(meta::kAmount)) {
    call->amount = IntegerOf(*amount);
    *why = "_meta[\"dev.tallystick/amount\"] must be an integer of minor units, not negative.";
    if (!call->amount || *call->amount < 0) return false;
  }
  if (const std::string_view* intent = meta.Find(meta::kIntent)) {
    call->intent = StringOf(*intent);
    *why = "_meta[\"dev.tallystick/intent\"] must be a string of 1 to 255 bytes without control characters.";
    if (!call->intent || !IsIdempotencyKey(*call->intent)) return false;
  }
  if (const std::string_view* token = meta.Find(meta::kProgressToken)) call->progress_token = *token;
  return true;
}

}  // namespace

bool IsIdempotencyKey(std::string_view key) {
  if (key.empty() || key.size() > kKeyBytesMax) return false;
  for (std::string_view rest = key; !rest.empty();) {
    const size_t length = json::Utf8SequenceLength(rest);
    if (length == 0) return false;
    const char32_t c = json::TakeCodePoint(&rest);
    if (c < 0x20 || c == 0x7F) return false;
  }
  return true;
}

std::string MetaToForward(std::string_view raw_meta) {
  const auto object = RawObject::Parse(raw_meta);
  if (!object.ok() || std::ranges::all_of(object->members(), [](const Member& m) { return IsOfThisHop(m.name); })) {
    return "";
  }
  return WithoutMembers(raw_meta, IsOfThisHop);
}

std::variant<ToolCall, RpcError> ParseToolCall(std::string_view raw_params, std::span<const std::string> key_headers) {
  const auto params = RawObject::Parse(raw_params);
  if (!params.ok()) return Refuse("tools/call needs an object params with the tool's name.");
  ToolCall call;
  const std::string_view* name = params->Find("name");
  auto text = name == nullptr ? std::nullopt : StringOf(*name);
  if (!text) return Refuse("tools/call needs the tool's name, a string, in params.name.");
  call.name = *std::move(text);
  if (const std::string_view* arguments = params->Find("arguments")) {
    if (!IsObject(*arguments)) return Refuse("params.arguments must be an object.");
    if (arguments->size() > kArgumentsBytesMax) {
      return Refuse("The arguments have " + std::to_string(arguments->size()) + " bytes; at most 262144 are taken.");
    }
    call.arguments = *arguments;
  }
  std::string why;
  if (const std::string_view* raw_meta = params->Find("_meta")) {
    const auto meta = RawObject::Parse(*raw_meta);
    if (!meta.ok()) return Refuse("params._meta must be an object.");
    if (!ReadMeta(*meta, &call, &why)) return Refuse(why);
    call.meta = MetaToForward(*raw_meta);
  }
  if (const std::string_view* key = params->Find("idempotencyKey")) {
    if (!TakeKey(StringOf(*key), &call.key, &why)) return Refuse(why);
  }
  for (const std::string& header : key_headers) {
    if (!TakeKey(KeyOfHeader(header), &call.key, &why)) return Refuse(why);
  }
  if (const std::string_view* responses = params->Find("inputResponses")) call.input_responses = *responses;
  if (const std::string_view* state = params->Find("requestState")) call.request_state = *state;
  return call;
}

}  // namespace tally::mcp
