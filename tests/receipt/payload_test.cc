#include "lib/receipt/payload.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/receipt/samples.h"

namespace tally::receipt {
namespace {

std::string Good() {
  v1::ReceiptPayload payload = samples::Allowed();
  payload.set_format_version(kFormatVersion);
  return Serialize(payload);
}

TEST(Payload, ComesBackFromItsBytes) {
  const auto parsed = Parse(Good());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(Serialize(*parsed), Good());
  EXPECT_EQ(parsed->tool(), "payments__refund");
}

TEST(Payload, WithAFieldThatItsFormatDoesNotKnowIsRefused) {
  const std::string unknown_at_the_end = Good() + std::string("\xf8\x06\x01", 3);  // field 111, varint 1
  EXPECT_EQ(Parse(unknown_at_the_end).status().code(), absl::StatusCode::kInvalidArgument);
  v1::ReceiptPayload payload = *Parse(Good());
  auto* usage = payload.mutable_cap();
  usage->GetReflection()->MutableUnknownFields(usage)->AddVarint(99, 1);
  EXPECT_EQ(Parse(payload.SerializeAsString()).status().code(), absl::StatusCode::kInvalidArgument);
  payload = *Parse(Good());
  auto* grant = payload.mutable_permit_terms()->add_grants();
  grant->GetReflection()->MutableUnknownFields(grant)->AddVarint(99, 1);
  EXPECT_EQ(Parse(payload.SerializeAsString()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Payload, InAnotherOrderOrWithDefaultsWrittenOutOrFieldsTwiceIsRefused) {
  EXPECT_TRUE(Parse(std::string("\x08\x01\x10\x01", 4)).ok());
  EXPECT_FALSE(Parse(std::string("\x10\x01\x08\x01", 4)).ok());          // kind before format_version
  EXPECT_FALSE(Parse(std::string("\x08\x01\x10\x01\x38\x00", 6)).ok());  // sequence 0 written out
  EXPECT_FALSE(Parse(std::string("\x08\x01\x10\x02\x10\x01", 6)).ok());  // kind twice
  EXPECT_FALSE(Parse(std::string("\x08\x81\x00\x10\x01", 5)).ok());      // a longer varint than needed
}

TEST(Payload, OfALaterFormatSaysNothingAboutTheReceipt) {
  v1::ReceiptPayload payload = samples::Allowed();
  payload.set_format_version(2);
  EXPECT_EQ(Parse(Serialize(payload) + std::string("\xf8\x06\x01", 3)).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(Payload, CutShortAnywhereIsRefusedOrAnotherPayload) {
  const std::string good = Good();
  for (size_t size = 0; size < good.size(); ++size) {
    const auto parsed = Parse(std::string_view(good).substr(0, size));
    if (parsed.ok()) {
      EXPECT_NE(Serialize(*parsed), good);
    }
  }
}

RC_GTEST_PROP(Payload, EitherDoesNotParseOrIsTheOneFormOfWhatItSays, (uint16_t at, char byte)) {
  std::string bytes = Good();
  bytes[at % bytes.size()] = byte;
  const auto parsed = Parse(bytes);
  if (parsed.ok()) RC_ASSERT(Serialize(*parsed) == bytes);
}

RC_GTEST_PROP(Payload, NeverCrashesOnRandomBytes, (const std::string& bytes)) { (void)Parse(bytes).ok(); }

}  // namespace
}  // namespace tally::receipt
