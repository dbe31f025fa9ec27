// One JSON-RPC 2.0 message as MCP allows it: read from untrusted text, and written from raw parts.
#ifndef TALLY_GATEWAY_MCP_MESSAGE_H_
#define TALLY_GATEWAY_MCP_MESSAGE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace tally::mcp {

struct RpcError {
  int64_t code = 0;
  std::string message;
  std::string data;  // raw; empty: none
};

struct Message {
  enum class Kind { kRequest, kNotification, kResult, kError };
  Kind kind = Kind::kNotification;
  // Raw, as it came: 7 or "a". Empty for a notification; "null" for an error that answers no request in particular.
  std::string id;
  std::string method;  // requests and notifications
  std::string params;  // raw object, or empty where there was none
  std::string result;  // raw object
  RpcError error;
};

enum class From {
  // Whatever an upstream may read of it must mean one thing: strict JSON without lone surrogates, and no object at any
  // depth with members that are equal or differ only by case.
  kClient,
  // Valid JSON; equal members are refused where the gateway itself reads: in the message and in its params or result.
  kUpstream,
};

// What cannot be acted on; nothing was done. Code and message are an answer for whoever sent it.
struct Malformed {
  int64_t code = 0;     // kParseError or kInvalidRequest
  std::string message;  // quotes nothing of the text
  std::string id;       // raw; "null" if it has none that can be trusted
};

// 64 levels of arguments, inside params, inside the message.
inline constexpr int kClientDepthMax = 66;
// An id is echoed and remembered, so it is bounded: bytes as written.
inline constexpr size_t kIdBytesMax = 1024;
inline constexpr size_t kMethodBytesMax = 256;

// Batches are refused: MCP has none since 2025-06-18.
std::variant<Message, Malformed> ParseMessage(std::string_view text, From from, size_t bytes_max);

// The same id, however written: "a" and "\u0061" are one, 7 and "7" are two. Precondition: an id from ParseMessage.
std::string IdKey(std::string_view raw_id);

// Texts on one line if the raw parts are. Empty params are left out, and so is an empty id of an error.
// Precondition: raw parts are JSON, raw_id is not empty elsewhere.
std::string RequestText(std::string_view raw_id, std::string_view method, std::string_view raw_params);
std::string NotificationText(std::string_view method, std::string_view raw_params);
std::string ResultText(std::string_view raw_id, std::string_view raw_result);
std::string ErrorText(std::string_view raw_id, const RpcError& error);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_MESSAGE_H_
