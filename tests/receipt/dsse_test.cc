#include "lib/receipt/dsse.h"

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

TEST(Dsse, PreAuthEncodingIsThatOfTheSpecification) {
  EXPECT_EQ(PreAuthEncoding("hello"), "DSSEv1 46 application/vnd.tallystick.receipt.v1+protobuf 5 hello");
  EXPECT_EQ(PreAuthEncoding(""), "DSSEv1 46 application/vnd.tallystick.receipt.v1+protobuf 0 ");
}

RC_GTEST_PROP(Dsse, TheIdIsTheHashOfWhatIsSigned, (const std::string& payload)) {
  RC_ASSERT(ReceiptId(payload) == keys::Sha256(PreAuthEncoding(payload)));
}

RC_GTEST_PROP(Dsse, EveryEnvelopeComesBackFromItsJson, (const std::string& payload)) {
  v1::Receipt receipt;
  receipt.set_payload(payload);
  receipt.set_receipt_id(ReceiptId(payload).str());
  receipt.set_key_id(samples::Hash("key"));
  receipt.set_signature(std::string(64, '\xfb'));
  const auto back = FromDsseJson(ToDsseJson(receipt));
  RC_ASSERT(back.ok());
  RC_ASSERT(back->SerializeAsString() == receipt.SerializeAsString());
}

TEST(Dsse, UrlSafeBase64IsReadToo) {
  v1::Receipt receipt = Sample();
  receipt.set_signature(std::string(64, '\xfb'));
  std::string text = ToDsseJson(receipt);
  const std::string standard = keys::Base64Encode(receipt.signature());
  text.replace(text.find(standard), standard.size(), keys::Base64UrlEncode(receipt.signature()));
  const auto back = FromDsseJson(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->signature(), receipt.signature());
}

TEST(Dsse, WhatIsNotExactlyAnEnvelopeIsRefused) {
  const std::string good = ToDsseJson(Sample());
  const std::pair<std::string, std::string> swaps[] = {
      {"\"payloadType\"", "\"payload_type\""},
      {"receipt.v1", "receipt.v2"},
      {"{\"payload\"", "{\"extra\":1,\"payload\""},
      {"{\"payload\"", "{\"payload\":\"\",\"payload\""},
      {"{\"keyid\"", "{\"extra\":1,\"keyid\""},
      {"\"signatures\":[", "\"signatures\":[{\"keyid\":\"\",\"sig\":\"\"},"},
      {"\"sig\":\"", "\"sig\":\"AAAA"},
      {"\"keyid\":\"", "\"keyid\":\"00"},
      {"\"payload\":\"", "\"payload\":\"*"},
      {"}\n", "}\n{}"}};
  for (const auto& [from, to] : swaps) {
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    EXPECT_FALSE(FromDsseJson(text).ok()) << text;
  }
  EXPECT_FALSE(FromDsseJson("").ok());
  EXPECT_FALSE(FromDsseJson("[]").ok());
  EXPECT_FALSE(FromDsseJson(std::string(100000, '[')).ok());
}

RC_GTEST_PROP(Dsse, NeverCrashesOnStrangeText, (const std::string& noise, uint16_t at)) {
  std::string text = *rc::gen::element(std::string(), ToDsseJson(Sample()));
  text.insert(at % (text.size() + 1), noise);
  (void)FromDsseJson(text).ok();
}

}  // namespace
}  // namespace tally::receipt
