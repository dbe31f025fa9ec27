// The grammar of JSON, walked without building anything. For raw.cc alone.
#ifndef TALLY_GATEWAY_MCP_SCAN_H_
#define TALLY_GATEWAY_MCP_SCAN_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tally::mcp {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  bool AtEnd() const { return at_ == text_.size(); }
  bool At(char c) const { return !AtEnd() && text_[at_] == c; }
  void SkipSpace();
  // One byte, if it is `c`.
  bool Take(char c);

  // Each passes over what it names, which begins where the scanner stands, or is false; then error() says why.
  bool Value();
  // `unescaped` may be null.
  bool String(std::string* unescaped);
  bool End();

  bool Fail(std::string_view what);
  absl::Status error() const;

 private:
  bool Scalar();
  bool Literal(std::string_view literal);
  bool Number();
  bool Digits();
  bool Name();
  bool Escape(std::string* unescaped);
  bool CodeUnit(char32_t* unit);
  // After a value at depth `open`: on to the next value, or out of what ends here. *open shrinks with every close.
  bool AfterValue(std::string* open);

  std::string_view text_;
  size_t at_ = 0;
  std::string_view what_;
  size_t where_ = 0;
};

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_SCAN_H_
