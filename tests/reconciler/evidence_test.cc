#include "reconciler/engine/evidence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/keys/provider_names.h"

namespace tally::reconciler {
namespace {

using ::testing::HasSubstr;
using What = Decision::What;

constexpr char kCall[] = "01900000-0000-7000-8000-000000000001";

ToolConfig Tool() {
  ToolConfig tool;
  tool.kind = Kind::kHttp;
  tool.provider = "bank";
  return tool;
}

ProviderConfig Bank() {
  ProviderConfig bank;
  bank.name = "bank";
  return bank;
}

v1::ParkedCall Parked() {
  v1::ParkedCall parked;
  parked.mutable_call()->set_call_id(kCall);
  parked.mutable_call()->add_attempts()->set_attempt_id(std::string(16, '\1'));
  return parked;
}

TEST(NoteOf, CutsAnAnswerAtItsEdgeAndSaysSo) {
  Answer answer;
  answer.detail = "why";
  answer.body.assign(kNoteBodyMax, 'x');
  EXPECT_EQ(NoteOf(answer, Tool()).body(), answer.body);
  EXPECT_EQ(NoteOf(answer, Tool()).detail(), "why");
  answer.body += 'y';
  answer.detail.assign(5000, 'd');
  const v1::LookUp note = NoteOf(answer, Tool());
  EXPECT_EQ(note.body(), std::string(kNoteBodyMax, 'x'));
  EXPECT_LE(note.detail().size(), kNoteDetailMax);
  EXPECT_THAT(note.detail(), HasSubstr("65537 bytes; the first 65536 are kept"));
  EXPECT_EQ(note.kind(), "http");
  EXPECT_EQ(note.provider(), "bank");
}

TEST(EvidenceOf, CarriesTheRawAnswerAndWhatItSays) {
  Answer answer;
  answer.finding = v1::FINDING_HAPPENED;
  answer.detail = "the status is\n\"done\"";
  answer.body = "{}";
  answer.amount = 5;
  answer.result = "r";
  const ProviderConfig bank = Bank();
  v1::Evidence evidence = EvidenceOf(Parked(), {What::kHappened, {}, {}, "because"}, answer, &bank);
  EXPECT_EQ(evidence.source(), "bank");
  EXPECT_EQ(evidence.reference(), keys::ProviderReference(kCall));
  EXPECT_EQ(evidence.body(), "{}");
  EXPECT_EQ(evidence.reason(), "because: the status is \"done\"");
  EXPECT_EQ(evidence.amount(), 5);
  EXPECT_EQ(evidence.result(), "r");
  answer.reference = "re_1";
  evidence = EvidenceOf(Parked(), {What::kEscalate, {}, {}, "because"}, answer, &bank);
  EXPECT_EQ(evidence.reference(), "re_1");
  EXPECT_FALSE(evidence.has_amount());
  EXPECT_FALSE(evidence.has_result());
}

TEST(EvidenceOf, IsNeverEmptyWhereTheProviderSaidNothing) {
  Answer answer;
  answer.detail = "HTTP 404";
  const ProviderConfig bank = Bank();
  EXPECT_EQ(EvidenceOf(Parked(), {What::kNotHappened, {}, {}, "twice"}, answer, &bank).body(), "twice: HTTP 404");
  const v1::Evidence own = EvidenceOf(Parked(), {What::kEscalate, {}, {}, "no look-up"}, {}, nullptr);
  EXPECT_EQ(own.source(), "tally-reconciler");
  EXPECT_EQ(own.body(), "no look-up");
}

TEST(EvidenceOf, TheGatewaysWordIsItsOwn) {
  v1::ParkedCall parked = Parked();
  const Decision decision{What::kNotHappened, {}, {}, "never sent"};
  v1::Evidence evidence = EvidenceOf(parked, decision, {}, nullptr);
  EXPECT_EQ(evidence.source(), "gateway_journal");
  EXPECT_EQ(evidence.reference(), "attempt 01010101010101010101010101010101");
  EXPECT_FALSE(evidence.body().empty());
  v1::EvidenceInfo& noted = *parked.mutable_call()->add_evidence();
  noted.set_source("gateway_journal");
  noted.set_body("its words");
  EXPECT_EQ(EvidenceOf(parked, decision, {}, nullptr).body(), "its words");
}

}  // namespace
}  // namespace tally::reconciler
