#include "lib/json/fold.h"

#include <algorithm>
#include <iterator>

#include "lib/json/utf8.h"

namespace tally::json {
namespace {

struct FoldRun {
  char32_t first;
  char32_t last;
  uint32_t stride;
  int32_t delta;
};

struct FoldMany {
  char32_t from;
  char32_t to[3];
};

#include "lib/json/fold_table.inc"

constexpr std::string_view kDotAbove = "\xCC\x87";  // U+0307

constexpr char32_t FoldAscii(char32_t c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

// A name's folded code points, one at a time.
class Folded {
 public:
  explicit Folded(std::string_view name) : rest_(name) {}

  // False at the end.
  bool Next(char32_t* code_point) {
    if (pending_ != nullptr && *pending_ != 0 && pending_ != pending_end_) {
      *code_point = *pending_++;
      return true;
    }
    if (rest_.empty()) return false;
    const char32_t c = TakeCodePoint(&rest_);
    *code_point = c < 0x80 ? FoldAscii(c) : Lookup(c);
    if (*code_point == 'i') SkipDot();
    return true;
  }

 private:
  // U+0130 folds to i with a combining dot for some, to i for others: so the dot over an i never counts.
  void SkipDot() {
    while (rest_.starts_with(kDotAbove)) rest_.remove_prefix(kDotAbove.size());
  }

  char32_t Lookup(char32_t c) {
    const auto many =
        std::lower_bound(std::begin(kFoldMany), std::end(kFoldMany), c,
                         [](const FoldMany& entry, char32_t code_point) { return entry.from < code_point; });
    if (many != std::end(kFoldMany) && many->from == c) {
      pending_ = many->to + 1;
      pending_end_ = std::end(many->to);
      return many->to[0];
    }
    const auto run =
        std::lower_bound(std::begin(kFoldRuns), std::end(kFoldRuns), c,
                         [](const FoldRun& entry, char32_t code_point) { return entry.last < code_point; });
    if (run == std::end(kFoldRuns) || c < run->first || (c - run->first) % run->stride != 0) return c;
    return static_cast<char32_t>(static_cast<int64_t>(c) + run->delta);
  }

  std::string_view rest_;
  const char32_t* pending_ = nullptr;
  const char32_t* pending_end_ = nullptr;
};

}  // namespace

std::string Fold(std::string_view name) {
  std::string folded;
  Folded points(name);
  for (char32_t c; points.Next(&c);) AppendUtf8(c, &folded);
  return folded;
}

std::strong_ordering FoldCompare(std::string_view a, std::string_view b) {
  Folded points_a(a);
  Folded points_b(b);
  for (;;) {
    char32_t c_a = 0;
    char32_t c_b = 0;
    const bool more_a = points_a.Next(&c_a);
    const bool more_b = points_b.Next(&c_b);
    if (!more_a || !more_b) return more_a <=> more_b;
    if (c_a != c_b) return c_a <=> c_b;
  }
}

uint64_t FoldHash(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a code point a round
  const auto add = [&hash](char32_t c) { hash = (hash ^ c) * 0x100000001b3; };
  uint64_t before_last = hash;
  size_t ascii = 0;
  for (; ascii < name.size() && static_cast<unsigned char>(name[ascii]) < 0x80; ++ascii) {
    before_last = hash;
    add(FoldAscii(static_cast<unsigned char>(name[ascii])));
  }
  // The last one goes with the rest: it may be an i, whose dots do not count.
  if (ascii > 0 && ascii < name.size()) {
    --ascii;
    hash = before_last;
  }
  Folded points(name.substr(ascii));
  for (char32_t c; points.Next(&c);) add(c);
  return hash;
}

}  // namespace tally::json
