// What the gateway says in place of an upstream: words that a model acts rightly on, and data that a machine does.
#ifndef TALLY_GATEWAY_MCP_REFUSAL_H_
#define TALLY_GATEWAY_MCP_REFUSAL_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/mcp/message.h"
#include "tally/v1/calls.pb.h"
#include "tally/v1/common.pb.h"

namespace tally::mcp {

// Whether anything was done by the call that is refused.
enum class Done { kNo, kMaybe, kEarlier, kAsRecorded };

struct Refusal {
  v1::Kind kind = v1::KIND_DELIVERY_UNCERTAIN;
  std::string code;      // TOOL_NOT_GRANTED, CALL_CAP, NO_ANSWER, …
  std::string sentence;  // what happened, for a person; empty: the kind's and code's own
  std::string advice;    // what to do; empty: the kind's and code's own
  Done done = Done::kMaybe;
  v1::Retry retry = v1::RETRY_NEVER;
  std::string call_id;
  std::string key;                       // the idempotency key under which the call can be asked about
  std::string reference;                 // of the other call, INTENT_PENDING and ALREADY_DONE
  std::vector<std::string> receipt_ids;  // hex
};

// Kind and code with their own sentence, advice, retry and `done`. A kind that is not known becomes delivery_uncertain.
Refusal MakeRefusal(v1::Kind kind, std::string_view code);
// An answer of the authority other than DISPATCH, and other than a REPLAY that carries its result. A REPLAY without a
// body is already_done, or read_failed for a READ that was never answered.
Refusal RefusalOf(const v1::AuthorizeResponse& response);

// A tool result: isError, first line "kind: …", machine data in _meta["dev.tallystick/error"]. Nothing in
// structuredContent, which clients hold against the tool's schema. Raw.
std::string RefusalResult(const Refusal& refusal);
// [mcp] error_style = "jsonrpc": the same as an error, machine data under the same name in its data.
RpcError RefusalError(const Refusal& refusal);

// The upstream's result with _meta["dev.tallystick/call"] added; all other bytes are as they came. A result whose _meta
// is no object is left as it is.
std::string WithCallMeta(std::string_view raw_result, std::string_view call_id,
                         const std::vector<std::string>& receipt_ids, bool replayed = false);

// What a gateway of the same kind said in a result's _meta or an error's data; nullopt if it said nothing.
struct NestedError {
  std::string kind;
  std::string code;
  std::string done;  // "no", "maybe", "earlier", "recorded"
};
std::optional<NestedError> NestedErrorOf(std::string_view raw_holder);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_REFUSAL_H_
