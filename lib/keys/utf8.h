#pragma once

#include <string_view>

namespace tally::keys {

// Well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms).
bool IsUtf8(std::string_view text);

// Well-formed, and without the characters that Unicode calls spaces (C2SP signed-note forbids them in names).
bool IsPlainUtf8(std::string_view text);

}  // namespace tally::keys
