#include "lib/schema/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tally::schema {
namespace {

using namespace std::string_view_literals;

// "yes", "no", or why the pattern is refused.
std::string Matches(std::string_view pattern, std::string_view text) {
  const auto compiled = Pattern::Compile(pattern);
  if (!compiled.ok()) return std::string(compiled.status().message());
  return compiled->Matches(text) ? "yes" : "no";
}

struct Case {
  std::string_view pattern, text, answer;
};

void Expect(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(Matches(c.pattern, c.text), c.answer) << c.pattern << " on " << c.text;
}

TEST(PatternTest, SearchesAnywhereUnlessAnchored) {
  Expect({{"a+", "xaay", "yes"},
          {"^a+$", "xaay", "no"},
          {"", "anything", "yes"},
          {"a|b", "xxb", "yes"},
          {"A", "a", "no"},
          {"^$", "", "yes"}});
}

TEST(PatternTest, DollarIsTheVeryEndAndCaretTheVeryBeginning) {
  Expect({{"^a$", "a\n", "no"}, {"^a$", "\na", "no"}, {"a$", "a\nb", "no"}, {"^b", "a\nb", "no"}});
}

TEST(PatternTest, DotIsEverythingButLineTerminators) {
  Expect({{"^.$", "a", "yes"},
          {"^.$", "\u20AC", "yes"},
          {"^.$", "\U0001F602", "yes"},
          {"^.$", "\n", "no"},
          {"^.$", "\r", "no"},
          {"^.$", "\u2028", "no"},
          {"^.$", "\u2029", "no"},
          {"^.$", "\u0085", "yes"},
          {"^.$", "\0"sv, "yes"}});
}

TEST(PatternTest, ShorthandClassesAreThoseOfEcmaScript) {
  Expect({{R"(^\d$)", "7", "yes"},
          {R"(^\d$)", "\u0667", "no"},  // Arabic-Indic seven
          {R"(^\D$)", "\u0667", "yes"},
          {R"(^\w$)", "_", "yes"},
          {R"(^\w$)", "\u00E9", "no"},
          {R"(^\W$)", "\u00E9", "yes"},
          {R"(^\W$)", "\n", "yes"},
          {R"(^\s$)", "\v", "yes"},
          {R"(^\s$)", "\u00A0", "yes"},
          {R"(^\s$)", "\uFEFF", "yes"},
          {R"(^\s$)", "\u2003", "yes"},
          {R"(^\s$)", "\u2029", "yes"},
          {R"(^\s$)", "\u200B", "no"},
          {R"(^\S$)", "\u00A0", "no"},
          {R"(^\S$)", "\u200B", "yes"},
          {R"(^[\s\d]+$)", " 7\u3000", "yes"},
          {R"(^[^\S]$)", "\u1680", "yes"},
          {R"(^[\S]$)", "\u1680", "no"},
          {R"(^[\s\S]$)", "\n", "yes"},
          {R"(^[\w.-]+$)", "a.b-c_d", "yes"},
          {R"(\bfoo\b)", "a foo b", "yes"},
          {R"(\bfoo\b)", "afoo", "no"},
          {R"(\bfoo\b)", "\u00E9foo\u00E9", "yes"}});
}

TEST(PatternTest, EscapesMeanOneCharacter) {
  Expect({{R"(^\x41$)", "A", "yes"},
          {R"(^\u0041$)", "A", "yes"},
          {R"(^\u{1F602}$)", "\U0001F602", "yes"},
          {R"(^\ud83d\ude02$)", "\U0001F602", "yes"},
          {R"(^[\ud83d\ude02]$)", "\U0001F602", "yes"},
          {R"(^\cJ$)", "\n", "yes"},
          {R"(^\cj$)", "\n", "yes"},
          {R"(^\t\n\v\f\r$)", "\t\n\v\f\r", "yes"},
          {R"(^\0$)", "\0"sv, "yes"},
          {R"(^[\b]$)", "\b", "yes"},
          {R"(^\.$)", ".", "yes"},
          {R"(^\.$)", "a", "no"},
          {R"(^\/\-\_\@\"$)", "/-_@\"", "yes"},
          {R"(^\^\$\\\*\+\?\(\)\[\]\{\}\|$)", "^$\\*+?()[]{}|", "yes"}});
}

TEST(PatternTest, ClassesAreThoseOfEcmaScriptNotOfPosix) {
  Expect({{"^[[:alpha:]]$", "a", "no"},
          {"^[[:alpha:]]$", "a]", "yes"},
          {"^[[:alpha:]]$", ":]", "yes"},
          {"[]", "a", "no"},
          {"^[^]$", "\n", "yes"},
          {"^[a-]$", "-", "yes"},
          {"^[-a]$", "-", "yes"},
          {"^[a^]$", "^", "yes"},
          {"^[^a]$", "\n", "yes"},
          {"^[a-c]+$", "abc", "yes"},
          {R"(^[\x41-\u0043]+$)", "ABC", "yes"},
          {"^[\u00E0-\u00FF]$", "\u00E9", "yes"},
          {"^[(?=.*]$", "?", "yes"},
          {"^[\\]]$", "]", "yes"}});
}

TEST(PatternTest, QuantifiersAndGroups) {
  Expect({{"^a{2}$", "aa", "yes"},
          {"^a{2,}$", "aaa", "yes"},
          {"^a{1,2}$", "aaa", "no"},
          {"^a{,2}$", "a{,2}", "yes"},
          {"^{$", "{", "yes"},
          {"^a{x}$", "a{x}", "yes"},
          {"^a+?b*?c??$", "aab", "yes"},
          {"^(?:ab)+$", "abab", "yes"},
          {"^(ab|(c))+$", "abc", "yes"},
          {"^(?<year>\\d{4})$", "2024", "yes"},
          {"^(|a)$", "", "yes"}});
}

TEST(PatternTest, PropertiesAreCategoriesAndScripts) {
  Expect({{R"(^\p{L}+$)", "a\u00E9\u0416", "yes"},
          {R"(^\p{Lu}$)", "a", "no"},
          {R"(^\P{L}$)", "1", "yes"},
          {R"(^\p{Script=Greek}$)", "\u03B1", "yes"},
          {R"(^\p{sc=Greek}$)", "a", "no"},
          {R"(^[\p{gc=Nd}_]$)", "\u0667", "yes"}});
}

TEST(PatternTest, WhatCannotRunInLinearTimeIsRefusedBySayingSo) {
  EXPECT_THAT(Matches("(?=a)", ""), testing::HasSubstr("looks ahead"));
  EXPECT_THAT(Matches("^(?!foo)", ""), testing::HasSubstr("looks ahead"));
  EXPECT_THAT(Matches("(?<=a)", ""), testing::HasSubstr("looks behind"));
  EXPECT_THAT(Matches("(?<!a)", ""), testing::HasSubstr("looks behind"));
  EXPECT_THAT(Matches(R"((a)\1)", ""), testing::HasSubstr("refers back"));
  EXPECT_THAT(Matches(R"((?<x>a)\k<x>)", ""), testing::HasSubstr("refers back"));
  EXPECT_THAT(Matches(R"(\Bfoo)", ""), testing::HasSubstr("inside a character"));
  EXPECT_THAT(Matches("a{1001}", ""), testing::HasSubstr("RE2"));
  EXPECT_THAT(Matches("((a{100}){100}){100}", ""), testing::HasSubstr("RE2"));
  EXPECT_THAT(Matches(std::string(kPatternBytesMax + 1, 'a'), ""), testing::HasSubstr("4096"));
}

TEST(PatternTest, WhatEcmaScriptDoesNotHaveIsRefused) {
  for (std::string_view pattern : {R"(^\S(|(.|\n)*\S)\Z)"sv,
                                   R"(\A)"sv,
                                   R"(\z)"sv,
                                   R"(\a)"sv,
                                   R"(\e)"sv,
                                   R"(\Q.\E)"sv,
                                   R"(\C)"sv,
                                   R"(\h)"sv,
                                   R"(\G)"sv,
                                   "(?i)a"sv,
                                   "(?P<x>a)"sv,
                                   "(?s:.)"sv,
                                   "(?#c)"sv,
                                   "(?>a)"sv,
                                   R"(\pL)"sv,
                                   R"(\p{Greek})"sv,
                                   R"(\p{^L})"sv,
                                   R"(\p{})"sv,
                                   R"(\p)"sv,
                                   R"(\p{L)"sv,
                                   R"(\01)"sv,
                                   R"(\x4)"sv,
                                   R"(\u12)"sv,
                                   R"(\u{})"sv,
                                   R"(\u{110000})"sv,
                                   R"(\ud800)"sv,
                                   R"(\u{d800})"sv,
                                   R"(\c1)"sv,
                                   R"(\)"sv,
                                   "["sv,
                                   "[a"sv,
                                   R"([\])"sv,
                                   "[b-a]"sv,
                                   R"([\w-z])"sv,
                                   R"([a-\d])"sv,
                                   R"([\B])"sv,
                                   R"([\1])"sv,
                                   "("sv,
                                   ")"sv,
                                   "*"sv,
                                   "a**"sv,
                                   "a++"sv,
                                   "a{2}{3}"sv,
                                   "a{2,1}"sv,
                                   "(?<>a)"sv,
                                   "(?<a>b)(?<a>c)"sv,
                                   "(?<1-2>a)"sv,
                                   "(?"sv}) {
    EXPECT_FALSE(Pattern::Compile(pattern).ok()) << pattern;
  }
}

// These take other engines exponential time, or their whole stack.
TEST(PatternTest, HostilePatternsEndOnLongTexts) {
  const std::string as(256 * 1024, 'a');
  for (const char* pattern : {"(a+)+$", "(a|aa)+$", "^(a+)+$", "^(a|a?)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*$",
                              "^(.*?,){11}P", "^[a-z ]*$", "(a*)*b", "^(a?){1000}a{1000}$"}) {
    const auto compiled = Pattern::Compile(pattern);
    ASSERT_TRUE(compiled.ok()) << pattern;
    compiled->Matches(as);
    compiled->Matches(as + "!");
  }
  EXPECT_EQ(Matches("^[a-z ]*$", as), "yes");
  EXPECT_EQ(Matches("^[a-z ]*$", as + "!"), "no");
  EXPECT_EQ(Matches("^(a+)+$", as), "yes");
  EXPECT_EQ(Matches("^(a|aa)+$", as + "!"), "no");
}

TEST(PatternTest, StepsGrowWithTextAndProgram) {
  const auto small = Pattern::Compile("a");
  const auto large = Pattern::Compile("[ab]*a[ab]{500}c");
  EXPECT_GT(large->Steps("0123456789"), small->Steps("0123456789"));
  EXPECT_GT(large->Steps(std::string(1000, 'a')), 50 * large->Steps("0123456789"));
}

}  // namespace
}  // namespace tally::schema
