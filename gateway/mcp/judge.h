// What an upstream's reply to one tools/call means. docs/gateway-errors.md has the rules in full.
#ifndef TALLY_GATEWAY_MCP_JUDGE_H_
#define TALLY_GATEWAY_MCP_JUDGE_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "gateway/mcp/message.h"
#include "gateway/mcp/raw.h"

namespace re2 {
class RE2;
}

namespace tally::mcp {

enum class Meaning {
  kSucceeded,
  kToolError,  // an answer: the tool says what went wrong
  kNoEffect,   // an error, and certainly nothing was done
  kUncertain,  // it may have been carried out
};

struct ErrorRule {
  enum class Means { kUncertain, kError, kNoEffect };
  std::string pattern;  // RE2 syntax, searched for anywhere
  Means means = Means::kUncertain;
};

// What texts of errors mean for one tool. Cheap to copy.
class ErrorRules {
 public:
  // Rules are tried in order before everything built in, and may loosen as well as tighten. `uncertain_words` are more
  // patterns for texts of `isError` results, beside the built-in ones, whatever their case. InvalidArgument names the
  // pattern that RE2 refuses, by its place and text.
  static absl::StatusOr<ErrorRules> Compile(std::span<const ErrorRule> rules,
                                            std::span<const std::string> uncertain_words = {});
  // No rules of one's own.
  ErrorRules() = default;

  // The first rule that matches.
  const ErrorRule::Means* Find(std::string_view text) const;
  // Whether the words say that the tool itself lost an answer, or explain nothing.
  bool LooksUncertain(std::string_view text) const;

 private:
  struct Compiled {
    std::shared_ptr<const re2::RE2> pattern;
    ErrorRule::Means means;
  };
  std::vector<Compiled> rules_;
  std::vector<std::shared_ptr<const re2::RE2>> uncertain_words_;
};

struct Reply {
  enum class How {
    kResult,      // `result`
    kRpcError,    // `error`
    kHttpStatus,  // a status other than 2xx; `error` too if the body was one (else its code is 0)
    kNothing,     // no answer: a cut stream, a dead process, a timeout
    kGarbage,     // bytes that are no answer
  };
  How how = How::kNothing;
  int http_status = 0;
  RpcError error;
  std::string_view result;
  // HTTP 404 while a session id was sent: the session has ended and nothing was looked at.
  bool session_ended = false;
  // An earlier send of the same attempt (a keyed tool) is still unanswered: then only success ends it.
  bool earlier_send_unanswered = false;
};

// Of a reply to something that was sent: NOT_SENT is for the sender to say, never here.
Meaning Judge(const Reply& reply, const ErrorRules& rules);

// The texts of a tool result's content, one after another on lines of their own.
std::string ResultWords(std::string_view result);

// 2026-07-28's resultType; absent means complete.
enum class ResultType { kComplete, kInputRequired, kUnknown };
ResultType ResultTypeOf(const RawObject& result);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_JUDGE_H_
