// UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing beyond U+10FFFF.
#ifndef TALLY_LIB_JSON_UTF8_H_
#define TALLY_LIB_JSON_UTF8_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace tally::json {

// The length in bytes of the well-formed sequence at the start of `text`, or 0 if there is none.
size_t Utf8SequenceLength(std::string_view text);

// Takes one code point off a well-formed, non-empty `text`.
char32_t TakeCodePoint(std::string_view* text);

// Precondition: a code point that is not a surrogate.
void AppendUtf8(char32_t code_point, std::string* out);

// How many code points a well-formed `text` has.
size_t CountCodePoints(std::string_view text);

// The order of well-formed texts by their UTF-16 code units. It differs from that of bytes where a supplementary
// character, which begins with a surrogate, meets U+E000 to U+FFFF.
bool Utf16Less(std::string_view a, std::string_view b);

}  // namespace tally::json

#endif  // TALLY_LIB_JSON_UTF8_H_
