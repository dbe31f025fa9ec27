#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "reconciler/template/body.h"
#include "reconciler/template/url.h"

namespace tally::reconciler {
namespace {

using ::testing::HasSubstr;

Values Some(const char* arguments = R"({"s": "a b", "n": 12.50, "t": true, "z": null, "o": {"$ne": 1}, "l": [1]})") {
  return {"0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210",
          "01900000-0000-7000-8000-000000000001", *json::Parse(arguments)};
}

std::string WhyNotUrl(const char* text) {
  const auto url = UrlTemplate::Parse(text);
  return url.ok() ? "" : std::string(url.status().message());
}

TEST(UrlTemplate, WhereAQuestionGoesIsLiteral) {
  EXPECT_THAT(WhyNotUrl("https://{argument:/host}/x"), HasSubstr("placeholder in its host"));
  EXPECT_THAT(WhyNotUrl("https://{reference}.example.com/x"), HasSubstr("placeholder in its host"));
  EXPECT_THAT(WhyNotUrl("https://example.com:{argument:/p}/x"), HasSubstr("placeholder in its host"));
  EXPECT_THAT(WhyNotUrl("{argument:/scheme}://example.com/x"), HasSubstr("must begin with https://"));
  EXPECT_THAT(WhyNotUrl("ftp://example.com/x"), HasSubstr("must begin with https://"));
  EXPECT_THAT(WhyNotUrl("https://user:pw@example.com/"), HasSubstr("secret_headers"));
  EXPECT_THAT(WhyNotUrl("https://exam_ple.com/"), HasSubstr("no host"));
  EXPECT_THAT(WhyNotUrl("https:///x"), HasSubstr("no host"));
  EXPECT_THAT(WhyNotUrl("https://example.com:0/x"), HasSubstr("no port"));
  EXPECT_THAT(WhyNotUrl("https://example.com:65536/x"), HasSubstr("no port"));
  EXPECT_THAT(WhyNotUrl("https://[::1/x"), HasSubstr("brackets"));
  EXPECT_EQ(WhyNotUrl("https://[::1]:65535/x"), "");
  EXPECT_EQ(WhyNotUrl("http://127.0.0.1:1"), "");
}

TEST(UrlTemplate, AnArgumentInsideALargerTextIsRefusedAndItIsSaidWhy) {
  for (const char* text : {"https://h/x?query=customer:'{argument:/c}'", "https://h/x?q={argument:/a}{argument:/b}",
                           "https://h/id-{argument:/c}/x", "https://h/x?q={reference}{argument:/c}"}) {
    EXPECT_THAT(WhyNotUrl(text), HasSubstr("inside a larger text")) << text;
  }
  EXPECT_EQ(WhyNotUrl("https://h/x?query=metadata['ref']:'{reference}' AND key:'{provider_key}'"), "");
}

TEST(UrlTemplate, OtherPlacesTakeNoPlaceholder) {
  EXPECT_THAT(WhyNotUrl("https://h/x?{reference}"), HasSubstr("not in a value"));
  EXPECT_THAT(WhyNotUrl("https://h/x?{reference}=1"), HasSubstr("not in a value"));
  EXPECT_THAT(WhyNotUrl("https://h/x?a=1#{reference}"), HasSubstr("fragment"));
  EXPECT_THAT(WhyNotUrl("https://h/../x"), HasSubstr("\"..\""));
  EXPECT_THAT(WhyNotUrl("https://h/%zz"), HasSubstr("two hex digits"));
  EXPECT_THAT(WhyNotUrl("https://h/{reference"), HasSubstr("not closed"));
  EXPECT_THAT(WhyNotUrl("https://h/}"), HasSubstr("closes nothing"));
  EXPECT_THAT(WhyNotUrl("https://h/{argument:x}"), HasSubstr("JSON pointer"));
  EXPECT_THAT(WhyNotUrl("https://h/{argument:}"), HasSubstr("JSON pointer"));
  EXPECT_THAT(WhyNotUrl("https://h/{ref}"), HasSubstr("no placeholder"));
}

TEST(UrlTemplate, ComesOutAsWritten) {
  const auto filled = [](const char* text) { return *UrlTemplate::Parse(text)->Fill(Some()); };
  EXPECT_EQ(filled("https://h"), "https://h/");
  EXPECT_EQ(filled("https://h/"), "https://h/");
  EXPECT_EQ(filled("https://h?a=1"), "https://h/?a=1");
  EXPECT_EQ(filled("https://h/a//b/"), "https://h/a//b/");
  EXPECT_EQ(filled("https://h/a%2Fb?x=%20+y&&z&=q?"), "https://h/a%2Fb?x=%20+y&&z&=q?");
  EXPECT_EQ(filled("https://h/{call_id}?q=m['r']:\"{reference}\""),
            "https://h/01900000-0000-7000-8000-000000000001?q=m%5B'r'%5D:%220123456789abcdef0123456789abcdef%22");
  EXPECT_EQ(filled("https://h/{argument:/n}/{argument:/t}?s={argument:/s}"), "https://h/12.5/true?s=a%20b");
  EXPECT_EQ(filled("https://h/{{x}}"), "https://h/%7Bx%7D");
}

TEST(Placeholders, OnlyScalarsThatAreThereAreFilledIn) {
  for (const char* pointer : {"/z", "/o", "/l", "/none", "/s/x"}) {
    const std::string placeholder = std::string("{argument:") + pointer + "}";
    const auto url = UrlTemplate::Parse("https://h/x?q=" + placeholder);
    ASSERT_TRUE(url.ok());
    EXPECT_THAT(url->Fill(Some()).status().message(), HasSubstr("nothing was asked")) << pointer;
    EXPECT_FALSE(JsonTemplate::Parse("[\"" + placeholder + "\"]")->Fill(Some()).ok()) << pointer;
    EXPECT_FALSE(HeaderTemplate::Parse(placeholder)->Fill(Some()).ok()) << pointer;
  }
}

TEST(JsonTemplate, ANumberStaysANumber) {
  const auto made = JsonTemplate::Parse(R"(["{argument:/n}", "{argument:/t}", "{argument:/s}", "{reference}", 1])");
  EXPECT_EQ(json::Canonical(*made->Fill(Some())), R"([12.5,true,"a b","0123456789abcdef0123456789abcdef",1])");
}

TEST(JsonTemplate, RefusesWhatCouldBendIt) {
  const auto why = [](const char* text) { return std::string(JsonTemplate::Parse(text).status().message()); };
  EXPECT_THAT(why(R"({"a": ["x {argument:/s}"]})"), HasSubstr("at /a/0"));
  EXPECT_THAT(why(R"({"{reference}": 1})"), HasSubstr("names are literal"));
  EXPECT_THAT(why(R"({"a": 1, "a": 2})"), HasSubstr("JSON"));
  EXPECT_THAT(why(R"({"a": {argument:/s}})"), HasSubstr("JSON"));
  EXPECT_TRUE(JsonTemplate::Parse(R"({"a": "ref:{reference}"})").ok());
}

TEST(HeaderTemplate, RefusesControlCharactersInItsLiteralsToo) {
  EXPECT_FALSE(HeaderTemplate::Parse("a\r\nB: c").ok());
  EXPECT_FALSE(HeaderTemplate::Parse("Bearer {argument:/s}").ok());
  EXPECT_EQ(*HeaderTemplate::Parse("ref={reference}")->Fill(Some()), "ref=0123456789abcdef0123456789abcdef");
}

}  // namespace
}  // namespace tally::reconciler
