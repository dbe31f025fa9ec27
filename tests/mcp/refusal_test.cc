#include "gateway/mcp/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "gateway/mcp/judge.h"
#include "gateway/mcp/refusal_words.h"

namespace tally::mcp {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string TextOf(const Refusal& refusal) { return json::parse(RefusalResult(refusal))["content"][0]["text"]; }

TEST(RefusalTest, EveryRefusalBeginsWithItsKindOnOneLineAndSaysWhatHappenedAndWhatToDo) {
  for (const RefusalWords& words : AllRefusalWords()) {
    const Refusal refusal = MakeRefusal(words.kind, words.code);
    const std::string text = TextOf(refusal);
    const std::string first = text.substr(0, text.find('\n'));
    EXPECT_THAT(first, StartsWith(std::string(KindWord(words.kind)) + ": "));
    EXPECT_THAT(first, HasSubstr(words.what));
    EXPECT_THAT(first, HasSubstr(words.advice));
    EXPECT_EQ(first, FirstLine(refusal));
    EXPECT_EQ(words.what.find_first_of("\r\n"), std::string_view::npos);
  }
}

TEST(RefusalTest, NoRefusalThatMayHaveHappenedInvitesAnotherCall) {
  for (const RefusalWords& words : AllRefusalWords()) {
    const std::string line = FirstLine(MakeRefusal(words.kind, words.code));
    if (words.happened == Happened::kNo) {
      EXPECT_TRUE(line.find("Nothing") != std::string::npos || line.find("This call was not made") != std::string::npos)
          << line;
    } else {
      EXPECT_THAT(line, Not(HasSubstr("may be called again")));
      EXPECT_THAT(line, Not(HasSubstr("may be made again")));
      EXPECT_THAT(line, testing::AnyOf(HasSubstr("Do not call it again"), HasSubstr("Stop calling tools"))) << line;
    }
    EXPECT_EQ(
        words.retry == v1::RETRY_CALL_AGAIN || words.retry == v1::RETRY_SAME_KEY,
        words.kind == v1::KIND_CONTENDED || words.kind == v1::KIND_READ_FAILED || words.kind == v1::KIND_UNAVAILABLE)
        << line;
  }
}

TEST(RefusalTest, EveryKindHasGeneralWordsForCodesThatAreNotKnown) {
  for (int kind = v1::KIND_DENIED; kind <= v1::KIND_UNAVAILABLE; ++kind) {
    const Refusal refusal = MakeRefusal(static_cast<v1::Kind>(kind), "NEWER_THAN_THIS");
    EXPECT_EQ(refusal.kind, kind);
    EXPECT_EQ(refusal.code, "NEWER_THAN_THIS");
    EXPECT_FALSE(refusal.what.empty());
  }
}

TEST(RefusalTest, AKindThatIsNotKnownIsUncertain) {
  for (v1::Kind kind : {v1::KIND_UNSPECIFIED, static_cast<v1::Kind>(11), static_cast<v1::Kind>(-1)}) {
    const Refusal refusal = MakeRefusal(kind, "TOOL_NOT_GRANTED");
    EXPECT_EQ(refusal.kind, v1::KIND_DELIVERY_UNCERTAIN);
    EXPECT_EQ(refusal.happened, Happened::kMaybe);
    EXPECT_THAT(FirstLine(refusal), StartsWith("delivery_uncertain: The call may have been carried out."));
  }
}

TEST(RefusalTest, TheResultIsAnErrorWithMachineDataInMetaAndNothingStructured) {
  Refusal refusal = MakeRefusal(v1::KIND_DELIVERY_UNCERTAIN, "INTENT_PENDING");
  refusal.call_id = "0190";
  refusal.key = "k\n\"";
  refusal.reference = "ref";
  refusal.receipt_ids = {"aa", "bb"};
  const json result = json::parse(RefusalResult(refusal));
  EXPECT_EQ(result["isError"], true);
  EXPECT_FALSE(result.contains("structuredContent"));
  EXPECT_FALSE(result.contains("resultType"));
  EXPECT_EQ(result["content"].size(), 1u);
  const json& error = result["_meta"]["dev.tallystick/error"];
  EXPECT_EQ(error["kind"], "delivery_uncertain");
  EXPECT_EQ(error["code"], "INTENT_PENDING");
  EXPECT_EQ(error["happened"], "maybe");
  EXPECT_EQ(error["retry"], "wait");
  EXPECT_EQ(error["call_id"], "0190");
  EXPECT_EQ(error["key"], "k\n\"");
  EXPECT_EQ(error["reference"], "ref");
  EXPECT_EQ(error["receipt_ids"], json({"aa", "bb"}));
  EXPECT_EQ(json::parse(RefusalResult(refusal, true))["resultType"], "complete");
}

TEST(RefusalTest, TheOtherStyleHasTheContractsCodesAndTheSameData) {
  const auto code = [](v1::Kind kind) { return RefusalError(MakeRefusal(kind, "")).code; };
  EXPECT_EQ(code(v1::KIND_CONTENDED), -32005);
  EXPECT_EQ(code(v1::KIND_DENIED), -32003);
  EXPECT_EQ(code(v1::KIND_CAP_EXCEEDED), -32004);
  EXPECT_EQ(code(v1::KIND_DELIVERY_UNCERTAIN), -32006);
  std::set<int64_t> codes;
  for (int kind = v1::KIND_DENIED; kind <= v1::KIND_UNAVAILABLE; ++kind)
    codes.insert(code(static_cast<v1::Kind>(kind)));
  EXPECT_EQ(codes.size(), 10u);
  const RpcError error = RefusalError(MakeRefusal(v1::KIND_CAP_EXCEEDED, "CALL_CAP"));
  EXPECT_THAT(error.message, StartsWith("cap_exceeded: "));
  EXPECT_EQ(json::parse(error.data)["dev.tallystick/error"]["code"], "CALL_CAP");
}

TEST(RefusalTest, DetailsAreShownWhereAModelCanUseThem) {
  Refusal violated = MakeRefusal(v1::KIND_DENIED, "CONSTRAINT_VIOLATED");
  violated.detail = "/amount is over 100";
  EXPECT_THAT(TextOf(violated), HasSubstr("\nDetails: /amount is over 100"));
  Refusal pending = MakeRefusal(v1::KIND_DELIVERY_UNCERTAIN, "STILL_PENDING");
  pending.detail = "Do not send; ask again later with the same key.";
  EXPECT_THAT(TextOf(pending), Not(HasSubstr("again later"))) << "that is addressed to gateways";
  EXPECT_THAT(RefusalResult(pending), HasSubstr("again later"));
}

v1::AuthorizeResponse Answer(v1::Disposition disposition, v1::Kind kind, std::string_view code) {
  v1::AuthorizeResponse response;
  response.set_disposition(disposition);
  if (kind != v1::KIND_UNSPECIFIED) {
    response.mutable_refusal()->set_kind(kind);
    response.mutable_refusal()->set_code(std::string(code));
    response.mutable_refusal()->set_message("as the authority says it");
  }
  response.set_call_id("id");
  response.set_reference("ref");
  return response;
}

TEST(RefusalTest, AnswersOfTheAuthorityKeepTheirKindCodeAndIds) {
  const Refusal refusal = RefusalOf(Answer(v1::CAP_EXCEEDED, v1::KIND_CAP_EXCEEDED, "TOOL_BUDGET"));
  EXPECT_EQ(refusal.kind, v1::KIND_CAP_EXCEEDED);
  EXPECT_EQ(refusal.code, "TOOL_BUDGET");
  EXPECT_EQ(refusal.call_id, "id");
  EXPECT_EQ(refusal.reference, "ref");
  EXPECT_EQ(refusal.detail, "as the authority says it");
  EXPECT_EQ(RefusalOf(Answer(v1::DENIED, v1::KIND_DENIED, "OPEN_CALLS")).kind, v1::KIND_DENIED);
  EXPECT_EQ(RefusalOf(Answer(v1::REPLAY, v1::KIND_READ_FAILED, "READ_NO_ANSWER")).kind, v1::KIND_READ_FAILED);
}

TEST(RefusalTest, WhatAnAnswerLeavesOpenOrContradictsIsUncertain) {
  for (const v1::AuthorizeResponse& response :
       {Answer(v1::PENDING, v1::KIND_UNSPECIFIED, ""), Answer(v1::PENDING, v1::KIND_DENIED, "PERMIT_REVOKED"),
        Answer(v1::DENIED, v1::KIND_UNSPECIFIED, ""), Answer(v1::DENIED, static_cast<v1::Kind>(99), "NEW"),
        Answer(v1::DISPOSITION_UNSPECIFIED, v1::KIND_DENIED, "TOOL_NOT_GRANTED"),
        Answer(static_cast<v1::Disposition>(77), v1::KIND_CONTENDED, "X")}) {
    EXPECT_EQ(RefusalOf(response).kind, v1::KIND_DELIVERY_UNCERTAIN) << response.ShortDebugString();
  }
}

TEST(RefusalTest, AReplayWithoutItsBodyIsAlreadyDone) {
  for (v1::Kind kind : {v1::KIND_UNSPECIFIED, v1::KIND_ALREADY_DONE}) {
    const Refusal refusal = RefusalOf(Answer(v1::REPLAY, kind, ""));
    EXPECT_THAT(RefusalResult(refusal), HasSubstr("\"text\":\"already_done: "));
    EXPECT_EQ(refusal.code, "ALREADY_DONE");
    EXPECT_EQ(refusal.happened, Happened::kEarlier);
  }
  v1::AuthorizeResponse failed = Answer(v1::REPLAY, v1::KIND_ALREADY_DONE, "ALREADY_DONE");
  failed.set_outcome(v1::TOOL_ERROR);
  EXPECT_THAT(FirstLine(RefusalOf(failed)),
              StartsWith("already_done: The same call was made before, and the tool answered"));
}

TEST(RefusalTest, CallMetaIsAddedAndAllElseStaysAsItCame) {
  EXPECT_EQ(WithCallMeta(R"({ "content":[ 1.0 ] })", "id", {"aa"}),
            R"({ "content":[ 1.0 ],"_meta":{"dev.tallystick/call":{"call_id":"id","receipt_ids":["aa"]}} })");
  EXPECT_EQ(WithCallMeta(R"({"_meta":{ "x" : 1 },"content":[]})", "id", {}, true),
            R"({"_meta":{ "x" : 1,"dev.tallystick/call":{"call_id":"id","replayed":true} },"content":[]})");
  EXPECT_EQ(WithCallMeta(R"({"_meta":{"dev.tallystick/call":"forged"}})", "id", {}),
            R"({"_meta":{"dev.tallystick/call":{"call_id":"id"}}})");
  EXPECT_EQ(WithCallMeta(R"({"_meta":null})", "id", {}), R"({"_meta":null})");
  EXPECT_EQ(WithCallMeta("[]", "id", {}), "[]");
}

TEST(RefusalTest, TheDocumentShowsTheWordsOfEveryRefusal) {
  std::ifstream file("docs/gateway-errors.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const RefusalWords& words : AllRefusalWords()) {
    EXPECT_THAT(text.str(), HasSubstr(std::string(words.what) + " " + std::string(words.advice)));
    const std::string code = words.code.empty() ? "any other" : "`" + std::string(words.code) + "`";
    EXPECT_THAT(text.str(), HasSubstr("\n| " + code + " | "));
  }
}

}  // namespace
}  // namespace tally::mcp
