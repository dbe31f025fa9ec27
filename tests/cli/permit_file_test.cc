#include "cli/permit_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "google/protobuf/util/message_differencer.h"

namespace tally::cli {
namespace {

// The contract's example, as it stands there.
constexpr char kExample[] = R"(tenant = "acme"
subject = "support-agent-7"
unit = "USD/2"
budget = 50000                 # minor units; 500.00 USD; or "unlimited"
expires_in = "24h"

[[grant]]
tool = "payments__refund"
cap = 3                        # or "unlimited"
budget = 30000
per_call = 10000
cost = { pointer = "/amount" } # or { fixed = 25 }, or "caller", or "none"
effect = "write"
intent_scope = "subject"
intent_ignore = ["/request_id"]
repeat_window = "10m"
on_tool_error = "keep"
lease = "120s"
send_within = "10s"
max_attempts = 5
arguments = { type = "object", required = ["customer", "amount"], additionalProperties = false, properties = { customer = { type = "string" }, amount = { type = "integer", maximum = 10000 }, request_id = { type = "string" } } }
)";

constexpr char kExampleJson[] = R"({
  "tenant": "acme", "subject": "support-agent-7", "unit": "USD/2", "budget": 50000, "expires_in": "24h",
  "grant": [{
    "tool": "payments__refund", "cap": 3, "budget": 30000, "per_call": 10000, "cost": {"pointer": "/amount"},
    "effect": "write", "intent_scope": "subject", "intent_ignore": ["/request_id"], "repeat_window": "10m",
    "on_tool_error": "keep", "lease": "120s", "send_within": "10s", "max_attempts": 5,
    "arguments": {"type": "object", "required": ["customer", "amount"], "additionalProperties": false,
      "properties": {"customer": {"type": "string"}, "amount": {"type": "integer", "maximum": 10000},
                     "request_id": {"type": "string"}}}
  }]
})";

constexpr char kHead[] = "tenant = 'acme'\nsubject = 's'\nunit = 'USD/2'\nbudget = 'unlimited'\nexpires_in = '1h'\n";
constexpr char kGrant[] = "[[grant]]\ntool = 't'\ncap = 1\nbudget = 0\ncost = 'none'\n";

std::string Error(const std::string& text) {
  auto mint = ParsePermitFile(text);
  return mint.ok() ? "" : std::string(mint.status().message());
}

// What the example becomes when `from` is replaced by `to` in it.
std::string ErrorWith(const std::string& from, const std::string& to) {
  std::string text = kExample;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return Error(text);
}

TEST(PermitFile, TheContractsExampleIsReadTermByTerm) {
  const auto mint = ParsePermitFile(kExample);
  ASSERT_TRUE(mint.ok()) << mint.status();
  EXPECT_EQ(mint->tenant(), "acme");
  EXPECT_EQ(mint->subject(), "support-agent-7");
  EXPECT_EQ(mint->unit(), "USD/2");
  EXPECT_EQ(mint->budget().at_most(), 50000);
  EXPECT_EQ(mint->expires_in_ms(), 86'400'000);
  EXPECT_EQ(mint->expires_at_us(), 0);
  ASSERT_EQ(mint->grants_size(), 1);
  const v1::GrantTerms& grant = mint->grants(0);
  EXPECT_EQ(grant.tool(), "payments__refund");
  EXPECT_EQ(grant.cap().at_most(), 3);
  EXPECT_EQ(grant.budget().at_most(), 30000);
  EXPECT_EQ(grant.per_call().at_most(), 10000);
  EXPECT_EQ(grant.cost().pointer(), "/amount");
  EXPECT_EQ(grant.effect(), v1::WRITE);
  EXPECT_EQ(grant.intent_scope(), v1::INTENT_SCOPE_SUBJECT);
  ASSERT_EQ(grant.intent_ignore_size(), 1);
  EXPECT_EQ(grant.intent_ignore(0), "/request_id");
  EXPECT_EQ(grant.repeat_window_ms(), 600'000);
  EXPECT_EQ(grant.on_tool_error(), v1::KEEP);
  EXPECT_EQ(grant.lease_ms(), 120'000);
  EXPECT_EQ(grant.send_within_ms(), 10'000);
  EXPECT_EQ(grant.max_attempts(), 5);
  EXPECT_EQ(grant.arguments_schema(),
            R"({"additionalProperties":false,"properties":{"amount":{"maximum":10000,"type":"integer"},)"
            R"("customer":{"type":"string"},"request_id":{"type":"string"}},"required":["customer","amount"],)"
            R"("type":"object"})");
}

TEST(PermitFile, JsonSaysTheSame) {
  const auto toml = ParsePermitFile(kExample);
  const auto json = ParsePermitFile(kExampleJson);
  ASSERT_TRUE(toml.ok() && json.ok()) << json.status();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*toml, *json));
}

TEST(PermitFile, WhatIsNotWrittenIsLeftToTheServersDefaultsButLimitsAreNot) {
  const auto mint = ParsePermitFile(std::string(kHead) + kGrant);
  ASSERT_TRUE(mint.ok()) << mint.status();
  EXPECT_TRUE(mint->budget().unlimited());
  const v1::GrantTerms& grant = mint->grants(0);
  EXPECT_EQ(grant.budget().limit_case(), v1::Limit::kAtMost);
  EXPECT_EQ(grant.budget().at_most(), 0);
  EXPECT_TRUE(grant.per_call().unlimited());
  EXPECT_TRUE(grant.cost().none());
  EXPECT_EQ(grant.effect(), v1::EFFECT_UNSPECIFIED);
  EXPECT_EQ(grant.lease_ms(), 0);
  EXPECT_FALSE(grant.has_repeat_window_ms());
  EXPECT_EQ(grant.arguments_schema(), "");
}

TEST(PermitFile, LimitsAndCostMustBeWritten) {
  EXPECT_THAT(ErrorWith("cap = 3", ""), testing::HasSubstr("grant 1 ('payments__refund'): cap must be written"));
  EXPECT_THAT(ErrorWith("budget = 30000", ""), testing::HasSubstr("budget must be written"));
  EXPECT_THAT(ErrorWith("budget = 50000", ""), testing::HasSubstr("permit: budget must be written"));
  EXPECT_THAT(ErrorWith("cost = {", "#"), testing::HasSubstr("cost must be written"));
  EXPECT_THAT(ErrorWith("expires_in = \"24h\"", ""), testing::HasSubstr("expires_in or expires_at must be written"));
  EXPECT_THAT(ErrorWith("tenant = \"acme\"", ""), testing::HasSubstr("tenant must be written"));
  EXPECT_THAT(Error(kHead), testing::HasSubstr("grant must be written"));
}

TEST(PermitFile, UnknownKeysAreRefusedWhereverTheyStand) {
  EXPECT_THAT(ErrorWith("expires_in", "expire_in"), testing::HasSubstr("'expire_in' is not a key"));
  EXPECT_THAT(ErrorWith("per_call", "per_cal"), testing::HasSubstr("grant 1 ('payments__refund'): 'per_cal'"));
  EXPECT_THAT(ErrorWith("{ pointer = \"/amount\" }", "{ pointer = \"/amount\", fixed = 1 }"),
              testing::HasSubstr("cost must be"));
  EXPECT_THAT(ErrorWith("{ pointer = \"/amount\" }", "{ pionter = \"/amount\" }"), testing::HasSubstr("cost must be"));
}

TEST(PermitFile, WrongValuesAreRefusedWithWhatIsRight) {
  EXPECT_THAT(ErrorWith("cap = 3", "cap = -1"), testing::HasSubstr("whole number of calls"));
  EXPECT_THAT(ErrorWith("cap = 3", "cap = 3.5"), testing::HasSubstr("whole number of calls"));
  EXPECT_THAT(ErrorWith("cap = 3", "cap = 'Unlimited'"), testing::HasSubstr("\"unlimited\""));
  EXPECT_THAT(ErrorWith("cap = 3", "cap = true"), testing::HasSubstr("whole number of calls"));
  EXPECT_THAT(ErrorWith("budget = 30000", "budget = \"300.00\""), testing::HasSubstr("minor units"));
  EXPECT_THAT(ErrorWith("\"USD/2\"", "\"USD\""), testing::HasSubstr("\"USD/2\""));
  EXPECT_THAT(ErrorWith("\"24h\"", "\"1 day\""), testing::HasSubstr("\"24h\""));
  EXPECT_THAT(ErrorWith("\"24h\"", "0"), testing::HasSubstr("not 0"));
  EXPECT_THAT(ErrorWith("\"write\"", "\"WRITE\""), testing::HasSubstr("\"write\" or \"read\""));
  EXPECT_THAT(ErrorWith("[\"/request_id\"]", "[\"request_id\"]"), testing::HasSubstr("JSON pointers"));
  EXPECT_THAT(ErrorWith("max_attempts = 5", "max_attempts = 0"), testing::HasSubstr("1 or more"));
  EXPECT_THAT(ErrorWith("max_attempts = 5", "max_attempts = 9999999999"), testing::HasSubstr("too large"));
  EXPECT_THAT(ErrorWith("arguments = {", "arguments = [] #"), testing::HasSubstr("JSON Schema"));
  EXPECT_THAT(ErrorWith("intent_ignore", "intent_fields = ['/a']\nintent_ignore"), testing::HasSubstr("exclude"));
}

TEST(PermitFile, ZeroWindowAndAbsoluteTimesMustBeWrittenOut) {
  const auto mint = ParsePermitFile(
      "tenant = 'acme'\nsubject = 's'\nunit = 'JPY/0'\nbudget = 1\nnot_before = 2027-01-01T00:00:00Z\n"
      "expires_at = '2027-01-31T12:00:00+01:00'\n" +
      std::string(kGrant) + "repeat_window = 0\n");
  ASSERT_TRUE(mint.ok()) << mint.status();
  EXPECT_EQ(mint->not_before_us(), 1'798'761'600'000'000);
  EXPECT_EQ(mint->expires_at_us(), 1'801'393'200'000'000);
  EXPECT_EQ(mint->expires_in_ms(), 0);
  EXPECT_TRUE(mint->grants(0).has_repeat_window_ms());
  EXPECT_EQ(mint->grants(0).repeat_window_ms(), 0);
  EXPECT_THAT(ErrorWith("expires_in = \"24h\"", "expires_at = 2027-01-31T12:00:00"), testing::HasSubstr("offset"));
  EXPECT_THAT(ErrorWith("expires_in = \"24h\"", "expires_at = 2027-01-31"), testing::HasSubstr("offset"));
}

TEST(PermitFile, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(Error("tenant = 'acme'\nsubject ="), testing::HasSubstr("line 2"));
  EXPECT_THAT(Error("tenant = 'a'\ntenant = 'b'\n"), testing::HasSubstr("line 2"));
  EXPECT_NE(Error("{\"tenant\": \"a\", \"tenant\": \"b\"}"), "");
  EXPECT_NE(Error(""), "");
  EXPECT_NE(Error("{}"), "");
}

TEST(PermitFile, SchemaNumbersKeepTheirDigits) {
  const auto mint = ParsePermitFile(std::string(kHead) + kGrant +
                                    "arguments = { multipleOf = 0.0001, maximum = 9007199254740993 }\n");
  ASSERT_TRUE(mint.ok()) << mint.status();
  EXPECT_EQ(mint->grants(0).arguments_schema(), R"({"maximum":9007199254740993,"multipleOf":0.0001})");
  EXPECT_THAT(Error(std::string(kHead) + kGrant + "arguments = { maximum = inf }\n"), testing::HasSubstr("finite"));
}

TEST(PermitFile, GrantsAreAtMost256) {
  std::string text = kHead;
  for (int i = 0; i < kGrantsMax; ++i) text += kGrant;
  EXPECT_EQ(Error(text), "");
  EXPECT_THAT(Error(text + kGrant), testing::HasSubstr("1 to 256"));
}

TEST(PermitFile, DeepOrLargeFilesAreRefusedNotFollowed) {
  EXPECT_NE(Error(std::string(kPermitFileBytesMax + 1, '#')), "");
  std::string dotted = "a";
  for (int i = 0; i < 100'000; ++i) dotted += ".a";
  EXPECT_NE(Error(dotted + " = 1"), "");
  EXPECT_NE(Error("a" + dotted.substr(1, 4000) + " = 1"), "");
  EXPECT_NE(Error("a = " + std::string(100'000, '[')), "");
  EXPECT_NE(Error("{\"a\":" + std::string(100'000, '[')), "");
  std::string tables = kExample;
  for (int i = 0; i < 70; ++i) tables += i == 0 ? "[deep" : ".deep";
  EXPECT_NE(Error(tables + "]\n"), "");
}

// Any bytes, and the example with any damage: a permit or a sentence, never anything else.
RC_GTEST_PROP(PermitFile, DamageIsReadOrRefused, ()) {
  std::string text = *rc::gen::element(std::string(kExample), std::string(kExampleJson), std::string());
  const int edits = *rc::gen::inRange(0, 8);
  for (int i = 0; i < edits; ++i) {
    const auto at = *rc::gen::inRange<size_t>(0, text.size() + 1);
    const auto length = std::min(*rc::gen::inRange<size_t>(0, 12), text.size() - at);
    text.replace(at, length, *rc::gen::arbitrary<std::string>());
  }
  const auto mint = ParsePermitFile(text);
  if (mint.ok()) {
    RC_ASSERT(mint->grants_size() >= 1);
    RC_ASSERT(mint->has_budget());
    for (const v1::GrantTerms& grant : mint->grants()) {
      RC_ASSERT(grant.has_cap());
      RC_ASSERT(grant.has_budget());
      RC_ASSERT(grant.cost().rule_case() != v1::CostRule::RULE_NOT_SET);
    }
  } else {
    RC_ASSERT(!mint.status().message().empty());
  }
}

TEST(Duration, IsANumberAndAUnit) {
  EXPECT_EQ(*ParseDuration("250ms"), 250);
  EXPECT_EQ(*ParseDuration("120s"), 120'000);
  EXPECT_EQ(*ParseDuration("10m"), 600'000);
  EXPECT_EQ(*ParseDuration("24h"), 86'400'000);
  EXPECT_EQ(*ParseDuration("7d"), 604'800'000);
  EXPECT_EQ(*ParseDuration("0"), 0);
  for (const char* text :
       {"", "s", "10", "-1s", "1.5h", "10 m", "10M", "1h30m", "999999999999999d", "99999999999999999999s"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
}

}  // namespace
}  // namespace tally::cli
