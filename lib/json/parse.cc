#include "lib/json/parse.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "lib/json/fold.h"
#include "lib/json/utf8.h"

namespace tally::json {
namespace {

// Objects up to this size are searched pairwise for equal names, larger ones by sorting.
constexpr size_t kPairwiseMax = 16;
// Integers up to this many digits are in normal form as they are written (decimal.h).
constexpr size_t kPlainDigitsMax = 21;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What stands for itself in a string and needs no closer look.
bool IsPlain(char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Every Parse… returns false once error_ is set; at_ never passes the end.
class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options)
      : text_(text), depth_max_(std::min(options.depth_max, kDepthMax)), case_variants_(options.case_variants) {}

  absl::StatusOr<Value> Run() {
    if (text_.starts_with("\xEF\xBB\xBF")) return absl::InvalidArgumentError("JSON refused at byte 0: byte order mark");
    Value value;
    SkipSpace();
    if (!ParseValue(&value)) return error_;
    SkipSpace();
    if (at_ != text_.size()) {
      Fail(at_, "something follows the value");
      return error_;
    }
    return value;
  }

 private:
  // A member's name as met, to find equal ones: `index` into the members of its object.
  struct Name {
    uint64_t hash;
    size_t index;
    size_t offset;
  };

  bool Fail(size_t at, std::string_view what) {
    error_ = absl::InvalidArgumentError("JSON refused at byte " + std::to_string(at) + ": " + std::string(what));
    return false;
  }

  bool AtEnd() const { return at_ == text_.size(); }
  bool At(char c) const { return !AtEnd() && text_[at_] == c; }

  void SkipSpace() {
    while (!AtEnd() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }

  bool ParseValue(Value* value) {
    if (AtEnd()) return Fail(at_, "the text ends where a value is expected");
    switch (text_[at_]) {
      case '{':
        return ParseObject(value);
      case '[':
        return ParseArray(value);
      case '"': {
        std::string string;
        if (!ParseString(&string)) return false;
        *value = Value(std::move(string));
        return true;
      }
      case 't':
        return ParseLiteral("true", Value(true), value);
      case 'f':
        return ParseLiteral("false", Value(false), value);
      case 'n':
        return ParseLiteral("null", Value(), value);
      default:
        return ParseNumber(value);
    }
  }

  bool ParseLiteral(std::string_view literal, Value means, Value* value) {
    if (!text_.substr(at_).starts_with(literal)) return Fail(at_, "not a JSON value");
    at_ += literal.size();
    *value = std::move(means);
    return true;
  }

  bool ParseNumber(Value* value) {
    const std::string_view rest = text_.substr(at_);
    const bool negative = rest[0] == '-';
    if (!negative && !IsDigit(rest[0])) return Fail(at_, "not a JSON value");
    size_t end = negative;
    while (end < rest.size() && IsDigit(rest[end])) ++end;
    const bool whole = end == rest.size() || (rest[end] != '.' && rest[end] != 'e' && rest[end] != 'E');
    const size_t digits = end - negative;
    if (whole && digits > 0 && digits <= kPlainDigitsMax && rest[negative] != '0') {
      at_ += end;
      *value = Value(Number::FromNormalText(rest.substr(0, end)));
      return true;
    }
    Decimal decimal;
    size_t length = 0;
    switch (ScanNumber(rest, &decimal, &length)) {
      case NumberScan::kMalformed:
        return Fail(at_ + length, "not a JSON number");
      case NumberScan::kExponentTooLarge:
        return Fail(at_, "the number's exponent is over 999999999999999");
      case NumberScan::kNumber:
        break;
    }
    at_ += length;
    *value = Value(Number(decimal));
    return true;
  }

  bool Enter() {
    if (++depth_ > depth_max_) return Fail(at_, "nested over " + std::to_string(depth_max_) + " levels");
    ++at_;
    SkipSpace();
    return true;
  }

  // After an element: true with *more set, or an error.
  bool Separator(char close, bool* more) {
    SkipSpace();
    *more = At(',');
    if (!*more && !At(close)) {
      return Fail(at_, close == ']' ? "expected ',' or ']' in an array" : "expected ',' or '}' in an object");
    }
    ++at_;
    if (*more) SkipSpace();
    return true;
  }

  bool ParseArray(Value* value) {
    if (!Enter()) return false;
    Array array;
    bool more = !At(']');
    if (!more) ++at_;
    while (more) {
      if (!ParseValue(&array.emplace_back())) return false;
      if (!Separator(']', &more)) return false;
    }
    --depth_;
    *value = Value(std::move(array));
    return true;
  }

  bool ParseObject(Value* value) {
    if (!Enter()) return false;
    std::vector<Member> members;
    const size_t names_before = names_.size();
    bool more = !At('}');
    if (!more) ++at_;
    if (more) members.reserve(4);
    while (more) {
      Member& member = members.emplace_back();
      const size_t offset = at_;
      if (!At('"')) return Fail(at_, "expected a member's name");
      if (!ParseString(&member.name)) return false;
      names_.push_back({FoldHash(member.name), members.size() - 1, offset});
      SkipSpace();
      if (!At(':')) return Fail(at_, "expected ':' after a member's name");
      ++at_;
      SkipSpace();
      if (!ParseValue(&member.value)) return false;
      if (!Separator('}', &more)) return false;
    }
    --depth_;
    if (!CheckNames(members, names_before)) return false;
    names_.resize(names_before);
    const auto less = [](const Member& a, const Member& b) { return Utf16Less(a.name, b.name); };
    if (!std::is_sorted(members.begin(), members.end(), less)) std::sort(members.begin(), members.end(), less);
    *value = Value(Object::FromSorted(std::move(members)));
    return true;
  }

  // Whether two names count as one and the same. Equal names have equal hashes, whichever way they are compared.
  std::strong_ordering CompareNames(const std::string& a, const std::string& b) const {
    return case_variants_ == CaseVariants::kRefuse ? FoldCompare(a, b) : a.compare(b) <=> 0;
  }

  bool FailSameName(const std::vector<Member>& members, Name a, Name b) {
    if (a.offset > b.offset) std::swap(a, b);
    const bool equal = members[a.index].name == members[b.index].name;
    return Fail(b.offset, (equal ? "the member has the same name as the one at byte "
                                 : "the member's name differs only by case from the one at byte ") +
                              std::to_string(a.offset));
  }

  bool CheckNames(const std::vector<Member>& members, size_t from) {
    const auto begin = names_.begin() + static_cast<ptrdiff_t>(from);
    const auto same = [&](const Name& a, const Name& b) {
      return a.hash == b.hash && CompareNames(members[a.index].name, members[b.index].name) == 0;
    };
    if (members.size() <= kPairwiseMax) {
      for (auto a = begin; a != names_.end(); ++a) {
        for (auto b = begin; b != a; ++b) {
          if (same(*b, *a)) return FailSameName(members, *b, *a);
        }
      }
      return true;
    }
    // By name below equal hashes, so that names made to collide cost no more than a sort.
    std::sort(begin, names_.end(), [&](const Name& a, const Name& b) {
      if (a.hash != b.hash) return a.hash < b.hash;
      return CompareNames(members[a.index].name, members[b.index].name) < 0;
    });
    const auto found = std::adjacent_find(begin, names_.end(), same);
    return found == names_.end() || FailSameName(members, *found, *(found + 1));
  }

  bool ParseString(std::string* out) {
    ++at_;
    for (;;) {
      size_t end = at_;
      while (end < text_.size() && IsPlain(text_[end])) ++end;
      out->append(text_.data() + at_, end - at_);
      at_ = end;
      if (AtEnd()) return Fail(at_, "the text ends inside a string");
      const unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!ParseEscape(out)) return false;
      } else if (c < 0x20) {
        return Fail(at_, "a control character stands unescaped in a string");
      } else {
        const size_t length = Utf8SequenceLength(text_.substr(at_));
        if (length == 0) return Fail(at_, "not UTF-8");
        out->append(text_, at_, length);
        at_ += length;
      }
    }
  }

  bool ParseEscape(std::string* out) {
    static constexpr std::string_view kEscapes = "\"\\/bfnrt";
    static constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const size_t start = at_++;
    if (AtEnd()) return Fail(at_, "the text ends inside a string");
    const size_t known = kEscapes.find(text_[at_]);
    if (known != std::string_view::npos) {
      out->push_back(kMeanings[known]);
      ++at_;
      return true;
    }
    if (text_[at_] != 'u') return Fail(start, "not a JSON escape");
    char32_t code_point = 0;
    if (!ParseCodeUnit(start, &code_point)) return false;
    if (code_point >= 0xD800 && code_point < 0xE000) {
      char32_t low = 0;
      if (code_point >= 0xDC00 || !text_.substr(at_).starts_with("\\u")) return Fail(start, "a lone surrogate");
      ++at_;
      if (!ParseCodeUnit(at_ - 1, &low)) return false;
      if (low < 0xDC00 || low >= 0xE000) return Fail(start, "a lone surrogate");
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(code_point, out);
    return true;
  }

  // At the 'u' of an escape that began at `start`.
  bool ParseCodeUnit(size_t start, char32_t* unit) {
    const std::string_view digits = text_.substr(at_ + 1, 4);
    for (char c : digits) {
      const int digit = HexDigit(c);
      if (digit < 0) return Fail(start, "\\u is not followed by four hexadecimal digits");
      *unit = *unit << 4 | static_cast<char32_t>(digit);
    }
    if (digits.size() < 4) return Fail(start, "\\u is not followed by four hexadecimal digits");
    at_ += 5;
    return true;
  }

  const std::string_view text_;
  const int depth_max_;
  const CaseVariants case_variants_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<Name> names_;  // of all objects that are open, the innermost last
  absl::Status error_;
};

}  // namespace

absl::StatusOr<Value> Parse(std::string_view text, const ParseOptions& options) {
  if (text.size() > options.bytes_max) {
    return absl::InvalidArgumentError("JSON refused: " + std::to_string(text.size()) + " bytes, over the limit of " +
                                      std::to_string(options.bytes_max));
  }
  return Parser(text, options).Run();
}

}  // namespace tally::json
