// The words of every refusal, by kind and code. docs/gateway-errors.md shows this table; a test compares the two.
#ifndef TALLY_GATEWAY_MCP_REFUSAL_WORDS_H_
#define TALLY_GATEWAY_MCP_REFUSAL_WORDS_H_

#include <span>
#include <string_view>

#include "gateway/mcp/refusal.h"

namespace tally::mcp {

struct RefusalWords {
  v1::Kind kind;
  std::string_view code;  // empty: of any other code of the kind
  Happened happened;
  v1::Retry retry;
  std::string_view what;
  std::string_view advice;
};

// The last row of each kind is its general one.
std::span<const RefusalWords> AllRefusalWords();
const RefusalWords& WordsOf(v1::Kind kind, std::string_view code);

// denied, delivery_uncertain, …
std::string_view KindWord(v1::Kind kind);
// never, same_key, wait, call_again, fix_credential.
std::string_view RetryWord(v1::Retry retry);
// no, maybe, earlier, recorded.
std::string_view HappenedWord(Happened happened);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_REFUSAL_WORDS_H_
