#include "lib/keys/published.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/keys/encoding.h"
#include "lib/keys/key_file.h"
#include "lib/keys/signer.h"

namespace tally::keys {
namespace {

PublicKey Key(std::string_view name = "tally.example", char fill = 'x') {
  return (*Ed25519Signer::Create(name, Secret::Copy(std::string(32, fill))))->public_key();
}

TEST(Vkey, IsInTheFormThatOthersPublish) {
  // The well-known key of the Go checksum database.
  const std::string sumdb = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";
  ASSERT_TRUE(FromVkey(sumdb).ok()) << FromVkey(sumdb).status();
  EXPECT_EQ(ToVkey(*FromVkey(sumdb)), sumdb);
}

TEST(Published, EveryFormComesBack) {
  const PublicKey key = Key();
  EXPECT_EQ(*FromVkey(ToVkey(key)), key);
  EXPECT_EQ(FromPem(ToPem(key))->at(0), key.bytes());
  EXPECT_EQ(FromJwks(ToJwks({key}))->at(0).bytes, key.bytes());
  EXPECT_EQ(FromJwks(ToJwks({key}))->at(0).name, key.name());
}

TEST(Published, PemHoldsSeveralKeysInOrder) {
  const auto blocks = FromPem(ToPem(Key("a", 'a')) + ToPem(Key("b", 'b')));
  ASSERT_TRUE(blocks.ok());
  EXPECT_EQ(*blocks, (std::vector<std::string>{Key("a", 'a').bytes(), Key("b", 'b').bytes()}));
}

TEST(Published, AlteredVkeysAreRefused) {
  const std::string vkey = ToVkey(Key());
  for (size_t i = 0; i < vkey.size(); ++i) {
    std::string altered = vkey;
    altered[i] = altered[i] == 'b' ? 'c' : 'b';
    EXPECT_FALSE(FromVkey(altered).ok()) << altered;
  }
}

TEST(Published, PrivateAndForeignKeysAreRefused) {
  EXPECT_NE(
      FromPem("-----BEGIN PRIVATE KEY-----\nMC4CAQ==\n-----END PRIVATE KEY-----\n").status().message().find("private"),
      absl::string_view::npos);
  EXPECT_FALSE(FromPem("-----BEGIN PUBLIC KEY-----\nMC4CAQ==\n-----END PUBLIC KEY-----\n").ok());
  EXPECT_FALSE(FromPem("-----BEGIN PUBLIC KEY-----\nMC4CAQ==\n").ok());
  EXPECT_FALSE(FromPem("nothing").ok());
  EXPECT_FALSE(FromJwks(R"({"keys":[{"kty":"OKP","crv":"X25519","x":"AAAA"}]})").ok());
  EXPECT_FALSE(FromJwks(R"({"keys":[{"kty":"OKP","crv":"Ed25519","x":"AAAA","d":"AAAA"}]})").ok());
  EXPECT_FALSE(FromJwks(R"({"keys":{}})").ok());
}

TEST(KeyRing, ReadsEveryFormAndFindsTheKey) {
  const PublicKey key = Key();
  const KnownKey known{
      .name = key.name(), .bytes = key.bytes(), .not_before_us = 10, .not_after_us = 20, .status = KeyStatus::kRetired};
  const std::string forms[] = {ToKeysJson({known}), ToJwks({key}), ToPem(key), "# trusted\n\n" + ToVkey(key) + "\r\n"};
  for (const std::string& form : forms) {
    const auto ring = KeyRing::Parse(form);
    ASSERT_TRUE(ring.ok()) << ring.status();
    const KnownKey* found = ring->Find(key.name(), key.id());
    ASSERT_NE(found, nullptr) << form;
    EXPECT_EQ(found->bytes, key.bytes());
    EXPECT_EQ(ring->Find("other.example", key.id()), nullptr);
    EXPECT_EQ(ring->Find(key.name(), std::string(32, 'z')), nullptr);
  }
  EXPECT_EQ(KeyRing::Parse(forms[0])->keys(), std::vector{known});
}

TEST(KeyRing, WindowsIncludeBothEnds) {
  const KnownKey key{.not_before_us = 10, .not_after_us = 20};
  EXPECT_FALSE(key.Covers(9));
  EXPECT_TRUE(key.Covers(10));
  EXPECT_TRUE(key.Covers(20));
  EXPECT_FALSE(key.Covers(21));
  EXPECT_TRUE(KnownKey{}.Covers(0));
}

TEST(KeyRing, RefusesAKeysJsonThatContradictsItself) {
  const PublicKey key = Key();
  const std::string good = ToKeysJson({{.name = key.name(), .bytes = key.bytes(), .not_before_us = 5}});
  ASSERT_TRUE(KeyRing::Parse(good).ok());
  const std::pair<std::string, std::string> swaps[] = {
      {HexEncode(key.id()), std::string(64, '0')},
      {"\"active\"", "\"trusted\""},
      {"keys/v1", "keys/v2"},
      {"\"not_before_us\": 5", "\"not_before_us\": 5.5"},
      {"\"not_before_us\": 5", "\"not_before_us\": 9223372036854775808"},
      {"\"not_before_us\": 5", "\"not_before_us\": \"5\""},
      {"\"status\"", "\"name\": \"tally.example\", \"status\""}};
  for (const auto& [from, to] : swaps) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    EXPECT_FALSE(KeyRing::Parse(text).ok()) << text;
  }
}

TEST(KeyRing, RefusesFilesWithoutKeys) {
  for (const char* text : {"", "# nothing\n", "{}", "[]", "{\"keys\":[]}", "hello"}) {
    EXPECT_FALSE(KeyRing::Parse(text).ok()) << text;
  }
}

RC_GTEST_PROP(KeyRing, NeverCrashesOnStrangeText, (const std::string& noise, uint16_t at)) {
  const PublicKey key = Key();
  std::string text = *rc::gen::element(std::string(), ToKeysJson({{.name = key.name(), .bytes = key.bytes()}}),
                                       ToJwks({key}), ToPem(key), ToVkey(key));
  text.insert(at % (text.size() + 1), noise);
  (void)KeyRing::Parse(text).ok();
}

}  // namespace
}  // namespace tally::keys
