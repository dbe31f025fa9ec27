#include "lib/keys/signer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/keys/encoding.h"

namespace tally::keys {
namespace {

std::string_view View(const Signature& signature) {
  return {reinterpret_cast<const char*>(signature.data()), signature.size()};
}

TEST(Ed25519Signer, GivesTheSignaturesOfRfc8032) {
  const Secret seed = Secret::Copy(*HexDecode("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"));
  const auto signer = Ed25519Signer::Create("test", seed);
  ASSERT_TRUE(signer.ok());
  EXPECT_EQ(HexEncode((*signer)->public_key().bytes()),
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
  EXPECT_EQ(HexEncode(View(*(*signer)->Sign("\xaf\x82"))),
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
            "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a");
}

RC_GTEST_PROP(Ed25519Signer, WhatItSignsVerifiesAndNothingElseDoes, (const std::string& message, unsigned flip)) {
  static const auto signer = *Ed25519Signer::Create("test", Secret::Random(kSeedSize));
  const std::string& key = signer->public_key().bytes();
  std::string signature(View(*signer->Sign(message)));
  RC_ASSERT(VerifySignature(key, message, signature));
  RC_ASSERT(!VerifySignature(key, message + "x", signature));
  const unsigned bit = flip % (8 * kSignatureSize);
  signature[bit / 8] = static_cast<char>(signature[bit / 8] ^ 1 << bit % 8);
  RC_ASSERT(!VerifySignature(key, message, signature));
}

TEST(VerifySignature, RefusesWrongLengths) {
  EXPECT_FALSE(VerifySignature("", "m", std::string(64, 'x')));
  EXPECT_FALSE(VerifySignature(std::string(32, 'x'), "m", std::string(63, 'x')));
}

TEST(Ed25519Signer, RefusesSeedsOfAnotherSizeAndNamesThatC2spCannotCarry) {
  EXPECT_FALSE(Ed25519Signer::Create("test", Secret::Random(31)).ok());
  for (std::string_view name : {"", "a b", "a+b", "a\n", "\xff", "a\u00a0b"}) {
    EXPECT_FALSE(Ed25519Signer::Create(name, Secret::Random(32)).ok()) << name;
  }
  EXPECT_TRUE(Ed25519Signer::Create("zählstab.example/a", Secret::Random(32)).ok());
}

}  // namespace
}  // namespace tally::keys
