// What libFuzzer feeds, and what the ordinary suite replays: each takes any bytes, and ends the program if a promise of
// the code under test is broken.
#pragma once

#include <string_view>

namespace tally::fuzz {

// gateway/mcp: one JSON-RPC message of a client or an upstream, and a tools/call in it.
void FuzzMessage(std::string_view bytes);
// An upstream's event stream, in pieces: the first byte says how large they are.
void FuzzSse(std::string_view bytes);
// Lines on a pipe, in pieces: the first byte says how large they are.
void FuzzLines(std::string_view bytes);
// What an upstream's answer means: the first byte says what kind of answer, the second its HTTP status.
void FuzzJudge(std::string_view bytes);
// Headers of the 2026 era against their body: lines of headers, an empty line, a body.
void FuzzHeaders(std::string_view bytes);

}  // namespace tally::fuzz
