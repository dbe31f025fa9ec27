#include "gateway/call/answers.h"

#include <absl/strings/str_cat.h>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"

namespace tally::gateway {
namespace {

using How = mcp::Reply::How;
using mcp::Meaning;

constexpr size_t kStateBytesMax = 256 * 1024;  // of a tool server's requestState, which is kept while a call waits

std::string ErrorAsResult(const UpstreamAnswer& answer) {
  const std::string text =
      answer.error.code != 0 || !answer.error.message.empty()
          ? absl::StrCat("The tool server answered with error ", answer.error.code, ": ", answer.error.message)
          : absl::StrCat("The tool server refused the request with HTTP status ", answer.http_status,
                         ". Nothing was done.");
  return absl::StrCat(R"({"content":[{"type":"text","text":)", mcp::Quote(text), R"(}],"isError":true})");
}

}  // namespace

std::string_view Word(Meaning meaning) {
  switch (meaning) {
    case Meaning::kSucceeded:
      return "succeeded";
    case Meaning::kToolError:
      return "tool_error";
    case Meaning::kNoEffect:
      return "no_effect";
    case Meaning::kUncertain:
      break;
  }
  return "uncertain";
}

std::string ResultFor(const UpstreamAnswer& answer) {
  return answer.how == How::kResult ? answer.result : ErrorAsResult(answer);
}

bool IsParkedFurtherUp(const UpstreamAnswer& answer) {
  const auto object = mcp::RawObject::Parse(answer.how == How::kResult ? answer.result : answer.error.data);
  return object.ok() && mcp::NestedErrorOf(*object).has_value();
}

bool IsIncomplete(const UpstreamAnswer& answer) {
  const auto result = answer.how == How::kResult ? mcp::RawObject::Parse(answer.result) : absl::NotFoundError("");
  return result.ok() && mcp::ResultTypeOf(*result) != mcp::ResultType::kComplete;
}

std::optional<InputAsked> InputAskedBy(const UpstreamAnswer& answer) {
  const auto result = answer.how == How::kResult ? mcp::RawObject::Parse(answer.result) : absl::NotFoundError("");
  if (!result.ok() || mcp::ResultTypeOf(*result) != mcp::ResultType::kInputRequired) return std::nullopt;
  InputAsked asked;
  if (const std::string_view* requests = result->Find("inputRequests")) asked.requests = *requests;
  if (const std::string_view* state = result->Find("requestState")) asked.state = *state;
  const bool requests_fit = asked.requests.empty() || mcp::IsObject(asked.requests);
  const bool state_fits =
      asked.state.empty() || (mcp::StringOf(asked.state).has_value() && asked.state.size() <= kStateBytesMax);
  if (!requests_fit || !state_fits || (asked.requests.empty() && asked.state.empty())) return std::nullopt;
  return asked;
}

bool NeedsCapability(const UpstreamAnswer& answer) {
  return answer.how != How::kResult && answer.error.code == mcp::code::kMissingClientCapability;
}

}  // namespace tally::gateway
