#include "lib/receipt/json.h"

#include <gtest/gtest.h>

#include "tests/receipt/samples.h"

namespace tally::receipt {
namespace {

TEST(Json, ShowsEveryFieldUnderItsNameInAReadableForm) {
  v1::ReceiptPayload payload = samples::Allowed();
  payload.set_sequence(2);
  const auto json = ToJson(payload, samples::Hash("id"));
  EXPECT_EQ(json.begin().key(), "receipt_id");
  EXPECT_EQ(json["receipt_id"], keys::HexEncode(samples::Hash("id")));
  EXPECT_EQ(json["kind"], "CALL_ALLOWED");
  EXPECT_EQ(json["permit_id"], "019b76da-a800-7000-8000-000000000001");
  EXPECT_EQ(json["call_id"], "019b76da-a800-7000-8000-00000000000a");
  EXPECT_EQ(json["key_hash"], keys::HexEncode(samples::Hash("key")));
  EXPECT_EQ(json["time_us"], 1767225600000001);
  EXPECT_EQ(json["time"], "2026-01-01T00:00:00.000001Z");
  EXPECT_EQ(json["lease_end"], "2026-01-01T00:02:00.000001Z");
  EXPECT_EQ(json["effect"], "WRITE");
  EXPECT_EQ(json["effect_known"], "none");
  EXPECT_EQ(json["state"], "AUTHORIZED");
  EXPECT_EQ(json["disposition"], "DISPATCH");
  EXPECT_EQ(json["principal_role"], "GATEWAY");
  EXPECT_EQ(json["charged"], 0);
  EXPECT_EQ(json["overrun"], 0);
  EXPECT_EQ(json["cap"].dump(), R"({"used":1,"held":0,"spent":0,"limit":3,"overrun":0})");
  EXPECT_EQ(json["permit_budget"]["limit"], "unlimited");
  EXPECT_FALSE(json.contains("supersedes"));
  EXPECT_FALSE(json.contains("sent_at"));
}

TEST(Json, ShowsTermsAsMinted) {
  v1::ReceiptPayload payload;
  payload.set_kind(v1::PERMIT_MINTED);
  auto* grant = payload.mutable_permit_terms()->add_grants();
  grant->set_tool("mail__*");
  grant->mutable_cap()->set_unlimited(true);
  grant->mutable_cost()->set_fixed(25);
  grant->set_intent_scope(v1::INTENT_SCOPE_SUBJECT);
  grant->set_on_tool_error(v1::KEEP);
  grant->set_settle(v1::SETTLE_HOLD);
  grant->add_intent_ignore("/request_id");
  const auto json = ToJson(payload, "")["permit_terms"]["grants"][0];
  EXPECT_EQ(json["cap"], "unlimited");
  EXPECT_EQ(json["cost"]["fixed"], 25);
  EXPECT_EQ(json["intent_scope"], "SUBJECT");
  EXPECT_EQ(json["on_tool_error"], "KEEP");
  EXPECT_EQ(json["settle"], "HOLD");
  EXPECT_EQ(json["intent_ignore"][0], "/request_id");
}

TEST(Json, EffectKnownIsInTheWordsOfTheContract) {
  EXPECT_EQ(EffectKnownName(v1::NONE), "none");
  EXPECT_EQ(EffectKnownName(v1::EFFECT_RESOLVED_NOT_HAPPENED), "resolved_not_happened");
  EXPECT_EQ(EffectKnownName(static_cast<v1::EffectKnown>(99)), "effect 99");
}

TEST(Json, TimesKeepTheirMicroseconds) {
  EXPECT_EQ(Rfc3339(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(Rfc3339(-1), "1969-12-31T23:59:59.999999Z");
}

}  // namespace
}  // namespace tally::receipt
