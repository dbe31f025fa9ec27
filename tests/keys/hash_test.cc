#include "lib/keys/hash.h"

#include <gtest/gtest.h>

#include <set>

#include "lib/keys/encoding.h"

namespace tally::keys {
namespace {

std::string Hex(const Digest& digest) { return HexEncode(digest); }

TEST(Sha256, GivesTheValuesOfFips180) {
  EXPECT_EQ(Hex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, OfPartsIsThatOfTheirConcatenation) { EXPECT_EQ(Sha256({"a", "", "bc"}), Sha256("abc")); }

TEST(HmacSha256, GivesTheValuesOfRfc4231) {
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256("Jefe", {"what do ya want ", "for nothing?"})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Commit, IsTheHashOfDomainZeroSaltBytes) {
  const std::string salt(kSaltSize, 's');
  EXPECT_EQ(Commit(Domain::kArguments, salt, "{}"),
            Sha256(std::string("tallystick/args/v1") + std::string(1, '\0') + salt + "{}"));
}

TEST(Commit, DiffersBetweenDomainsSaltsAndBytes) {
  const std::string salt(kSaltSize, 's');
  std::set<std::string> seen;
  for (Domain domain : {Domain::kArguments, Domain::kResult, Domain::kEvidence, Domain::kAttempt}) {
    seen.insert(Commit(domain, salt, "x").str());
  }
  seen.insert(Commit(Domain::kArguments, std::string(kSaltSize, 't'), "x").str());
  seen.insert(Commit(Domain::kArguments, salt, "y").str());
  EXPECT_EQ(seen.size(), 6u);
}

TEST(CommitDeathTest, RefusesASaltThatIsNotThirtyTwoBytes) {
  EXPECT_DEATH(Commit(Domain::kArguments, "short", "x"), "");
}

TEST(AttemptIdHash, IsUnsalted) {
  EXPECT_EQ(AttemptIdHash("0123456789abcdef"),
            Sha256(std::string("tallystick/attempt/v1") + std::string(1, '\0') + "0123456789abcdef"));
}

TEST(ConstantTimeEqual, ComparesLengthAndContent) {
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_TRUE(ConstantTimeEqual("same", "same"));
  EXPECT_FALSE(ConstantTimeEqual("same", "sama"));
  EXPECT_FALSE(ConstantTimeEqual("same", "sam"));
}

TEST(RandomBytes, HasTheSizeAskedForAndDoesNotRepeat) {
  EXPECT_EQ(RandomBytes(0).size(), 0u);
  EXPECT_EQ(RandomBytes(32).size(), 32u);
  EXPECT_NE(RandomBytes(32), RandomBytes(32));
}

}  // namespace
}  // namespace tally::keys
