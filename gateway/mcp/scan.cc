#include "gateway/mcp/scan.h"

#include "gateway/mcp/raw.h"
#include "lib/json/utf8.h"

namespace tally::mcp {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsPlain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool Scanner::Fail(std::string_view what) {
  if (what_.empty()) {
    what_ = what;
    where_ = at_;
  }
  return false;
}

absl::Status Scanner::error() const {
  return absl::InvalidArgumentError("JSON refused at byte " + std::to_string(where_) + ": " + std::string(what_));
}

void Scanner::SkipSpace() {
  while (!AtEnd() && IsSpace(text_[at_])) ++at_;
}

bool Scanner::Take(char c) {
  if (!At(c)) return false;
  ++at_;
  return true;
}

bool Scanner::End() {
  SkipSpace();
  return AtEnd() || Fail("something follows the value");
}

// Iterative, with the brackets that are open in a string: what an upstream nests costs no stack.
bool Scanner::Value() {
  std::string open;
  for (;;) {
    if (At('{') || At('[')) {
      if (open.size() == kRawDepthMax) return Fail("nested over 512 levels");
      const char bracket = text_[at_++];
      SkipSpace();
      const char close = bracket == '{' ? '}' : ']';
      open.push_back(close);
      if (!At(close)) {
        if (bracket == '{' && !Name()) return false;
        continue;
      }
    } else if (!Scalar()) {
      return false;
    }
    if (!AfterValue(&open)) return false;
    if (open.empty()) return true;
  }
}

bool Scanner::AfterValue(std::string* open) {
  // The bracket that closes an empty array or object is met here, too.
  while (!open->empty()) {
    SkipSpace();
    if (Take(open->back())) {
      open->pop_back();
      continue;
    }
    const bool object = open->back() == '}';
    if (!Take(',')) return Fail(object ? "expected ',' or '}' in an object" : "expected ',' or ']' in an array");
    SkipSpace();
    return !object || Name();
  }
  return true;
}

bool Scanner::Name() {
  if (!At('"')) return Fail("expected a member's name");
  if (!String(nullptr)) return false;
  SkipSpace();
  if (!Take(':')) return Fail("expected ':' after a member's name");
  SkipSpace();
  return true;
}

bool Scanner::Scalar() {
  if (AtEnd()) return Fail("the text ends where a value is expected");
  switch (text_[at_]) {
    case '"':
      return String(nullptr);
    case 't':
      return Literal("true");
    case 'f':
      return Literal("false");
    case 'n':
      return Literal("null");
    default:
      return Number();
  }
}

bool Scanner::Literal(std::string_view literal) {
  if (!text_.substr(at_).starts_with(literal)) return Fail("not a JSON value");
  at_ += literal.size();
  return true;
}

bool Scanner::Digits() {
  const size_t start = at_;
  while (!AtEnd() && IsDigit(text_[at_])) ++at_;
  return at_ > start || Fail("not a JSON number");
}

bool Scanner::Number() {
  Take('-');
  if (AtEnd() || !IsDigit(text_[at_])) return Fail("not a JSON value");
  if (!Take('0') && !Digits()) return false;
  if (Take('.') && !Digits()) return false;
  if (Take('e') || Take('E')) {
    if (!Take('+')) Take('-');
    if (!Digits()) return false;
  }
  return true;
}

bool Scanner::String(std::string* unescaped) {
  if (!Take('"')) return Fail("expected a string");
  for (;;) {
    const size_t start = at_;
    while (!AtEnd() && IsPlain(text_[at_])) ++at_;
    if (unescaped != nullptr) unescaped->append(text_.substr(start, at_ - start));
    if (AtEnd()) return Fail("the text ends inside a string");
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c == '\\') {
      if (!Escape(unescaped)) return false;
      continue;
    }
    if (c < 0x20) return Fail("a control character stands unescaped in a string");
    const size_t length = json::Utf8SequenceLength(text_.substr(at_));
    if (length == 0) return Fail("not UTF-8");
    if (unescaped != nullptr) unescaped->append(text_.substr(at_, length));
    at_ += length;
  }
}

bool Scanner::Escape(std::string* unescaped) {
  static constexpr std::string_view kEscapes = "\"\\/bfnrt";
  static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  ++at_;
  if (AtEnd()) return Fail("the text ends inside a string");
  const size_t known = kEscapes.find(text_[at_]);
  if (known != std::string_view::npos) {
    ++at_;
    if (unescaped != nullptr) unescaped->push_back(kMeanings[known]);
    return true;
  }
  char32_t unit = 0;
  if (text_[at_] != 'u') return Fail("not a JSON escape");
  if (!CodeUnit(&unit)) return false;
  if (unit >= 0xD800 && unit < 0xE000) {
    const bool high = unit < 0xDC00;
    const char32_t first = unit;
    unit = kReplacement;
    if (high && text_.substr(at_).starts_with("\\u")) {
      const size_t before = at_++;
      char32_t low = 0;
      if (!CodeUnit(&low)) return false;
      if (low >= 0xDC00 && low < 0xE000) {
        unit = 0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = before;  // a lone one, and an escape of its own after it
      }
    }
  }
  if (unescaped != nullptr) json::AppendUtf8(unit, unescaped);
  return true;
}

// At the 'u' of an escape.
bool Scanner::CodeUnit(char32_t* unit) {
  const std::string_view digits = text_.substr(at_ + 1, 4);
  for (char c : digits) {
    const int digit = HexDigit(c);
    if (digit < 0) return Fail("\\u is not followed by four hexadecimal digits");
    *unit = *unit << 4 | static_cast<char32_t>(digit);
  }
  if (digits.size() < 4) return Fail("\\u is not followed by four hexadecimal digits");
  at_ += 5;
  return true;
}

}  // namespace tally::mcp
