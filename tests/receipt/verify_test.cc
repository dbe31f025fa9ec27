#include "lib/receipt/verify.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/receipt/dsse.h"
#include "lib/receipt/payload.h"
#include "tests/receipt/story.h"

namespace tally::receipt {
namespace {

keys::KeyRing Ring(keys::KnownKey extra = {}) {
  extra.name = samples::Key().public_key().name();
  extra.bytes = samples::Key().public_key().bytes();
  return keys::KeyRing({extra});
}

v1::Receipt Good() { return Story().Mint().Allow("a").receipts().back(); }

ReceiptReport Check(const v1::Receipt& receipt, const keys::KeyRing& ring = Ring()) {
  return Verify(receipt, "r.dsse.json", ring);
}

v1::Receipt Resigned(v1::ReceiptPayload payload, const keys::Signer& signer = samples::Key()) {
  ChainHead head{payload.sequence() - 1, payload.previous_receipt_id()};
  return *Sign(*Seal(std::move(payload), head, signer), signer);
}

TEST(Verify, AGoodReceiptIsGoodOnEveryLine) {
  const ReceiptReport report = Check(Good());
  EXPECT_EQ(report.outcome, Outcome::kGood) << *report.fault;
  EXPECT_EQ(report.signature, SignatureLine::kValid);
  EXPECT_EQ(report.issuer, IssuerLine::kTrusted);
  EXPECT_EQ(report.id, Good().receipt_id());
  EXPECT_NE(report.effect.find("does not say that it was sent"), std::string::npos);
}

TEST(Verify, EverySingleFlippedBitShows) {
  const v1::Receipt good = Good();
  for (std::string* (v1::Receipt::*field)() : {&v1::Receipt::mutable_payload, &v1::Receipt::mutable_signature,
                                               &v1::Receipt::mutable_key_id, &v1::Receipt::mutable_receipt_id}) {
    v1::Receipt altered = good;
    std::string& bytes = *(altered.*field)();
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
      EXPECT_NE(Check(altered).outcome, Outcome::kGood) << "bit " << bit;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ 1 << bit % 8);
    }
    EXPECT_EQ(Check(altered).outcome, Outcome::kGood);
  }
}

TEST(Verify, EverySingleByteCutOffOrAddedShows) {
  const v1::Receipt good = Good();
  for (size_t i = 0; i < good.payload().size(); ++i) {
    v1::Receipt altered = good;
    altered.mutable_payload()->erase(i, 1);
    EXPECT_NE(Check(altered).outcome, Outcome::kGood);
  }
  v1::Receipt altered = good;
  altered.mutable_payload()->push_back('\0');
  EXPECT_EQ(Check(altered).outcome, Outcome::kBad);
}

TEST(Verify, AnUnknownKeyIsInconclusiveAndItsSignatureUnchecked) {
  const ReceiptReport report = Check(Story(samples::OtherKey()).Mint().receipts()[0]);
  EXPECT_EQ(report.outcome, Outcome::kInconclusive);
  EXPECT_EQ(report.signature, SignatureLine::kNotChecked);
  EXPECT_EQ(report.issuer, IssuerLine::kUnknownKey);
}

TEST(Verify, AValidSignatureOfAKeyOutsideItsTimeOrRevokedIsBadThoughValid) {
  for (const auto& [key, line] :
       {std::pair{keys::KnownKey{.not_before_us = samples::kTime + 1000}, IssuerLine::kNotAtThatTime},
        std::pair{keys::KnownKey{.not_after_us = samples::kTime}, IssuerLine::kNotAtThatTime},
        std::pair{keys::KnownKey{.status = keys::KeyStatus::kRevoked}, IssuerLine::kRevoked}}) {
    const ReceiptReport report = Check(Good(), Ring(key));
    EXPECT_EQ(report.signature, SignatureLine::kValid);
    EXPECT_EQ(report.issuer, line);
    EXPECT_EQ(report.outcome, Outcome::kBad);
  }
  EXPECT_EQ(Check(Good(), Ring({.not_before_us = samples::kTime, .status = keys::KeyStatus::kRetired})).outcome,
            Outcome::kGood);
}

TEST(Verify, AKeyWithoutANameServesTheIssuerWhoseIdFits) {
  EXPECT_EQ(Check(Good(), keys::KeyRing({{.bytes = samples::Key().public_key().bytes()}})).outcome, Outcome::kGood);
}

TEST(Verify, AnEnvelopeThatNamesAnotherKeyIsBad) {
  v1::Receipt receipt = Good();
  receipt.set_key_id(samples::OtherKey().public_key().id().str());
  EXPECT_EQ(Check(receipt).outcome, Outcome::kBad);
}

TEST(Verify, ALaterFormatIsInconclusive) {
  v1::ReceiptPayload payload = *Parse(Good().payload());
  payload.set_format_version(2);
  v1::Receipt receipt;
  receipt.set_payload(Serialize(payload));
  receipt.set_signature(std::string(64, 'x'));
  EXPECT_EQ(Check(receipt).outcome, Outcome::kInconclusive);
}

// ---- Form ----

TEST(Form, EveryFieldThatAKindMustCarryIsMissed) {
  const v1::ReceiptPayload good = *Parse(Good().payload());
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  good.GetReflection()->ListFields(good, &fields);
  ASSERT_GT(fields.size(), 25u);
  for (const auto* field : fields) {
    const std::string& name = field->name();
    if (name == "send_within_ms" || name == "held") continue;  // may be 0
    v1::ReceiptPayload payload = good;
    payload.GetReflection()->ClearField(&payload, field);
    EXPECT_TRUE(FormFault(payload)) << name;
  }
}

TEST(Form, EveryFieldThatAKindHasNoUseForIsRefused) {
  const v1::ReceiptPayload minted = *Parse(Story().Mint().receipts()[0].payload());
  ASSERT_FALSE(FormFault(minted)) << *FormFault(minted);
  const v1::ReceiptPayload call = *Parse(Good().payload());
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  call.GetReflection()->ListFields(call, &fields);
  int tried = 0;
  for (const auto* field : fields) {
    if (minted.GetReflection()->HasField(minted, field) || field->name() == "permit_budget") continue;
    if (field->name() == "previous_receipt_id") continue;
    v1::ReceiptPayload payload;
    payload.CopyFrom(call);
    std::vector<const google::protobuf::FieldDescriptor*> drop;
    for (const auto* other : fields) {
      if (other != field) payload.GetReflection()->ClearField(&payload, other);
    }
    payload.MergeFrom(minted);
    EXPECT_TRUE(FormFault(payload)) << field->name();
    ++tried;
  }
  EXPECT_GT(tried, 15);
}

TEST(Form, ValuesThatCannotBeAreRefused) {
  const v1::ReceiptPayload good = *Parse(Good().payload());
  ASSERT_FALSE(FormFault(good)) << *FormFault(good);
  const std::vector<Story::Spoil> spoils = {
      [](auto& p) { p.set_kind(static_cast<v1::ReceiptKind>(99)); },
      [](auto& p) { p.set_key_hash("short"); },
      [](auto& p) { p.set_call_id("0123456789abcdef"); },
      [](auto& p) { p.set_permit_id(p.permit_id() + "x"); },
      [](auto& p) { p.set_issuer("two words"); },
      [](auto& p) { p.set_held(-1); },
      [](auto& p) { p.set_sequence(-1); },
      [](auto& p) { p.set_state(static_cast<v1::CallState>(77)); },
      [](auto& p) { p.set_principal_role(static_cast<v1::Role>(77)); },
      [](auto& p) { p.mutable_cap()->mutable_limit()->clear_limit(); },
      [](auto& p) { p.mutable_cap()->mutable_limit()->set_unlimited(false); },
      [](auto& p) { p.mutable_cap()->mutable_limit()->set_at_most(-1); },
      [](auto& p) { p.mutable_cap()->set_overrun(1); },
      [](auto& p) { p.mutable_cap()->set_used(-1); },
      [](auto& p) { p.mutable_cap()->set_held(1); },
      [](auto& p) { p.mutable_tool_budget()->set_used(1); },
      [](auto& p) { p.mutable_tool_budget()->set_spent(9000); },  // over the limit, without overrun
      [](auto& p) {
        p.mutable_permit_budget()->set_held(INT64_MAX);
        p.mutable_permit_budget()->set_spent(INT64_MAX);
      }};
  for (size_t i = 0; i < spoils.size(); ++i) {
    v1::ReceiptPayload payload = good;
    spoils[i](payload);
    EXPECT_TRUE(FormFault(payload)) << i;
    // Sealing writes the signer's own name.
    if (payload.issuer() == good.issuer()) {
      EXPECT_EQ(Check(Resigned(payload)).outcome, Outcome::kBad) << i;
    }
  }
}

TEST(Form, TermsThatCannotBeAreRefused) {
  const std::vector<Story::Spoil> spoils = {
      [](auto& p) { p.mutable_permit_terms()->clear_subject(); },
      [](auto& p) { p.mutable_permit_terms()->clear_grants(); },
      [](auto& p) { p.mutable_permit_terms()->clear_budget(); },
      [](auto& p) { p.mutable_permit_terms()->set_unit("EUR/2"); },
      [](auto& p) { p.mutable_permit_terms()->set_expires_at_us(1); },
      [](auto& p) { p.mutable_permit_terms()->set_token_hash("x"); },
      [](auto& p) { p.mutable_permit_terms()->mutable_grants(0)->clear_cap(); },
      [](auto& p) { p.mutable_permit_terms()->mutable_grants(0)->set_tool("a*b"); },
      [](auto& p) { p.mutable_permit_terms()->mutable_grants(0)->clear_effect(); },
      [](auto& p) { p.mutable_permit_terms()->mutable_grants(0)->set_max_attempts(0); }};
  for (size_t i = 0; i < spoils.size(); ++i) {
    EXPECT_EQ(Check(Story().Mint(spoils[i]).receipts()[0]).outcome, Outcome::kBad) << i;
  }
}

RC_GTEST_PROP(Verify, NeverCrashesOnStrangeReceipts,
              (std::string payload, std::string signature, uint16_t at, char byte)) {
  if (*rc::gen::arbitrary<bool>()) {
    payload = Good().payload();
    payload[at % payload.size()] = byte;
  }
  v1::Receipt receipt;
  receipt.set_payload(payload);
  receipt.set_signature(signature);
  RC_ASSERT(Check(receipt).outcome != Outcome::kGood || payload == Good().payload());
}

}  // namespace
}  // namespace tally::receipt
