#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/json/parse.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {
namespace {

using ::testing::HasSubstr;

const Values kValues = {"refrefref", "keykeykey", "01900000-0000-7000-8000-000000000001", json::Value(json::Object())};

json::Pointer At(const char* text) { return *json::Pointer::Parse(text); }

AnswerRules Search() {
  AnswerRules rules;
  rules.records = At("/data");
  rules.match = {At("/metadata/ref"), *Text::Parse("{reference}"), false};
  rules.complete = AnswerRules::Complete{At("/has_more"), "false"};
  rules.status = At("/status");
  rules.happened = {"succeeded"};
  rules.not_happened = {"failed", "canceled"};
  rules.pending = {"pending"};
  rules.amount = AnswerRules::Amount{At("/amount"), false};
  rules.provider_id = At("/id");
  return rules;
}

Reading Read(const AnswerRules& rules, const std::string& body, int status = 200) {
  return ReadHttpAnswer(rules, kValues, "USD/2", status, body);
}

std::string List(const std::string& records, const std::string& more = R"("has_more": false)") {
  return "{\"data\": [" + records + "], " + more + "}";
}

constexpr char kOurs[] = R"({"id": "re_1", "status": "succeeded", "amount": 1250, "metadata": {"ref": "refrefref"}})";
constexpr char kOther[] = R"({"id": "re_2", "status": "succeeded", "amount": 9, "metadata": {"ref": "another"}})";

TEST(ReadAnswer, ARecordOfTheCallSaysWhatBecameOfIt) {
  const Reading happened = Read(Search(), List(std::string(kOther) + "," + kOurs));
  EXPECT_EQ(happened.finding, v1::FINDING_HAPPENED) << happened.detail;
  EXPECT_EQ(happened.amount, 1250);
  EXPECT_EQ(happened.reference, "re_1");
  EXPECT_EQ(happened.result, std::nullopt);
  const auto with_status = [](const char* status) {
    return List(std::string(R"({"id": "x", "amount": 1, "metadata": {"ref": "refrefref"}, "status": )") + status + "}");
  };
  EXPECT_EQ(Read(Search(), with_status("\"failed\"")).finding, v1::FINDING_NOT_HAPPENED);
  EXPECT_EQ(Read(Search(), with_status("\"pending\"")).finding, v1::FINDING_PENDING);
  for (const char* status :
       {"\"refunded\"", "\"Succeeded\"", "\"\"", "null", "1", "true", "[]", "{}", "[\"succeeded\"]"}) {
    EXPECT_EQ(Read(Search(), with_status(status)).finding, v1::FINDING_UNCLEAR) << status;
  }
}

TEST(ReadAnswer, NoRecordIsAnAbsenceOnlyWhereTheListIsWhole) {
  EXPECT_EQ(Read(Search(), List("")).finding, v1::FINDING_ABSENT);
  EXPECT_EQ(Read(Search(), List(kOther)).finding, v1::FINDING_ABSENT);
  EXPECT_EQ(Read(Search(), List("", R"("has_more": true)")).finding, v1::FINDING_UNCLEAR);
  EXPECT_EQ(Read(Search(), List("", R"("has_more": "yes")")).finding, v1::FINDING_UNCLEAR);
  EXPECT_EQ(Read(Search(), List("", R"("has_more": [false])")).finding, v1::FINDING_UNCLEAR);
  EXPECT_EQ(Read(Search(), List("", R"("other": 1)")).finding, v1::FINDING_UNCLEAR);
  // What a list that is not whole does show is there all the same.
  EXPECT_EQ(Read(Search(), List(kOurs, R"("has_more": true)")).finding, v1::FINDING_HAPPENED);
  AnswerRules rules = Search();
  rules.complete.reset();
  EXPECT_EQ(Read(rules, List("")).finding, v1::FINDING_ABSENT);
  EXPECT_EQ(Read(rules, List(kOther)).finding, v1::FINDING_UNCLEAR);
}

TEST(ReadAnswer, RecordsThatNameNobodyProveNoAbsence) {
  const Reading reading = Read(Search(), List(R"({"id": "x", "status": "succeeded"}, {"metadata": {"ref": null}})"));
  EXPECT_EQ(reading.finding, v1::FINDING_UNCLEAR);
  EXPECT_THAT(reading.detail, HasSubstr("cannot be told whose"));
}

TEST(ReadAnswer, TwoRecordsOfOneCallAreForAPerson) {
  const Reading reading = Read(Search(), List(std::string(kOurs) + "," + kOurs));
  EXPECT_EQ(reading.finding, v1::FINDING_UNCLEAR);
  EXPECT_THAT(reading.detail, HasSubstr("more than once"));
}

TEST(ReadAnswer, OneRecordIsReadOnlyIfItIsTheCalls) {
  AnswerRules rules = Search();
  rules.records = At("");
  EXPECT_EQ(Read(rules, kOurs).finding, v1::FINDING_HAPPENED);
  EXPECT_EQ(Read(rules, kOther).finding, v1::FINDING_UNCLEAR);
}

TEST(ReadAnswer, AMarkerMayStandInsideAText) {
  AnswerRules rules = Search();
  rules.records = At("/items");
  rules.match = {At("/message"), *Text::Parse("tally: {reference}"), true};
  rules.complete = AnswerRules::Complete{At("/incomplete"), "false"};
  rules.status.reset();
  rules.record_is_happened = true;
  rules.amount.reset();
  rules.provider_id = At("/sha");
  const auto body = [](const char* message) {
    return std::string(R"({"incomplete": false, "items": [{"sha": "abc", "message": ")") + message + "\"}]}";
  };
  EXPECT_EQ(Read(rules, body("Fix\\n\\ntally: refrefref\\n")).finding, v1::FINDING_HAPPENED);
  EXPECT_EQ(Read(rules, body("Fix\\n\\ntally: refref\\n")).finding, v1::FINDING_ABSENT);
}

TEST(ReadAnswer, OtherStatusesSayNothingUnlessTheyWereDeclared) {
  for (const int status : {100, 201, 204, 301, 302, 400, 401, 403, 404, 408, 409, 410, 429, 500, 502, 503, 504}) {
    EXPECT_EQ(Read(Search(), List(kOurs), status).finding, v1::FINDING_UNCLEAR) << status;
    EXPECT_EQ(Read(Search(), List(""), status).finding, v1::FINDING_UNCLEAR) << status;
  }
  AnswerRules rules = Search();
  rules.absent_status = {404};
  EXPECT_EQ(Read(rules, "<html>", 404).finding, v1::FINDING_ABSENT);
  EXPECT_EQ(Read(rules, "", 410).finding, v1::FINDING_UNCLEAR);
}

TEST(ReadAnswer, WhatIsNoJsonThatCanBeTrustedSaysNothing) {
  for (const char* body :
       {"", " ", "[]", "null", "{}", "<html>", "{\"data\": []", "{\"data\": [], \"has_more\": false} x",
        "{\"data\": [], \"data\": [], \"has_more\": false}", "{\"data\": null, \"has_more\": false}",
        "{\"data\": \"\", \"has_more\": false}", "{\"data\": 0, \"has_more\": false}",
        "{\"data\": [1], \"has_more\": false}", "{\"data\": [[]], \"has_more\": false}",
        "{\"data\": [null], \"has_more\": false}", "{\"data\": [{\"metadata\": {\"ref\": {}}}], \"has_more\": false}",
        "{\"data\": [{\"metadata\": {\"ref\": [\"refrefref\"]}}], \"has_more\": false}",
        "\xef\xbb\xbf{\"data\": [], \"has_more\": false}", "{\"data\": [\"\xff\"], \"has_more\": false}"}) {
    EXPECT_EQ(Read(Search(), body).finding, v1::FINDING_UNCLEAR) << body;
  }
  EXPECT_EQ(Read(Search(), List("") + std::string(kAnswerBytesMax, ' ')).finding, v1::FINDING_UNCLEAR);
}

TEST(ReadAnswer, AnAmountThatCannotBeReadIsNoVerdict) {
  const auto with_amount = [](const std::string& member) {
    return List(R"({"id": "x", "status": "succeeded", "metadata": {"ref": "refrefref"})" + member + "}");
  };
  const auto amount = [&](const AnswerRules& rules, const std::string& text) {
    const Reading reading = Read(rules, with_amount(", \"amount\": " + text));
    EXPECT_EQ(reading.finding, reading.amount ? v1::FINDING_HAPPENED : v1::FINDING_UNCLEAR) << text;
    return reading.amount.value_or(-1);
  };
  EXPECT_EQ(Read(Search(), with_amount("")).finding, v1::FINDING_UNCLEAR);
  EXPECT_EQ(amount(Search(), "0"), 0);
  EXPECT_EQ(amount(Search(), "1e2"), 100);
  EXPECT_EQ(amount(Search(), "\"12\""), 12);
  EXPECT_EQ(amount(Search(), "9223372036854775807"), INT64_MAX);
  for (const char* text : {"-1", "1.5", "9223372036854775808", "null", "\"\"", "\"1 USD\"", "[1]", "true"}) {
    EXPECT_EQ(amount(Search(), text), -1) << text;
  }
  AnswerRules decimal = Search();
  decimal.amount->decimal = true;
  EXPECT_EQ(amount(decimal, "\"12.30\""), 1230);
  EXPECT_EQ(amount(decimal, "12.3"), 1230);
  EXPECT_EQ(amount(decimal, "\"12.345\""), -1);
  EXPECT_EQ(amount(decimal, "\"1,000.00\""), -1);
  EXPECT_EQ(ReadHttpAnswer(decimal, kValues, "", 200, with_amount(", \"amount\": 1")).finding, v1::FINDING_UNCLEAR);
}

TEST(ReadAnswer, TheResultIsWhatTheKeyReplays) {
  AnswerRules rules = Search();
  rules.result = At("/receipt");
  const std::string start = R"({"id": "x", "amount": 1, "status": "succeeded", "metadata": {"ref": "refrefref"})";
  EXPECT_EQ(Read(rules, List(start + "}")).finding, v1::FINDING_UNCLEAR);
  const std::string body = List(start + R"(, "receipt": {"b": 1, "a": "é"}})");
  EXPECT_EQ(Read(rules, body).result, R"({"content":[{"text":"{\"a\":\"é\",\"b\":1}","type":"text"}]})");
  rules.result_form = ResultForm::kRaw;
  EXPECT_EQ(Read(rules, body).result, R"({"a":"é","b":1})");
  EXPECT_EQ(ResultOf(json::Value("done"), ResultForm::kToolResult), R"({"content":[{"text":"done","type":"text"}]})");
}

TEST(ReadAnswer, AnIdMustBeALine) {
  const auto with_id = [](const char* id) {
    return List(std::string(R"({"amount": 1, "status": "succeeded", "metadata": {"ref": "refrefref"}, "id": )") + id +
                "}");
  };
  EXPECT_EQ(Read(Search(), with_id("17")).reference, "17");
  for (const char* id : {"\"\"", "null", "\"a\\nb\"", "[]", "true"}) {
    EXPECT_EQ(Read(Search(), with_id(id)).finding, v1::FINDING_UNCLEAR) << id;
  }
}

TEST(ReadProgramAnswer, TakesTheFiveWordsAndNothingElse) {
  const auto finding = [](const std::string& output) { return ReadProgramAnswer(ResultForm::kRaw, output).finding; };
  EXPECT_EQ(finding(R"({"verdict": "happened"})"), v1::FINDING_HAPPENED);
  EXPECT_EQ(finding(R"({"verdict": "not_happened"})"), v1::FINDING_NOT_HAPPENED);
  EXPECT_EQ(finding(R"({"verdict": "absent", "detail": "no row"})"), v1::FINDING_ABSENT);
  EXPECT_EQ(finding(R"({"verdict": "pending"})"), v1::FINDING_PENDING);
  EXPECT_EQ(finding(R"({"verdict": "cannot_tell"})"), v1::FINDING_UNCLEAR);
  for (const char* output :
       {"", "happened", "\"absent\"", "[]", "{}", R"({"verdict": "Absent"})", R"({"verdict": null})",
        R"({"verdict": ["absent"]})", R"({"verdict": "absent"} {"verdict": "happened"})",
        R"({"verdict": "absent", "verdict": "absent"})", R"({"verdict": "absent", "sure": false})",
        R"({"verdict": "absent", "detail": 1})", R"({"verdict": "absent", "amount": 1})",
        R"({"verdict": "not_happened", "result": {}})", R"({"verdict": "absent", "reference": 1})",
        R"({"verdict": "absent", "reference": "a\nb"})"}) {
    EXPECT_EQ(finding(output), v1::FINDING_UNCLEAR) << output;
  }
  for (const char* amount : {"-1", "1.5", "\"1\"", "null"}) {
    EXPECT_EQ(finding(std::string(R"({"verdict": "happened", "amount": )") + amount + "}"), v1::FINDING_UNCLEAR)
        << amount;
  }
  const Reading reading = ReadProgramAnswer(
      ResultForm::kRaw,
      R"({"verdict": "happened", "reference": "row 7", "amount": 5, "result": [1], "detail": "a\nb"})");
  EXPECT_EQ(reading.amount, 5);
  EXPECT_EQ(reading.reference, "row 7");
  EXPECT_EQ(reading.result, "[1]");
  EXPECT_EQ(reading.detail, "a b");
}

TEST(OneLine, CutsWholeCharactersAndNoControls) {
  EXPECT_EQ(OneLine("a\r\n\tb\x7f\xc2\x85z", 100), "a   b  z");
  EXPECT_EQ(OneLine("\xff"
                    "a",
                    100),
            " a");
  EXPECT_EQ(OneLine("\xc3\xbc\xc3\xbc", 3), "\xc3\xbc");
}

}  // namespace
}  // namespace tally::reconciler
