#include "lib/keys/sealed.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/keys/encoding.h"

namespace tally::keys {
namespace {

constexpr Argon2Cost kCheap{1, 8};

Sealer WithKey(char fill = 'k') { return *Sealer::FromKey(Secret::Copy(std::string(32, fill))); }
Sealer WithPassphrase(std::string_view text = "correct horse") {
  return *Sealer::FromPassphrase(Secret::Copy(text), kCheap);
}

void ExpectOpensUnderItsContextOnly(const Sealer& sealer) {
  const auto blob = sealer.Seal(Secret::Copy("seed"), "key one");
  ASSERT_TRUE(blob.ok());
  EXPECT_EQ(blob->find("seed"), std::string::npos);
  const auto opened = sealer.Unseal(*blob, "key one");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->Expose(), "seed");
  EXPECT_EQ(sealer.Unseal(*blob, "key two").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Sealer, OpensWhatItSealedUnderTheSameContextOnly) {
  ExpectOpensUnderItsContextOnly(WithKey());
  ExpectOpensUnderItsContextOnly(WithPassphrase());
}

TEST(Sealer, DoesNotOpenUnderAnotherKeyOrPassphrase) {
  const auto by_key = WithKey('a').Seal(Secret::Copy("seed"), "c");
  EXPECT_EQ(WithKey('b').Unseal(*by_key, "c").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(WithPassphrase().Unseal(*by_key, "c").status().code(), absl::StatusCode::kInvalidArgument);
  const auto by_phrase = WithPassphrase("passphrase 1").Seal(Secret::Copy("seed"), "c");
  EXPECT_EQ(WithPassphrase("passphrase 2").Unseal(*by_phrase, "c").status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(WithKey().Unseal(*by_phrase, "c").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Sealer, NeverGivesTheSameBlobTwice) {
  EXPECT_NE(*WithKey().Seal(Secret::Copy("seed"), "c"), *WithKey().Seal(Secret::Copy("seed"), "c"));
}

TEST(Sealer, RefusesEveryBlobWithOneBitFlippedOrOneByteCutOff) {
  const Sealer sealer = WithKey();
  const std::string blob = *sealer.Seal(Secret::Copy("seed"), "c");
  for (size_t bit = 0; bit < blob.size() * 8; ++bit) {
    std::string altered = blob;
    altered[bit / 8] = static_cast<char>(altered[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(sealer.Unseal(altered, "c").ok()) << "bit " << bit;
  }
  for (size_t size = 0; size < blob.size(); ++size) EXPECT_FALSE(sealer.Unseal(blob.substr(0, size), "c").ok());
}

TEST(Sealer, ABlobCannotAskForUnreasonableMemory) {
  std::string blob = *WithPassphrase().Seal(Secret::Copy("seed"), "c");
  blob[11] = '\x7f';  // memory, most significant byte
  EXPECT_EQ(WithPassphrase().Unseal(blob, "c").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Sealer, RefusesShortKeysAndPassphrases) {
  EXPECT_FALSE(Sealer::FromKey(Secret::Random(31)).ok());
  EXPECT_FALSE(Sealer::FromPassphrase(Secret::Copy("1234567")).ok());
  EXPECT_FALSE(Sealer::FromPassphrase(Secret::Copy("12345678"), {1, 4}).ok());
}

// Sealed once and kept: a change that cannot open them locks every installation out of its keys.
TEST(Sealer, OpensTheFrozenBlobsOfVersionOne) {
  const std::string by_key = *HexDecode(
      "545345414c01018599e3398bfe93d4bc2926ceaf8bd56bb4a482f594a05696f056aef036bc45e953fa40f807684e9a32"
      "baee2e96d30902e26156c44d0fd223f1dcf38de1bd2b4a80d019cff9482963");
  const std::string by_passphrase = *HexDecode(
      "545345414c010200000001000000083b99cc0ed89f7726f35d68477e1c4735b4d5edce8564a5006ab696a898bc375b7d"
      "a103a5739d2d775bdb592d81362aff2a9f5c624527a64ae9e54ce5f2f98aeefccbcf21060c0a394846e0d1aee16a04df"
      "a26a825fafd071");
  EXPECT_EQ(WithKey('F').Unseal(by_key, "frozen")->Expose(), "thirty-two bytes of frozen seed!");
  EXPECT_EQ(WithPassphrase("frozen passphrase").Unseal(by_passphrase, "frozen")->Expose(),
            "thirty-two bytes of frozen seed!");
}

RC_GTEST_PROP(Sealer, NeverCrashesOnStrangeBlobs, (std::string tail)) {
  const std::string blob =
      *rc::gen::element(std::string(), std::string("TSEAL\x01\x01"), std::string("TSEAL\x01\x02")) + tail;
  RC_ASSERT(!WithKey().Unseal(blob, "c").ok());
  RC_ASSERT(!WithPassphrase().Unseal(blob, "c").ok());
}

}  // namespace
}  // namespace tally::keys
