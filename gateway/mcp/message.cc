#include "gateway/mcp/message.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "lib/json/fold.h"
#include "lib/json/parse.h"

namespace tally::mcp {
namespace {

constexpr std::string_view kNothingDone = " Nothing was done.";

Malformed Refuse(int64_t code, std::string_view what, std::string_view id = "null") {
  return {code, std::string(what).append(kNothingDone), std::string(id)};
}

Malformed Invalid(std::string_view what, std::string_view id) { return Refuse(code::kInvalidRequest, what, id); }

std::string_view TrimSpace(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : text.substr(begin);
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Strings and integers; a fraction or an exponent makes a number no id, whatever its value.
bool IsId(std::string_view raw) {
  if (raw.size() > kIdBytesMax) return false;
  return raw.starts_with('"') || IsDigits(raw.starts_with('-') ? raw.substr(1) : raw);
}

// The id of a client's message that is JSON and yet refused, so that its request is answered and does not wait: only if
// no reader could take another member for it.
std::string IdToAnswer(const RawObject& object) {
  std::string id = "null";
  for (const Member& member : object.members()) {
    if (json::FoldCompare(member.name, "id") != 0) continue;
    if (id != "null" || member.name != "id" || !IsId(member.value)) return "null";
    id = member.value;
  }
  return id;
}

std::optional<Malformed> CheckText(std::string_view text, From from, size_t bytes_max) {
  if (text.size() > bytes_max) {
    return Refuse(code::kInvalidRequest, "The message has " + std::to_string(text.size()) + " bytes; at most " +
                                             std::to_string(bytes_max) + " are taken.");
  }
  const std::string_view trimmed = TrimSpace(text);
  if (trimmed.empty()) return Refuse(code::kParseError, "The message is empty.");
  if (trimmed.starts_with('[')) {
    return Refuse(code::kInvalidRequest, "Batches are not taken: send one JSON-RPC message at a time.");
  }
  if (from == From::kUpstream) return std::nullopt;  // RawObject::Parse looks at all of it
  const auto value = json::Parse(text, {.bytes_max = bytes_max, .depth_max = kClientDepthMax});
  if (value.ok()) return std::nullopt;
  const std::string why = std::string(value.status().message()) + ".";
  const auto object = RawObject::Parse(text);
  return object.ok() ? Invalid(why, IdToAnswer(*object)) : Refuse(code::kParseError, why);
}

// Params and results are objects in MCP. Read here, so that equal members at their top are found wherever they come
// from.
bool IsProperObject(std::string_view raw) { return IsObject(raw) && RawObject::Parse(raw).ok(); }

std::variant<Message, Malformed> ReadCall(const RawObject& object, From from, Message message) {
  const auto method = StringOf(*object.Find("method"));
  if (!method || method->empty() || method->size() > kMethodBytesMax) {
    return Invalid("The member method must be a string of 1 to 256 bytes.", message.id.empty() ? "null" : message.id);
  }
  message.kind = message.id.empty() ? Message::Kind::kNotification : Message::Kind::kRequest;
  message.method = *method;
  const std::string_view* params = object.Find("params");
  if (params == nullptr || (from == From::kUpstream && *params == "null")) return message;
  if (!IsProperObject(*params)) {
    return Invalid("The member params must be an object.", message.id.empty() ? "null" : message.id);
  }
  message.params = *params;
  return message;
}

std::variant<Message, Malformed> ReadError(std::string_view raw, Message message) {
  const auto object = IsObject(raw) ? RawObject::Parse(raw) : absl::InvalidArgumentError("");
  if (!object.ok()) return Invalid("The member error must be an object.", message.id);
  const std::string_view* raw_code = object->Find("code");
  const auto number = raw_code == nullptr ? std::nullopt : IntegerOf(*raw_code);
  if (!number) return Invalid("The error's code must be an integer.", message.id);
  const std::string_view* text = object->Find("message");
  auto words = text == nullptr ? std::nullopt : StringOf(*text);
  if (!words) return Invalid("The error's message must be a string.", message.id);
  message.kind = Message::Kind::kError;
  message.error = {*number, *std::move(words), ""};
  if (const std::string_view* data = object->Find("data")) message.error.data = *data;
  return message;
}

void AppendMember(std::string_view name, std::string_view raw, std::string* out) {
  out->append(",\"").append(name).append("\":").append(raw);
}

std::string Begin(size_t more) {
  std::string text;
  text.reserve(more + 64);
  return text.append("{\"jsonrpc\":\"2.0\"");
}

}  // namespace

std::variant<Message, Malformed> ParseMessage(std::string_view text, From from, size_t bytes_max) {
  if (auto refused = CheckText(text, from, bytes_max)) return *std::move(refused);
  const auto object = RawObject::Parse(text);
  if (!object.ok()) {
    const bool other_kind = from == From::kClient || !IsObject(TrimSpace(text));
    if (other_kind && CheckJson(text).ok()) return Invalid("The message is not a JSON object.", "null");
    return Refuse(code::kParseError, std::string(object.status().message()) + ".");
  }

  Message message;
  const std::string_view* result = object->Find("result");
  const std::string_view* error = object->Find("error");
  const std::string_view* id = object->Find("id");
  // Only an error may answer a request whose id could not be read.
  const bool nameless = error != nullptr && (id == nullptr || *id == "null");
  if (id != nullptr && !nameless) {
    if (!IsId(*id)) return Invalid("The member id must be a string or an integer, of at most 1024 bytes.", "null");
    message.id = *id;
  }
  const std::string_view* version = object->Find("jsonrpc");
  if (version == nullptr || StringOf(*version) != "2.0") {
    return Invalid("The member jsonrpc must be \"2.0\".", message.id.empty() ? "null" : message.id);
  }
  if ((object->Find("method") != nullptr) + (result != nullptr) + (error != nullptr) != 1) {
    return Invalid("A message has exactly one of the members method, result and error.",
                   message.id.empty() ? "null" : message.id);
  }
  if (result == nullptr && error == nullptr) return ReadCall(*object, from, std::move(message));
  if (nameless) message.id = "null";
  if (message.id.empty()) return Invalid("A result needs the id of its request.", "null");
  if (error != nullptr) return ReadError(*error, std::move(message));
  if (!IsProperObject(*result)) return Invalid("The member result must be an object.", message.id);
  message.kind = Message::Kind::kResult;
  message.result = *result;
  return message;
}

std::string IdKey(std::string_view raw_id) {
  if (const auto text = StringOf(raw_id)) return "s" + *text;
  return raw_id == "-0" ? "n0" : "n" + std::string(raw_id);
}

std::string RequestText(std::string_view raw_id, std::string_view method, std::string_view raw_params) {
  std::string text = Begin(raw_id.size() + method.size() + raw_params.size());
  AppendMember("id", raw_id, &text);
  AppendMember("method", Quote(method), &text);
  if (!raw_params.empty()) AppendMember("params", raw_params, &text);
  text.push_back('}');
  return text;
}

std::string NotificationText(std::string_view method, std::string_view raw_params) {
  std::string text = Begin(method.size() + raw_params.size());
  AppendMember("method", Quote(method), &text);
  if (!raw_params.empty()) AppendMember("params", raw_params, &text);
  text.push_back('}');
  return text;
}

std::string ResultText(std::string_view raw_id, std::string_view raw_result) {
  std::string text = Begin(raw_id.size() + raw_result.size());
  AppendMember("id", raw_id, &text);
  AppendMember("result", raw_result, &text);
  text.push_back('}');
  return text;
}

std::string ErrorText(std::string_view raw_id, const RpcError& error) {
  std::string text = Begin(raw_id.size() + error.message.size() + error.data.size());
  if (!raw_id.empty()) AppendMember("id", raw_id, &text);
  text.append(",\"error\":{\"code\":").append(std::to_string(error.code));
  AppendMember("message", Quote(error.message), &text);
  if (!error.data.empty()) AppendMember("data", error.data, &text);
  text.append("}}");
  return text;
}

}  // namespace tally::mcp
