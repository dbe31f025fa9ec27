// The words by which an error text says that the tool lost an answer itself, or explains nothing.
// docs/gateway-errors.md shows this list; a test compares the two.
#ifndef TALLY_GATEWAY_MCP_ERROR_WORDS_H_
#define TALLY_GATEWAY_MCP_ERROR_WORDS_H_

#include <string_view>

namespace tally::mcp {

// RE2, searched for anywhere, whatever the case. A mistake on this side costs a look at a provider; on the other, a
// second charge. So they are wide; a tool's error_rules narrow them.
inline constexpr std::string_view kUncertainWords[] = {
    // No answer in time.
    R"(timeout|timed[ _-]?out|time[_-]out|\btimes? out\b)",
    R"(deadline[ _-]?(was |has been )?(exceeded|expired|passed|over))",
    // The connection, or what was on it, went away.
    R"(connection[ _-]?(was |is |has been |got )?(unexpectedly )?(reset|closed|lost|dropped|aborted|terminated|broken|interrupted|error|failed|failure))",
    R"(lost (the )?connection|disconnected|closed (the )?connection|closed before|peer closed|other side closed|hang[ _-]?up|hung up)",
    R"(econnreset|econnaborted|epipe|enetreset|enetdown|enetunreach|ehostunreach|ehostdown|err_network)",
    R"(broken pipe|socket (was |has been )?(closed|error)|socketerror|und_err_socket|stream (was |has been )?(closed|reset|destroyed|error))",
    R"(premature (close|end)|unexpected (eof|end of)|\beof(error)?\b|incomplete ?(read|response|chunked)|empty (reply|response)|no response|without (a )?response|no reply)",
    R"(fetch failed|failed to fetch|network[ _-]?(error|failure|changed|request failed|is unreachable)|protocol ?error|(read|write) ?error)",
    R"(abort(ed|error)|cancell?ederror|context cancell?ed|(operation|request|task) (was |has been )?cancell?ed)",
    // Something in between answered in the provider's place, or the provider without knowing.
    R"((^|[^0-9a-z#$€£.,_/-])50[234]($|[^0-9a-z%_-]))",
    R"(status[ _-]?(code)?[ :=]*5[0-9][0-9]|http[ _/:]*(error[ :]*)?5[0-9][0-9]|http/[0-9.]+ 5[0-9][0-9])",
    R"(bad[ _-]?gateway|(service|server|temporarily|currently)[ _-]?(is )?(temporarily )?unavailable)",
    R"((?-i:\bUNAVAILABLE\b|\bDEADLINE_EXCEEDED\b|\bABORTED\b)|code = (unavailable|unknown|aborted|internal|deadlineexceeded))",
    R"(unexpected token|invalid json (in )?response|(parse|parsing|decode|decoding) (the )?response)",
    // Nothing is explained.
    R"((internal|unknown|unexpected|unspecified|unhandled|uncaught)[ _-]?((server|system)[ _-]?)?(error|exception|failure|rejection))",
    R"(something went wrong|an error (has )?occurr?ed[.! ]*$)",
    R"(^\W*((tool|call|request|operation|execution|an?|the|mcp) )*(error|errors|[0-9]+|failed|failure|exception|oops|fail|null|undefined|none|object object|\W)+$)",
    R"(^\W*error (executing|calling|running|invoking) (the )?(tool )?['"`]?[\w./-]*['"`]?\W*(none|null|undefined)?\W*$)",
    // The tool says so itself.
    R"((outcome|status|result|state) (is |of the \w+ is )?(unknown|uncertain|unclear|indeterminate))",
    R"((may|might|could) (or may not )?(already )?have (already )?(been|gone|succeeded|happened|completed))",
    R"((unable|failed|not able|could not|couldn't|cannot|can't) (to )?(confirm|determine))",
    R"(^\W*delivery_uncertain\b)",
};

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_ERROR_WORDS_H_
