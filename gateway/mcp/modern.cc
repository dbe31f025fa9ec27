#include "gateway/mcp/modern.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "lib/keys/encoding.h"

namespace tally::mcp {
namespace {

constexpr std::string_view kSentinelBegin = "=?base64?";
constexpr std::string_view kSentinelEnd = "?=";
// What a refusal repeats of a version that it does not know.
constexpr size_t kVersionBytesShown = 64;

RpcError Refuse(int64_t code, std::string_view what) {
  return {code, std::string(what).append(" Nothing was done."), ""};
}

RpcError Mismatch(std::string_view name) {
  return Refuse(code::kHeaderMismatch, std::string("The header ").append(name).append(" does not match the body."));
}

RpcError Missing(std::string_view name) {
  return Refuse(code::kHeaderMismatch, std::string("The header ").append(name).append(" is missing."));
}

// One member of params._meta, raw.
std::optional<std::string> MetaMember(const Message& message, std::string_view name) {
  const auto params = RawObject::Parse(message.params);
  const std::string_view* meta = params.ok() ? params->Find("_meta") : nullptr;
  if (meta == nullptr) return std::nullopt;
  const auto members = RawObject::Parse(*meta);
  const std::string_view* found = members.ok() ? members->Find(name) : nullptr;
  if (found == nullptr) return std::nullopt;
  return std::string(*found);
}

bool IsSentinel(std::string_view value) {
  return value.size() >= kSentinelBegin.size() + kSentinelEnd.size() && value.starts_with(kSentinelBegin) &&
         value.ends_with(kSentinelEnd);
}

bool IsHeaderByte(char c) { return c == '\t' || (c >= 0x20 && c < 0x7F); }
bool IsBlank(char c) { return c == '\t' || c == ' '; }

std::optional<RpcError> CheckVersion(const Message& message) {
  const auto version = VersionInBody(message);
  if (!version) {
    return Refuse(code::kInvalidParams,
                  "params._meta[\"io.modelcontextprotocol/protocolVersion\"], a string, is required.");
  }
  if (!version::IsModern(*version)) return UnsupportedVersion(*version);
  return std::nullopt;
}

std::optional<RpcError> CheckCapabilities(const Message& message) {
  if (message.kind != Message::Kind::kRequest) return std::nullopt;
  const auto capabilities = MetaMember(message, meta::kClientCapabilities);
  if (capabilities && IsObject(*capabilities)) return std::nullopt;
  return Refuse(code::kInvalidParams,
                "params._meta[\"io.modelcontextprotocol/clientCapabilities\"], an object, is required.");
}

}  // namespace

bool IsModern(const Message& message, const RequestHeaders& headers) {
  const bool in_body = MetaMember(message, meta::kProtocolVersion).has_value();
  if (message.method == method::kInitialize) return in_body;
  return in_body || (headers.protocol_version && version::IsModern(*headers.protocol_version));
}

std::optional<std::string> VersionInBody(const Message& message) {
  const auto raw = MetaMember(message, meta::kProtocolVersion);
  return raw ? StringOf(*raw) : std::nullopt;
}

std::optional<RpcError> CheckModernRequest(const Message& message, const RequestHeaders& headers) {
  const bool request = message.kind == Message::Kind::kRequest;
  const auto version = VersionInBody(message);
  if (version && headers.protocol_version && *version != *headers.protocol_version) {
    return Mismatch(header::kProtocolVersion);
  }
  if (request && !headers.protocol_version) return Missing(header::kProtocolVersion);
  // A notification's body need not say; then the header does.
  if (request || version) {
    if (auto refused = CheckVersion(message)) return refused;
  }
  if (!headers.method && request) return Missing(header::kMethod);
  if (headers.method && *headers.method != message.method) return Mismatch(header::kMethod);
  const auto name = NameInBody(message);
  if (name && request && !headers.name) return Missing(header::kName);
  if (name && headers.name && DecodeHeaderValue(*headers.name) != name) return Mismatch(header::kName);
  return CheckCapabilities(message);
}

std::optional<RpcError> CheckModernBody(const Message& message) {
  if (auto refused = CheckVersion(message)) return refused;
  return CheckCapabilities(message);
}

RpcError UnsupportedVersion(std::string_view requested) {
  RpcError error = Refuse(code::kUnsupportedVersion, "This protocol version is not spoken here.");
  std::string supported;
  for (std::string_view known : version::kAll) supported.append(supported.empty() ? "" : ",").append(Quote(known));
  error.data =
      "{\"supported\":[" + supported + "],\"requested\":" + Quote(requested.substr(0, kVersionBytesShown)) + "}";
  return error;
}

std::optional<std::string> NameInBody(const Message& message) {
  const bool by_uri = message.method == method::kResourcesRead;
  if (!by_uri && message.method != method::kToolsCall && message.method != method::kPromptsGet) return std::nullopt;
  const auto params = RawObject::Parse(message.params);
  const std::string_view* name = params.ok() ? params->Find(by_uri ? "uri" : "name") : nullptr;
  return name == nullptr ? std::nullopt : StringOf(*name);
}

std::string WithEraMeta(std::string_view raw_params, std::string_view capabilities) {
  constexpr std::string_view kClient = R"({"name":"tally-gateway","title":"Tallystick gateway","version":"0.1.0"})";
  std::string params(raw_params.empty() ? "{}" : raw_params);
  const auto object = RawObject::Parse(params);
  const std::string_view* meta = object.ok() ? object->Find("_meta") : nullptr;
  std::string whole(meta != nullptr && IsObject(*meta) ? *meta : "{}");
  const auto said = [&](std::string_view name) {
    const auto members = RawObject::Parse(whole);
    return members.ok() && members->Find(name) != nullptr;
  };
  whole = WithMember(whole, meta::kProtocolVersion, Quote(version::k20260728));
  whole = WithMember(whole, meta::kClientInfo, kClient);
  if (!capabilities.empty() || !said(meta::kClientCapabilities)) {
    whole = WithMember(whole, meta::kClientCapabilities, capabilities.empty() ? "{}" : capabilities);
  }
  return WithMember(params, "_meta", whole);
}

std::string EncodeHeaderValue(std::string_view value) {
  const bool plain = std::all_of(value.begin(), value.end(), IsHeaderByte) && !IsSentinel(value) &&
                     (value.empty() || (!IsBlank(value.front()) && !IsBlank(value.back())));
  if (plain) return std::string(value);
  return std::string(kSentinelBegin).append(keys::Base64Encode(value)).append(kSentinelEnd);
}

std::optional<std::string> DecodeHeaderValue(std::string_view header) {
  if (!std::all_of(header.begin(), header.end(), IsHeaderByte)) return std::nullopt;
  if (!IsSentinel(header)) return std::string(header);
  header.remove_prefix(kSentinelBegin.size());
  header.remove_suffix(kSentinelEnd.size());
  return keys::Base64Decode(header);
}

}  // namespace tally::mcp
