#include "lib/receipt/jws.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/receipt/chain.h"
#include "tests/receipt/samples.h"

namespace tally::receipt {
namespace {

v1::Receipt Sample() {
  ChainHead head;
  return *Sign(*Seal(samples::Allowed(), head, samples::Key()), samples::Key());
}

keys::KeyRing Ring(const keys::Signer& signer = samples::Key()) {
  return keys::KeyRing({{.name = signer.public_key().name(), .bytes = signer.public_key().bytes()}});
}

std::string WithHeader(std::string_view header) {
  const std::string jws = *ToJws(Sample(), samples::Key());
  const std::string signed_part =
      keys::Base64UrlEncode(header) + jws.substr(jws.find('.'), jws.rfind('.') - jws.find('.'));
  const auto signature = *samples::Key().Sign(signed_part);
  return signed_part + "." + keys::Base64UrlEncode({reinterpret_cast<const char*>(signature.data()), signature.size()});
}

std::string Header(std::string_view alg, std::string_view more = "") {
  return std::string(R"({"alg":")") + std::string(alg) + R"(","kid":")" +
         keys::HexEncode(samples::Key().public_key().id()) + R"(","typ":"tallystick-receipt+json")" +
         std::string(more) + "}";
}

TEST(Jws, CarriesTheReceiptsFieldsAndId) {
  const v1::Receipt receipt = Sample();
  const auto read = FromJws(*ToJws(receipt, samples::Key()), Ring());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->payload["receipt_id"], keys::HexEncode(receipt.receipt_id()));
  EXPECT_EQ(read->payload["tool"], "payments__refund");
  EXPECT_EQ(read->key_id, receipt.key_id());
}

TEST(Jws, WritesEd25519AndReadsEdDsaToo) {
  const std::string jws = *ToJws(Sample(), samples::Key());
  EXPECT_NE(keys::Base64UrlDecode(jws.substr(0, jws.find('.')))->find(R"("alg":"Ed25519")"), std::string::npos);
  EXPECT_TRUE(FromJws(WithHeader(Header("EdDSA")), Ring()).ok());
}

TEST(Jws, RefusesOtherAlgorithmsAndExtensionsThoughWellSigned) {
  ASSERT_TRUE(FromJws(WithHeader(Header("Ed25519")), Ring()).ok());
  for (const std::string& header :
       {Header("none"), Header("HS256"), Header("ed25519"), Header("Ed25519", R"(,"crit":["b64"],"b64":false)"),
        Header("Ed25519", R"(,"alg":"EdDSA")"), std::string("[]"), std::string("{}")}) {
    EXPECT_EQ(FromJws(WithHeader(header), Ring()).status().code(), absl::StatusCode::kInvalidArgument) << header;
  }
}

TEST(Jws, OfAnUnknownKeyIsNotFound) {
  EXPECT_EQ(FromJws(*ToJws(Sample(), samples::Key()), Ring(samples::OtherKey())).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(Jws, WithAnyCharacterChangedIsRefused) {
  const std::string jws = *ToJws(Sample(), samples::Key());
  for (size_t i = 0; i < jws.size(); ++i) {
    std::string altered = jws;
    altered[i] = altered[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(FromJws(altered, Ring()).ok()) << i;
  }
}

RC_GTEST_PROP(Jws, NeverCrashesOnStrangeText, (const std::string& noise, uint16_t at)) {
  std::string text = *rc::gen::element(std::string(), *ToJws(Sample(), samples::Key()));
  text.insert(at % (text.size() + 1), noise);
  (void)FromJws(text, Ring()).ok();
}

}  // namespace
}  // namespace tally::receipt
