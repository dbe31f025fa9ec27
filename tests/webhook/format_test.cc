#include "lib/webhook/format.h"

#include <gtest/gtest.h>

#include <set>

#include "lib/keys/encoding.h"

namespace tally::webhook {
namespace {

keys::Secret Counting() {
  std::string bytes;
  for (char c = 0; c < 32; ++c) bytes.push_back(c);
  return keys::Secret::Copy(bytes);
}

TEST(Format, TheSignatureIsThatOfStandardWebhooks) {
  // The example that its reference libraries are tested with.
  const keys::Secret secret = keys::Secret::Copy(*keys::Base64Decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
  EXPECT_EQ(SignatureHeader({&secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Format, EachSecretSignsTheBytesAsTheyAreSent) {
  json::Object data;
  data.Set("a", json::Value("\xc3\xa4"));
  const std::string body = Body(kParked, 1796000523000004, std::move(data));
  EXPECT_EQ(body,
            "{\"data\":{\"a\":\"\xc3\xa4\"},\"timestamp\":\"2026-11-30T01:02:03.000004Z\",\"type\":\"call.parked\"}");
  // By Python's hmac.
  const keys::Secret one = Counting();
  const keys::Secret zero = keys::Secret::Copy(std::string(32, '\0'));
  const std::string id = "018f0000-0000-7000-8000-000000000001";
  EXPECT_EQ(SignatureHeader({&one, &zero}, id, 1796000000, body),
            "v1,YAyPcAdrQQoNIf2Fy4OgsfWcXro0rbeWAdFNxkLUPBM= v1,MwMiQ8Xtr3yxq3peGcXOscAveOzUz0RmzFr/iUOh5Mc=");
}

TEST(Format, AnythingThatChangesChangesTheSignature) {
  const keys::Secret secret = Counting();
  const keys::Secret other = keys::Secret::Random(kSecretBytes);
  const std::set<std::string> all = {
      SignatureHeader({&secret}, "id", 1, "body"), SignatureHeader({&secret}, "ie", 1, "body"),
      SignatureHeader({&secret}, "id", 2, "body"), SignatureHeader({&secret}, "id", 1, "bodz"),
      SignatureHeader({&other}, "id", 1, "body")};
  EXPECT_EQ(all.size(), 5u);
}

TEST(Format, ASecretIsShownWithItsPrefix) {
  EXPECT_EQ(SecretText(Counting()), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
}

}  // namespace
}  // namespace tally::webhook
