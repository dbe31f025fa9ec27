// Every reader of gateway/mcp on one input, whatever it is, with the promises that hold for all of them.
#ifndef TALLY_TESTS_MCP_PROBE_H_
#define TALLY_TESTS_MCP_PROBE_H_

#include <string_view>

namespace tally::mcp {

// Ends the program if a promise is broken. True if the bytes were a message.
bool Probe(std::string_view bytes);

}  // namespace tally::mcp

#endif  // TALLY_TESTS_MCP_PROBE_H_
