// Era 2026-07-28 over HTTP: headers repeat what the body says, for those who do not read bodies. The body decides.
#ifndef TALLY_GATEWAY_MCP_MODERN_H_
#define TALLY_GATEWAY_MCP_MODERN_H_

#include <optional>
#include <string>
#include <string_view>

#include "gateway/mcp/message.h"

namespace tally::mcp {

struct RequestHeaders {  // nullopt: absent
  std::optional<std::string> protocol_version;
  std::optional<std::string> method;
  std::optional<std::string> name;
};

// Whether a message is of this era: its body names a protocol version in params._meta, whatever its value, or the
// header names one of this era. For initialize, which is the legacy era's own, the body alone decides.
bool IsModern(const Message& message, const RequestHeaders& headers);
// The protocol version in params._meta, where that is a string.
std::optional<std::string> VersionInBody(const Message& message);

// For a request of this era over HTTP. What to answer, with HTTP status 400, where headers and body disagree
// (kHeaderMismatch), the version is not spoken (kUnsupportedVersion, with those that are) or the body lacks what every
// request must carry (kInvalidParams); nullopt if all is well. Notifications need no headers; those they have must
// agree.
std::optional<RpcError> CheckModernRequest(const Message& message, const RequestHeaders& headers);
// The same without headers, for stdio.
std::optional<RpcError> CheckModernBody(const Message& message);

RpcError UnsupportedVersion(std::string_view requested);

// A request's params as this era sends them to an upstream: with what every request must say in _meta, where it is not
// said yet. `capabilities`: the client's, raw; empty: none.
std::string WithEraMeta(std::string_view raw_params, std::string_view capabilities = "");

// A value as a header carries it: plain where it can be, else =?base64?…?=. Nullopt from the decoder if the value has
// characters that no header may have, or the Base64 is none.
std::string EncodeHeaderValue(std::string_view value);
std::optional<std::string> DecodeHeaderValue(std::string_view header);

// What Mcp-Name must say for this message, if it must say anything: params.name or params.uri.
std::optional<std::string> NameInBody(const Message& message);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_MODERN_H_
