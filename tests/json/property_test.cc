#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/json/utf8.h"
#include "tests/json/fuzz_one.h"

namespace tally::json {
namespace {

using Bytes = std::vector<char>;

std::string Text(const Bytes& bytes) { return std::string(bytes.begin(), bytes.end()); }

rc::Gen<std::string> Digits(int at_least, int at_most) {
  return rc::gen::mapcat(rc::gen::inRange(at_least, at_most + 1), [](int count) {
    return rc::gen::container<std::string>(static_cast<size_t>(count), rc::gen::element('0', '0', '1', '4', '5', '9'));
  });
}

// A number as JSON may write it.
struct Written {
  std::string sign, whole, fraction, exponent_sign;
  int exponent = 0;

  std::string Text() const {
    return sign + whole + (fraction.empty() ? "" : "." + fraction) +
           (exponent == 0 ? "" : "e" + exponent_sign + std::to_string(exponent));
  }

  // The oracle: the value times 10^60, in plain decimal digits, by nothing but moving digits about.
  std::string Scaled() const {
    std::string digits = whole + fraction;
    const int signed_exponent = exponent_sign == "-" ? -exponent : exponent;
    const int zeros = 60 + signed_exponent - static_cast<int>(fraction.size());
    digits.append(static_cast<size_t>(zeros), '0');
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    return digits.empty() ? "0" : sign + digits;
  }
};

Written AnyNumber() {
  Written number;
  number.sign = *rc::gen::element<std::string>("", "-");
  number.whole = *Digits(1, 25);
  number.whole.erase(0, std::min(number.whole.find_first_not_of('0'), number.whole.size() - 1));
  number.fraction = *Digits(0, 25);
  number.exponent_sign = *rc::gen::element<std::string>("", "+", "-");
  number.exponent = *rc::gen::inRange(0, 31);
  return number;
}

Written Read(const std::string& text) {
  Written number;
  size_t at = 0;
  if (text[at] == '-') {
    number.sign = "-";
    ++at;
  }
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') number.whole.push_back(text[at++]);
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) number.fraction.push_back(text[at]);
  }
  if (at < text.size() && text[at] == 'e') {
    number.exponent_sign = text.substr(at + 1, 1);
    number.exponent = std::stoi(text.substr(at + 2));
  }
  return number;
}

RC_GTEST_PROP(NumberProperty, CanonicalFormKeepsTheExactValue, ()) {
  const Written number = AnyNumber();
  const std::string canonical = *Canonicalise(number.Text());
  RC_ASSERT(Read(canonical).Scaled() == number.Scaled());
  RC_ASSERT(canonical.size() <= number.Text().size() + 30);
}

RC_GTEST_PROP(NumberProperty, EqualValuesHaveEqualBytesAndOthersDoNot, ()) {
  const Written a = AnyNumber();
  const Written b = *rc::gen::inRange(0, 2) == 0 ? AnyNumber() : a;
  Written c = b;
  c.fraction.append(static_cast<size_t>(*rc::gen::inRange(0, 5)), '0');
  RC_ASSERT((*Canonicalise(a.Text()) == *Canonicalise(c.Text())) == (a.Scaled() == c.Scaled()));
}

RC_GTEST_PROP(NumberProperty, ComparisonIsThatOfTheExactValues, ()) {
  const Written a = AnyNumber();
  const Written b = AnyNumber();
  const auto oracle = [](const Written& x, const Written& y) -> std::strong_ordering {
    const std::string sx = x.Scaled(), sy = y.Scaled();
    const bool nx = sx[0] == '-', ny = sy[0] == '-';
    if (nx != ny) return nx ? std::strong_ordering::less : std::strong_ordering::greater;
    const auto magnitude = sx.size() != sy.size() ? sx.size() <=> sy.size() : sx.compare(sy) <=> 0;
    return nx ? 0 <=> magnitude : magnitude;
  };
  RC_ASSERT((Number::Parse(a.Text())->decimal() <=> Number::Parse(b.Text())->decimal()) == oracle(a, b));
}

TEST(NumberTest, EveryDoubleTakesItsRfc8785FormInBothSerialisers) {
  std::mt19937_64 random(8785);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = random();
    double number;
    __builtin_memcpy(&number, &bits, sizeof(number));
    if (!std::isfinite(number)) continue;
    std::string text;
    AppendDouble(number, &text);
    ASSERT_EQ(*Canonicalise(text), text);
    ASSERT_EQ(*CanonicalOfDoubles(*Parse(text)), text);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), number) << text;
  }
}

std::string AnyString() {
  const auto points = *rc::gen::container<std::vector<char32_t>>(
      rc::gen::element<char32_t>('a', 'b', 'c', 'x', '0', '~', '/', '"', '\\', '\n', 0, 0x1F, 0x7F, 0xE9, 0x20AC,
                                 0xD7FF, 0xE000, 0xFFFF, 0x1F602));
  std::string text;
  for (char32_t c : points) AppendUtf8(c, &text);
  return text;
}

// A tree made by another library, and so its text by another writer.
nlohmann::json AnyTree(int depth) {
  switch (*rc::gen::inRange(0, depth == 0 ? 4 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<int64_t>();
    case 3:
      return AnyString();
    case 4: {
      auto array = nlohmann::json::array();
      for (int i = *rc::gen::inRange(0, 5); i > 0; --i) array.push_back(AnyTree(depth - 1));
      return array;
    }
    default: {
      auto object = nlohmann::json::object();
      for (int i = *rc::gen::inRange(0, 5); i > 0; --i) object[AnyString()] = AnyTree(depth - 1);
      return object;
    }
  }
}

// The same value with members shuffled, space strewn in and characters escaped at random.
void WriteLoosely(const nlohmann::json& tree, std::mt19937* random, std::string* out) {
  const auto space = [&] { out->append((*random)() % 3, " \t\n\r"[(*random)() % 4]); };
  const auto string = [&](const std::string& s) {
    out->append(nlohmann::json(s).dump(-1, ' ', /*ensure_ascii=*/(*random)() % 2 == 0));
  };
  space();
  if (tree.is_object()) {
    std::vector<std::string> names;
    for (const auto& member : tree.items()) names.push_back(member.key());
    std::shuffle(names.begin(), names.end(), *random);
    out->push_back('{');
    for (size_t i = 0; i < names.size(); ++i) {
      if (i > 0) out->push_back(',');
      space();
      string(names[i]);
      space();
      out->push_back(':');
      WriteLoosely(tree[names[i]], random, out);
    }
    out->push_back('}');
  } else if (tree.is_array()) {
    out->push_back('[');
    for (size_t i = 0; i < tree.size(); ++i) {
      if (i > 0) out->push_back(',');
      WriteLoosely(tree[i], random, out);
    }
    out->push_back(']');
  } else if (tree.is_string()) {
    string(tree.get<std::string>());
  } else {
    out->append(tree.dump());
  }
  space();
}

RC_GTEST_PROP(CanonicalProperty, OrderSpaceAndEscapesMakeNoDifferenceAndTheResultIsStable, ()) {
  const nlohmann::json tree = AnyTree(4);
  std::mt19937 random(*rc::gen::arbitrary<uint32_t>());
  std::string loose;
  WriteLoosely(tree, &random, &loose);
  const auto bytes = Canonicalise(loose);
  RC_ASSERT(bytes.ok());
  RC_ASSERT(bytes == Canonicalise(tree.dump()));
  RC_ASSERT(*Canonicalise(*bytes) == *bytes);
  RC_ASSERT(nlohmann::json::parse(*bytes) == tree);
  RC_ASSERT(FuzzOne(loose));
}

RC_GTEST_PROP(AdmissionProperty, RandomBytesNeverBreakAPromise, ()) {
  FuzzOne(Text(*rc::gen::arbitrary<Bytes>()));
  // Bytes that JSON is made of get further.
  FuzzOne(Text(*rc::gen::container<Bytes>(rc::gen::element('{', '}', '[', ']', ':', ',', '"', '\\', 'u', 'd', '8', '0',
                                                           '-', '.', 'e', '1', ' ', 'n', 't', '\0', '\xC3', '\xA9'))));
}

RC_GTEST_PROP(AdmissionProperty, MutatedTextsNeverBreakAPromise, ()) {
  std::string text = AnyTree(3).dump();
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    const size_t at = *rc::gen::inRange<size_t>(0, text.size() + 1);
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        text.insert(at, 1, *rc::gen::arbitrary<char>());
        break;
      case 1:
        text.erase(at, 1);
        break;
      default:
        text = text.substr(0, at);
    }
  }
  FuzzOne(text);
}

}  // namespace
}  // namespace tally::json
