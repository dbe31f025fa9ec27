// Templates: whatever an agent wrote, what comes out has the structure that was configured and holds exactly the value.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/json/utf8.h"
#include "reconciler/template/body.h"
#include "reconciler/template/url.h"

namespace tally::reconciler {
namespace {

constexpr char kReference[] = "0123456789abcdef0123456789abcdef";

// Texts that look like structure wherever they are put.
rc::Gen<std::string> Nasty() {
  static const std::vector<std::string> kPieces = {"'",
                                                   "\"",
                                                   "\\",
                                                   "{",
                                                   "}",
                                                   "{reference}",
                                                   "{argument:/x}",
                                                   "{{",
                                                   "}}",
                                                   "%",
                                                   "%2f",
                                                   "%00",
                                                   "&",
                                                   "=",
                                                   "?",
                                                   "#",
                                                   "/",
                                                   "..",
                                                   ".",
                                                   ";",
                                                   ":",
                                                   "\r\n",
                                                   "\n",
                                                   "\t",
                                                   " ",
                                                   "+",
                                                   "a",
                                                   "Z",
                                                   "0",
                                                   "$ne",
                                                   "' OR 1=1 --",
                                                   "' OR metadata['x']:'",
                                                   "\xc3\xbc",
                                                   "\xf0\x9f\x92\xb8",
                                                   "\xe2\x80\xa8",
                                                   std::string(1, '\0'),
                                                   "\x7f",
                                                   "<",
                                                   ">",
                                                   "[",
                                                   "]",
                                                   "(",
                                                   ")",
                                                   "*",
                                                   ",",
                                                   "|",
                                                   "http://x/"};
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(kPieces)),
                      [](const std::vector<std::string>& pieces) {
                        std::string text;
                        for (const std::string& piece : pieces) text += piece;
                        return text;
                      });
}

Values With(json::Value x) {
  json::Object arguments;
  arguments.Set("x", std::move(x));
  return {kReference, "fedcba9876543210fedcba9876543210", "01900000-0000-7000-8000-000000000001",
          json::Value(std::move(arguments))};
}

int Hex(char c) { return c <= '9' ? c - '0' : (c | 32) - 'a' + 10; }

// A decoder that knows nothing of the encoder.
std::string Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      out += static_cast<char>(Hex(text.at(i + 1)) * 16 + Hex(text.at(i + 2)));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == text.npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::map<std::string, std::string> Fields(std::string_view form) {
  std::map<std::string, std::string> fields;
  for (const std::string& pair : SplitAt(form, '&')) {
    const size_t equals = pair.find('=');
    RC_ASSERT(equals != std::string::npos);
    RC_ASSERT(fields.emplace(Decoded(pair.substr(0, equals)), Decoded(pair.substr(equals + 1))).second);
  }
  return fields;
}

RC_GTEST_PROP(UrlTemplate, AnArgumentStaysInItsQueryValueAndIsFoundThereExactly, ()) {
  const std::string value = *Nasty();
  static const auto url =
      UrlTemplate::Parse("https://api.example.com:8443/v1/a b/find?first=1&q={argument:/x}&ref=r:'{reference}'&last");
  const auto filled = url->Fill(With(json::Value(value)));
  RC_ASSERT(filled.ok());
  const std::string expected_start = "https://api.example.com:8443/v1/a%20b/find?";
  RC_ASSERT(filled->starts_with(expected_start));
  for (const char c : *filled) RC_ASSERT(c > ' ' && c < 0x7f && c != '#' && c != '\\' && c != '"');
  const auto pairs = SplitAt(filled->substr(expected_start.size()), '&');
  RC_ASSERT(pairs.size() == 4u);
  RC_ASSERT(pairs[0] == "first=1");
  RC_ASSERT(pairs[1].starts_with("q="));
  RC_ASSERT(Decoded(pairs[1].substr(2)) == value);
  RC_ASSERT(Decoded(pairs[2]) == std::string("ref=r:'") + kReference + "'");
  RC_ASSERT(pairs[3] == "last");
}

RC_GTEST_PROP(UrlTemplate, AnArgumentIsOneSegmentOfThePathOrNothingIsAsked, ()) {
  const std::string value = *Nasty();
  static const auto url = UrlTemplate::Parse("https://h/v1/{argument:/x}/refunds/{reference}.json");
  const auto filled = url->Fill(With(json::Value(value)));
  if (value.empty() || value == "." || value == "..") {
    RC_ASSERT(!filled.ok());
    return;
  }
  RC_ASSERT(filled.ok());
  RC_ASSERT(filled->starts_with("https://h/"));
  RC_ASSERT(filled->find('?') == std::string::npos);
  const auto segments = SplitAt(filled->substr(10), '/');
  RC_ASSERT(segments.size() == 4u);
  RC_ASSERT(segments[0] == "v1");
  RC_ASSERT(Decoded(segments[1]) == value);
  RC_ASSERT(segments[2] == "refunds");
  RC_ASSERT(segments[3] == std::string(kReference) + ".json");
}

RC_GTEST_PROP(FormTemplate, AnArgumentStaysInItsField, ()) {
  const std::string value = *Nasty();
  FormTemplate form;
  RC_ASSERT(form.Add("a&b=", "{argument:/x}").ok());
  RC_ASSERT(form.Add("query", "ref = '{reference}' & more").ok());
  const auto filled = form.Fill(With(json::Value(value)));
  RC_ASSERT(filled.ok());
  const auto fields = Fields(*filled);
  RC_ASSERT(fields.size() == 2u);
  RC_ASSERT(fields.at("a&b=") == value);
  RC_ASSERT(fields.at("query") == std::string("ref = '") + kReference + "' & more");
}

RC_GTEST_PROP(JsonTemplate, AnArgumentStaysOneScalar, ()) {
  const std::string value = *Nasty();
  static const auto made = JsonTemplate::Parse(
      R"({"find": {"customer": "{argument:/x}", "ref": "t-{reference}"}, "limit": 2, "l": ["{{}}"]})");
  const auto filled = made->Fill(With(json::Value(value)));
  RC_ASSERT(filled.ok());
  // As the provider parses it.
  const auto parsed = json::Parse(json::Canonical(*filled), {.case_variants = json::CaseVariants::kAdmit});
  RC_ASSERT(parsed.ok());
  json::Object find;
  find.Set("customer", json::Value(value));
  find.Set("ref", json::Value(std::string("t-") + kReference));
  json::Object whole;
  whole.Set("find", json::Value(find));
  whole.Set("limit", json::Value(int64_t{2}));
  whole.Set("l", json::Value(json::Array{json::Value("{}")}));
  RC_ASSERT(*parsed == json::Value(whole));
}

RC_GTEST_PROP(HeaderTemplate, AnArgumentIsTheWholeHeaderOrNothingIsAsked, ()) {
  const std::string value = *Nasty();
  static const auto header = HeaderTemplate::Parse("{argument:/x}");
  const auto filled = header->Fill(With(json::Value(value)));
  bool sound = !value.starts_with(' ') && !value.ends_with(' ');
  for (const char c : value) sound = sound && c >= ' ' && c < 0x7f;
  RC_ASSERT(filled.ok() == sound);
  if (sound) RC_ASSERT(*filled == value);
}

RC_GTEST_PROP(Text, WhatIsNotATemplateIsTakenLiterallyOnceItsBracesAreDoubled, ()) {
  const std::string value = *Nasty();
  std::string doubled;
  for (const char c : value) doubled += (c == '{' || c == '}') ? std::string(2, c) : std::string(1, c);
  const auto text = Text::Parse(doubled);
  RC_ASSERT(text.ok());
  RC_ASSERT(text->IsLiteral());
  RC_ASSERT(*text->Fill(With(json::Value())) == value);
}

}  // namespace
}  // namespace tally::reconciler
