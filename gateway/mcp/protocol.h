// The names that both eras of MCP use on the wire. Source: the specification's revisions 2025-03-26 to 2026-07-28.
#ifndef TALLY_GATEWAY_MCP_PROTOCOL_H_
#define TALLY_GATEWAY_MCP_PROTOCOL_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace tally::mcp {

namespace version {
// Streamable HTTP without the header MCP-Protocol-Version means this one.
inline constexpr std::string_view k20250326 = "2025-03-26";
inline constexpr std::string_view k20250618 = "2025-06-18";
inline constexpr std::string_view k20251125 = "2025-11-25";
inline constexpr std::string_view k20260728 = "2026-07-28";  // stateless: no initialize, no sessions

inline constexpr std::array kLegacy = {k20251125, k20250618, k20250326};  // newest first
inline constexpr std::array kAll = {k20260728, k20251125, k20250618, k20250326};

inline constexpr bool IsLegacy(std::string_view v) { return v == k20250326 || v == k20250618 || v == k20251125; }
inline constexpr bool IsModern(std::string_view v) { return v == k20260728; }
}  // namespace version

namespace method {
inline constexpr std::string_view kInitialize = "initialize";
inline constexpr std::string_view kPing = "ping";
inline constexpr std::string_view kDiscover = "server/discover";
inline constexpr std::string_view kToolsList = "tools/list";
inline constexpr std::string_view kToolsCall = "tools/call";
inline constexpr std::string_view kResourcesList = "resources/list";
inline constexpr std::string_view kResourcesTemplatesList = "resources/templates/list";
inline constexpr std::string_view kResourcesRead = "resources/read";
inline constexpr std::string_view kResourcesSubscribe = "resources/subscribe";
inline constexpr std::string_view kResourcesUnsubscribe = "resources/unsubscribe";
inline constexpr std::string_view kPromptsList = "prompts/list";
inline constexpr std::string_view kPromptsGet = "prompts/get";
inline constexpr std::string_view kComplete = "completion/complete";
inline constexpr std::string_view kSetLevel = "logging/setLevel";
inline constexpr std::string_view kListen = "subscriptions/listen";
// From server to client, legacy era.
inline constexpr std::string_view kCreateMessage = "sampling/createMessage";
inline constexpr std::string_view kElicit = "elicitation/create";
inline constexpr std::string_view kRootsList = "roots/list";
}  // namespace method

namespace notification {
inline constexpr std::string_view kInitialized = "notifications/initialized";
inline constexpr std::string_view kCancelled = "notifications/cancelled";
inline constexpr std::string_view kProgress = "notifications/progress";
inline constexpr std::string_view kMessage = "notifications/message";
inline constexpr std::string_view kToolsChanged = "notifications/tools/list_changed";
inline constexpr std::string_view kResourcesChanged = "notifications/resources/list_changed";
inline constexpr std::string_view kResourcesUpdated = "notifications/resources/updated";
inline constexpr std::string_view kPromptsChanged = "notifications/prompts/list_changed";
inline constexpr std::string_view kRootsChanged = "notifications/roots/list_changed";
inline constexpr std::string_view kElicitationComplete = "notifications/elicitation/complete";
inline constexpr std::string_view kSubscriptionsAcknowledged = "notifications/subscriptions/acknowledged";
}  // namespace notification

namespace code {
// JSON-RPC 2.0.
inline constexpr int64_t kParseError = -32700;
inline constexpr int64_t kInvalidRequest = -32600;
inline constexpr int64_t kMethodNotFound = -32601;
inline constexpr int64_t kInvalidParams = -32602;
inline constexpr int64_t kInternalError = -32603;
// Legacy era: resource not found. 2026-07-28 has kInvalidParams for it, and forbids this one.
inline constexpr int64_t kResourceNotFound = -32002;
inline constexpr int64_t kUrlElicitationRequired = -32042;  // 2025-11-25 only
// 2026-07-28.
inline constexpr int64_t kHeaderMismatch = -32020;
inline constexpr int64_t kMissingClientCapability = -32021;
inline constexpr int64_t kUnsupportedVersion = -32022;
}  // namespace code

namespace header {
inline constexpr std::string_view kSessionId = "Mcp-Session-Id";
inline constexpr std::string_view kProtocolVersion = "MCP-Protocol-Version";
inline constexpr std::string_view kMethod = "Mcp-Method";
inline constexpr std::string_view kName = "Mcp-Name";
inline constexpr std::string_view kLastEventId = "Last-Event-ID";
inline constexpr std::string_view kIdempotencyKey = "Idempotency-Key";  // from clients; never sent upstream
}  // namespace header

namespace meta {
inline constexpr std::string_view kProgressToken = "progressToken";
// 2026-07-28: in params._meta of every request, and of what answers it.
inline constexpr std::string_view kProtocolVersion = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kClientInfo = "io.modelcontextprotocol/clientInfo";
inline constexpr std::string_view kClientCapabilities = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kServerInfo = "io.modelcontextprotocol/serverInfo";
inline constexpr std::string_view kLogLevel = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view kSubscriptionId = "io.modelcontextprotocol/subscriptionId";
// Ours.
inline constexpr std::string_view kOurPrefix = "dev.tallystick/";
inline constexpr std::string_view kKey = "dev.tallystick/idempotency-key";
inline constexpr std::string_view kRepeat = "dev.tallystick/repeat";
inline constexpr std::string_view kAmount = "dev.tallystick/amount";
inline constexpr std::string_view kIntent = "dev.tallystick/intent";
inline constexpr std::string_view kError = "dev.tallystick/error";
inline constexpr std::string_view kCall = "dev.tallystick/call";
}  // namespace meta

// tools/call: what the contract takes.
inline constexpr size_t kArgumentsBytesMax = 256 * 1024;
inline constexpr int kArgumentsDepthMax = 64;

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_PROTOCOL_H_
