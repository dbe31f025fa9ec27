#include "lib/receipt/chain.h"

#include <gtest/gtest.h>

#include "lib/receipt/dsse.h"
#include "lib/receipt/payload.h"
#include "tests/receipt/samples.h"

namespace tally::receipt {
namespace {

TEST(Chain, SealingNumbersLinksAndNames) {
  ChainHead head;
  const Unsigned first = *Seal(samples::Allowed(), head, samples::Key());
  EXPECT_EQ(first.fields.sequence(), 1);
  EXPECT_EQ(first.fields.previous_receipt_id(), "");
  EXPECT_EQ(first.fields.issuer(), "tally.example");
  EXPECT_EQ(first.fields.key_id(), samples::Key().public_key().id().view());
  EXPECT_EQ(first.fields.format_version(), kFormatVersion);
  EXPECT_EQ(first.id, ReceiptId(first.payload()));
  EXPECT_EQ(head.id, first.id.view());

  const Unsigned second = *Seal(samples::Allowed(), head, samples::Key());
  EXPECT_EQ(second.fields.sequence(), 2);
  EXPECT_EQ(second.fields.previous_receipt_id(), first.id.view());
  EXPECT_EQ(Parse(second.payload())->SerializeAsString(), second.fields.SerializeAsString());
}

TEST(Chain, ADraftWithANumberMustHaveTheNextOne) {
  ChainHead head{7, samples::Hash("seven")};
  v1::ReceiptPayload draft = samples::Allowed();
  draft.set_sequence(7);
  EXPECT_EQ(Seal(draft, head, samples::Key()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(head.sequence, 7);
  draft.set_sequence(8);
  EXPECT_TRUE(Seal(draft, head, samples::Key()).ok());
  EXPECT_EQ(head.sequence, 8);
}

TEST(Chain, APermitHeadRepeatsTheLastAndMovesNothing) {
  const ChainHead head{7, samples::Hash("seven")};
  const Unsigned sealed = SealPermitHead(samples::Allowed(), head, samples::Key());
  EXPECT_EQ(sealed.fields.sequence(), 7);
  EXPECT_EQ(sealed.fields.previous_receipt_id(), head.id);
}

TEST(Chain, SignsWithTheKeyThatSealedItOnly) {
  ChainHead head;
  const Unsigned sealed = *Seal(samples::Allowed(), head, samples::Key());
  EXPECT_FALSE(Sign(sealed, samples::OtherKey()).ok());
  const auto receipt = Sign(sealed, samples::Key());
  ASSERT_TRUE(receipt.ok());
  EXPECT_TRUE(keys::VerifySignature(samples::Key().public_key().bytes(), PreAuthEncoding(receipt->payload()),
                                    receipt->signature()));
}

// Frozen: from a payload's fields to its signature. If this changes, receipts written before no longer verify.
TEST(Chain, GoldenVector) {
  ChainHead head;
  const auto receipt = *Sign(*Seal(samples::Allowed(), head, samples::Key()), samples::Key());
  EXPECT_EQ(keys::HexEncode(samples::Key().public_key().bytes()),
            "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8");
  EXPECT_EQ(keys::HexEncode(receipt.key_id()), "da86cc2c26ba95d915f508580632ad72f9e4d1eeed16a512486ccdbb73a0e236");
  EXPECT_EQ(keys::HexEncode(receipt.payload()),
            "0801100a1a0d74616c6c792e6578616d706c652220da86cc2c26ba95d915f508580632ad72f9e4d1eeed16a512486ccd"
            "bb73a0e2362a0461636d653210019b76daa80070008000000000000001380148818081b184e991035210019b76daa800"
            "7000800000000000000a58016220b16dffffbd7fa32a2dde5d722d63054201afb2a33031ee19cab4b02978de86206a20"
            "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683722044863b03e9909b7100e05b025269"
            "09a346fd7455183f6619e0fe6198c89981e07a20282bcbc3f0a34a8a4ac6f00c276fcf66cf3757a3332e83d92208e507"
            "9af469228a01107061796d656e74735f5f726566756e649001019a0120b192017da47f5d35fb73a303a7ba74a8f4648d"
            "05176804ae49d9cdaa1d780812a00101aa01055553442f32b001e807d20106080122020803da010910e807220408b0ea"
            "01e2010710e80722021001f00101800201880202900202ca022430313962373664612d613830302d373030302d383030"
            "302d303030303030303030306666d00203d802819c9dea84e99103e802904e");
  EXPECT_TRUE(PreAuthEncoding(receipt.payload())
                  .starts_with("DSSEv1 46 application/vnd.tallystick.receipt.v1+protobuf 415 \b\x01"));
  EXPECT_EQ(keys::HexEncode(receipt.receipt_id()), "601ac4f0bccc87933de9fbed4a64569be9b4aab9e58ca1f5bf8bf2753a7eb5af");
  EXPECT_EQ(keys::HexEncode(receipt.signature()),
            "56cee697347b1b7129d2c1efb2d9e6d8839b10f8eb458c362368341f34810950523121c7135310c6e1e403557ccca9ea"
            "69fdd4cd1407a57778da3013d5332d06");
}

}  // namespace
}  // namespace tally::receipt
