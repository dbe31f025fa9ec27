// What the gateway says in place of an upstream: words that a model acts rightly on, and data that a machine does.
#ifndef TALLY_GATEWAY_MCP_REFUSAL_H_
#define TALLY_GATEWAY_MCP_REFUSAL_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/mcp/message.h"
#include "gateway/mcp/raw.h"
#include "tally/v1/calls.pb.h"
#include "tally/v1/common.pb.h"

namespace tally::mcp {

// Did anything happen?
enum class Happened {
  kNo,        // nothing was done by this call
  kMaybe,     // it, or the same act under another key, may have been carried out
  kEarlier,   // it was carried out before
  kRecorded,  // the record of the call says
};

struct Refusal {
  v1::Kind kind = v1::KIND_DELIVERY_UNCERTAIN;
  std::string code;    // TOOL_NOT_GRANTED, CALL_CAP, NO_ANSWER, …
  std::string what;    // what happened and whether anything was done: sentences on one line
  std::string advice;  // what to do: the same
  std::string detail;  // more of it, in the authority's or the gateway's own words; may be empty
  Happened happened = Happened::kMaybe;
  v1::Retry retry = v1::RETRY_NEVER;
  std::string call_id;                   // UUID; empty where it must not or cannot be named
  std::string key;                       // the idempotency key to ask with again; empty: none
  std::string reference;                 // opaque, of the other call: INTENT_PENDING, ALREADY_DONE
  std::vector<std::string> receipt_ids;  // hex
};

// Codes of the gateway's own.
namespace gateway_code {
// kind unavailable, and certain that not one byte was sent:
inline constexpr std::string_view kNotSent = "NOT_SENT";                    // for whatever `detail` says
inline constexpr std::string_view kUpstreamDown = "UPSTREAM_DOWN";          // it cannot be reached or started
inline constexpr std::string_view kAuthorityDown = "AUTHORITY_DOWN";        // tallyd did not answer: fail closed
inline constexpr std::string_view kJournalDown = "JOURNAL_DOWN";            // journal or audit log cannot be written
inline constexpr std::string_view kShuttingDown = "GATEWAY_SHUTTING_DOWN";  // no new call is taken
// kind denied:
inline constexpr std::string_view kToolChanged = "TOOL_CHANGED";  // pin = "strict", and nobody has accepted the change
inline constexpr std::string_view kNoSuchTool = "NO_SUCH_TOOL";
}  // namespace gateway_code

// With the words, advice, retry and `happened` of kind and code. An unknown code gets its kind's; an unknown kind
// becomes delivery_uncertain, whatever its code.
Refusal MakeRefusal(v1::Kind kind, std::string_view code);

// Of an answer of the authority that is neither DISPATCH nor a REPLAY with its result. What it leaves open, or what
// contradicts itself, is delivery_uncertain. Key and receipt ids are the caller's to add.
Refusal RefusalOf(const v1::AuthorizeResponse& response);

// "delivery_uncertain: …": the kind, what happened, what to do. On one line.
std::string FirstLine(const Refusal& refusal);

// A tool result, raw: isError, a text that begins with FirstLine, machine data in _meta["dev.tallystick/error"].
// Nothing in structuredContent, which clients hold against the tool's own schema. `modern` adds resultType.
std::string RefusalResult(const Refusal& refusal, bool modern = false);
// [mcp] error_style = "jsonrpc": the same as an error, the machine data under the same name in its data. A missing body
// (already_done) is a tool result in either style: use RefusalResult.
RpcError RefusalError(const Refusal& refusal);

// The upstream's result with _meta["dev.tallystick/call"] added; all other bytes are as they came. A result whose _meta
// is there and no object is left as it is.
std::string WithCallMeta(std::string_view raw_result, std::string_view call_id,
                         const std::vector<std::string>& receipt_ids, bool replayed = false);

// What a gateway of the same kind said, in a result's _meta or in an error's data.
struct NestedError {
  std::string kind;  // denied, delivery_uncertain, …
  std::string code;
  std::string happened;  // no, maybe, earlier, recorded
};
// Nullopt if there is no such member; one that cannot be read has an empty kind.
std::optional<NestedError> NestedErrorOf(const RawObject& result_or_data);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_REFUSAL_H_
