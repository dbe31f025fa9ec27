#include "cli/json_form.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tally/v1/calls.pb.h"
#include "tally/v1/permits.pb.h"

namespace tally::cli {
namespace {

TEST(JsonForm, AnAuthorizeAnswerHasTheContractsNames) {
  v1::AuthorizeResponse response;
  response.set_disposition(v1::PENDING);
  response.mutable_refusal()->set_kind(v1::KIND_DELIVERY_UNCERTAIN);
  response.mutable_refusal()->set_code("INTENT_PENDING");
  response.mutable_refusal()->set_retry(v1::RETRY_WAIT);
  response.set_attempt_id("\x01\x02");
  response.set_lease_end_us(1'767'225'600'000'001);
  response.add_receipts()->set_receipt_id("\xab");
  const Json json = ToJson(response);
  EXPECT_EQ(json["disposition"], "PENDING");
  EXPECT_EQ(json["kind"], "delivery_uncertain");
  EXPECT_EQ(json["code"], "INTENT_PENDING");
  EXPECT_EQ(json["retry"], "wait");
  EXPECT_EQ(json["attempt_id"], "0102");
  EXPECT_EQ(json["receipt_ids"], Json::array({"ab"}));
  EXPECT_EQ(json["lease_end_us"], 1'767'225'600'000'001);
  EXPECT_EQ(json["lease_end"], "2026-01-01T00:00:00.000001Z");
  EXPECT_EQ(json["state"], nullptr);
  EXPECT_EQ(json["result"], nullptr);
  for (const char* name : {"call_id", "attempt_number", "send_within_ms", "lease_ms", "repeat_of", "has_result"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_FALSE(json.contains("refusal"));
}

TEST(JsonForm, AnAnswerWithoutRefusalHasTheSameNames) {
  const Json json = ToJson(v1::AuthorizeResponse());
  for (const char* name : {"kind", "code", "message", "retry"}) EXPECT_EQ(json.at(name), nullptr);
}

TEST(JsonForm, LimitsAreNumbersOrUnlimited) {
  v1::GrantTerms grant;
  grant.mutable_cap()->set_at_most(3);
  grant.mutable_budget()->set_unlimited(true);
  grant.mutable_cost()->set_pointer("/amount");
  const Json json = ToJson(grant);
  EXPECT_EQ(json["cap"], 3);
  EXPECT_EQ(json["budget"], "unlimited");
  EXPECT_EQ(json["per_call"], nullptr);
  EXPECT_EQ(json["cost"], Json({{"pointer", "/amount"}}));
}

TEST(JsonForm, ABodyIsGivenAsItIsAndByteForByte) {
  Json json;
  AddBody("result", R"({"id": 9007199254740993})", true, &json);
  EXPECT_EQ(json["result"]["id"], 9007199254740993);
  AddBody("result", "not json", true, &json);
  EXPECT_EQ(json["result"], "not json");
  EXPECT_EQ(json["result_base64"], "bm90IGpzb24=");
  AddBody("result", "\xff\xfe", true, &json);
  EXPECT_EQ(json["result"], nullptr);
  EXPECT_EQ(json["result_base64"], "//4=");
  AddBody("result", "", true, &json);
  EXPECT_EQ(json["result"], "");
  AddBody("result", "", false, &json);
  EXPECT_EQ(json["result_base64"], nullptr);
}

TEST(JsonForm, ADeepBodyIsTextAndNotFollowed) {
  Json json;
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  AddBody("result", deep, true, &json);
  EXPECT_EQ(json["result"], deep);
  AddBody("result", R"({"a": "[[[[\"[["})", true, &json);
  EXPECT_EQ(json["result"]["a"], "[[[[\"[[");
}

RC_GTEST_PROP(JsonForm, TheDocumentIsAlwaysValidJson, (const std::string& key, const std::string& body)) {
  v1::CallInfo call;
  call.set_key(key);
  call.set_has_result(true);
  call.set_result(body);
  RC_ASSERT(!Json::parse(Document(ToJson(call)), nullptr, false).is_discarded());
}

}  // namespace
}  // namespace tally::cli
