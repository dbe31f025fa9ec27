#include "lib/schema/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "lib/json/utf8.h"

namespace tally::schema {
namespace {

// Program and caches of one pattern. A lazily built automaton that outgrows it falls back to a slower, still linear
// walk.
constexpr int64_t kProgramBytesMax = 2 << 20;

// ECMA-262 WhiteSpace and LineTerminator, and all else, as they stand inside a class.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e})"
    R"(\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff})";
constexpr std::string_view kNoLineEnd = R"([^\x{a}\x{d}\x{2028}\x{2029}])";
constexpr std::string_view kAnything = R"([\x{0}-\x{10ffff}])";
constexpr std::string_view kNothing = R"([^\x{0}-\x{10ffff}])";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

void AppendCharacter(char32_t c, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->append("\\x{");
  for (int shift = c > 0xFFFF ? 20 : 12; shift >= 0; shift -= 4) out->push_back(kHex[c >> shift & 15]);
  out->push_back('}');
}

// What an escape means: one character, or a set of them as it stands inside a class.
struct Atom {
  std::optional<char32_t> character;
  std::string set;
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : rest_(pattern) {}

  absl::StatusOr<std::string> Run() {
    while (error_.ok() && !rest_.empty()) Term();
    if (!error_.ok()) return error_;
    return std::move(out_);
  }

 private:
  bool Fail(const std::string& what) {
    if (error_.ok()) error_ = absl::InvalidArgumentError("the pattern " + what);
    return false;
  }

  bool Take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  void Term() {
    switch (rest_[0]) {
      case '\\':
        rest_.remove_prefix(1);
        Escape();
        return;
      case '[':
        rest_.remove_prefix(1);
        Class();
        return;
      case '(':
        rest_.remove_prefix(1);
        Group();
        return;
      case '{':
        Braces();
        return;
      case '.':
        rest_.remove_prefix(1);
        out_.append(kNoLineEnd);
        return;
      case '^':
      case '$':
      case '|':
      case ')':
      case '*':
      case '+':
      case '?':
        out_.push_back(rest_[0]);
        rest_.remove_prefix(1);
        return;
      default:
        AppendCharacter(json::TakeCodePoint(&rest_), &out_);
    }
  }

  // After '('. Nothing is captured: no one asks what a group matched.
  void Group() {
    if (rest_.starts_with("?=") || rest_.starts_with("?!")) {
      Fail("looks ahead, which cannot be run in linear time");
    } else if (rest_.starts_with("?<=") || rest_.starts_with("?<!")) {
      Fail("looks behind, which cannot be run in linear time");
    } else if (Take("?<")) {
      const size_t end = rest_.find('>');
      const std::string_view name = rest_.substr(0, end);
      const auto in_name = [](char c) { return IsLetter(c) || IsDigit(c) || c == '_' || c == '$'; };
      if (end == std::string_view::npos || name.empty() || !std::all_of(name.begin(), name.end(), in_name)) {
        Fail("has a group without a proper name");
        return;
      }
      if (!names_.insert(name).second) {
        Fail("has two groups of one name");
        return;
      }
      rest_.remove_prefix(end + 1);
      out_.append("(?:");
    } else if (!Take("?:") && rest_.starts_with("?")) {
      Fail("has a group (?… that ECMA-262 does not have");
    } else {
      out_.append("(?:");
    }
  }

  // At '{': a quantifier, or else the character itself.
  void Braces() {
    size_t end = 1;
    while (end < rest_.size() && IsDigit(rest_[end])) ++end;
    const bool counted = end > 1;
    if (end < rest_.size() && rest_[end] == ',') {
      ++end;
      while (end < rest_.size() && IsDigit(rest_[end])) ++end;
    }
    if (counted && end < rest_.size() && rest_[end] == '}') {
      out_.append(rest_.substr(0, end + 1));
      rest_.remove_prefix(end + 1);
    } else {
      AppendCharacter('{', &out_);
      rest_.remove_prefix(1);
    }
  }

  // After a backslash outside a class.
  void Escape() {
    if (Take("b")) {
      out_.append("\\b");
    } else if (rest_.starts_with("B")) {
      Fail("has \\B, which RE2 would also find inside a character");
    } else if (rest_.starts_with("k<") || (!rest_.empty() && rest_[0] >= '1' && rest_[0] <= '9')) {
      Fail("refers back to a group, which cannot be run in linear time");
    } else {
      Atom atom;
      if (!ParseEscape(&atom)) return;
      if (atom.character) {
        AppendCharacter(*atom.character, &out_);
      } else {
        out_.append("[").append(atom.set).append("]");
      }
    }
  }

  // After '['.
  void Class() {
    const bool negated = Take("^");
    std::string items;
    for (bool closed = Take("]"); !closed; closed = Take("]")) {
      if (rest_.empty()) {
        Fail("has a class without its ']'");
        return;
      }
      if (!ClassItem(&items)) return;
    }
    if (items.empty()) {
      out_.append(negated ? kAnything : kNothing);
    } else {
      out_.append(negated ? "[^" : "[").append(items).append("]");
    }
  }

  // One character, set or range.
  bool ClassItem(std::string* items) {
    Atom low;
    if (!ClassAtom(&low)) return false;
    const bool range = rest_.size() >= 2 && rest_[0] == '-' && rest_[1] != ']';
    if (!range) {
      AppendAtom(low, items);
      return true;
    }
    rest_.remove_prefix(1);
    Atom high;
    if (!ClassAtom(&high)) return false;
    if (!low.character || !high.character) return Fail("has a range in a class between what is not two characters");
    if (*low.character > *high.character) return Fail("has a range in a class that runs backwards");
    AppendCharacter(*low.character, items);
    items->push_back('-');
    AppendCharacter(*high.character, items);
    return true;
  }

  static void AppendAtom(const Atom& atom, std::string* items) {
    if (atom.character) {
      AppendCharacter(*atom.character, items);
    } else {
      items->append(atom.set);
    }
  }

  bool ClassAtom(Atom* atom) {
    if (!Take("\\")) {
      if (rest_.empty()) return Fail("has a class without its ']'");
      atom->character = json::TakeCodePoint(&rest_);
      return true;
    }
    if (Take("b")) {
      atom->character = '\b';
      return true;
    }
    return ParseEscape(atom);
  }

  // After a backslash; the escapes that mean the same inside and outside a class.
  bool ParseEscape(Atom* atom) {
    if (rest_.empty()) return Fail("ends in a backslash");
    static constexpr std::string_view kControls = "tnvfr";
    static constexpr std::string_view kControlsMean = "\t\n\v\f\r";
    const char c = rest_[0];
    if (c == 'p' || c == 'P') return ParseProperty(atom);
    if (!IsLetter(c) && !IsDigit(c)) {
      atom->character = json::TakeCodePoint(&rest_);
      return true;
    }
    rest_.remove_prefix(1);
    const size_t control = kControls.find(c);
    if (control != std::string_view::npos) {
      atom->character = kControlsMean[control];
      return true;
    }
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
        atom->set = std::string("\\") + c;  // ASCII in RE2, as in ECMA-262
        return true;
      case 's':
        atom->set = kSpace;
        return true;
      case 'S':
        atom->set = kNotSpace;
        return true;
      case '0':
        if (!rest_.empty() && IsDigit(rest_[0])) return Fail("has an octal escape, which ECMA-262 does not have");
        atom->character = 0;
        return true;
      case 'c':
        if (rest_.empty() || !IsLetter(rest_[0])) return Fail("has \\c without a letter");
        atom->character = static_cast<char32_t>(rest_[0]) % 32;
        rest_.remove_prefix(1);
        return true;
      case 'x':
        atom->character = 0;
        return Hex(2, &*atom->character);
      case 'u':
        atom->character = 0;
        return ParseUnicode(&*atom->character);
      default:
        return Fail(std::string("has the escape \\") + c + ", which ECMA-262 does not have");
    }
  }

  bool Hex(size_t digits, char32_t* value) {
    if (rest_.size() < digits) return Fail("has an escape without its hexadecimal digits");
    for (char c : rest_.substr(0, digits)) {
      const char lower = IsLetter(c) ? static_cast<char>(c | 0x20) : c;
      if (!IsDigit(c) && (lower < 'a' || lower > 'f')) return Fail("has an escape without its hexadecimal digits");
      *value = *value << 4 | static_cast<char32_t>(IsDigit(c) ? c - '0' : lower - 'a' + 10);
    }
    rest_.remove_prefix(digits);
    return true;
  }

  // After \u: XXXX, a pair of surrogates in two such escapes, or {X…}.
  bool ParseUnicode(char32_t* value) {
    if (Take("{")) {
      const size_t digits = rest_.find('}');
      if (digits == 0 || digits > 6) return Fail("has an escape \\u{…} without one to six hexadecimal digits");
      if (!Hex(digits, value)) return false;
      rest_.remove_prefix(1);
    } else {
      if (!Hex(4, value)) return false;
      char32_t low = 0;
      if (*value >= 0xD800 && *value < 0xDC00 && Take("\\u") && Hex(4, &low) && low >= 0xDC00 && low < 0xE000) {
        *value = 0x10000 + ((*value - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (*value > 0x10FFFF || (*value >= 0xD800 && *value < 0xE000)) {
      return Fail("has an escape for a surrogate or for what is beyond Unicode");
    }
    return true;
  }

  // At the p of \p{…} or \P{…}: a general category by its short name, or a script.
  bool ParseProperty(Atom* atom) {
    const char p = rest_[0];
    rest_.remove_prefix(1);
    const size_t end = rest_.find('}');
    if (!Take("{") || end == std::string_view::npos) return Fail("has \\p without a property in braces");
    std::string_view property = rest_.substr(0, end - 1);
    rest_.remove_prefix(end);
    bool script = false;
    for (std::string_view prefix : {"Script=", "sc="}) {
      if (property.starts_with(prefix)) {
        property.remove_prefix(prefix.size());
        script = true;
      }
    }
    for (std::string_view prefix : {"General_Category=", "gc="}) {
      if (property.starts_with(prefix)) property.remove_prefix(prefix.size());
    }
    const auto in_name = [](char c) { return IsLetter(c) || c == '_'; };
    const bool known_form = !property.empty() && std::all_of(property.begin(), property.end(), in_name) &&
                            (script ? property.size() > 2 : property.size() <= 2 || property == "Any");
    if (!known_form) {
      return Fail("has a \\p property other than a general category's short name or a script");
    }
    atom->set = std::string("\\") + p + "{" + std::string(property) + "}";
    return true;
  }

  std::string_view rest_;
  std::set<std::string_view> names_;
  std::string out_;
  absl::Status error_;
};

}  // namespace

absl::StatusOr<std::string> ToRe2Syntax(std::string_view pattern) {
  if (pattern.size() > kPatternBytesMax) return absl::InvalidArgumentError("the pattern is over 4096 bytes long");
  return Translator(pattern).Run();
}

Pattern::Pattern(std::string_view source, std::shared_ptr<const re2::RE2> program)
    : source_(source), program_(std::move(program)), program_size_(program_->ProgramSize()) {}

absl::StatusOr<Pattern> Pattern::Compile(std::string_view pattern) {
  const absl::StatusOr<std::string> syntax = ToRe2Syntax(pattern);
  if (!syntax.ok()) return syntax.status();
  re2::RE2::Options options;
  options.set_log_errors(false);  // it would write the pattern to stderr
  options.set_never_capture(true);
  options.set_max_mem(kProgramBytesMax);
  auto program = std::make_shared<const re2::RE2>(*syntax, options);
  if (!program->ok()) return absl::InvalidArgumentError("the pattern is refused by RE2: " + program->error());
  return Pattern(pattern, std::move(program));
}

bool Pattern::Matches(std::string_view text) const {
  return program_->Match(text, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

int64_t Pattern::Steps(std::string_view text) const {
  // The walk without an automaton takes text * program at most, some 8 ns each; the common one takes the text alone.
  return 1 + static_cast<int64_t>(text.size()) * program_size_ / 64;
}

}  // namespace tally::schema
