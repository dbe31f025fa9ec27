// A keyed tool asked again: a provider that remembers keys, and every reason not to ask it.
#include "reconciler/lookup/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lib/keys/provider_names.h"
#include "lib/receipt/payload.h"
#include "tests/gateway/support.h"

namespace tally::reconciler {
namespace {

using test::Folder;
using test::Json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kGranted = 1'800'000'000 * kSecond;
constexpr char kCall[] = "018f0000-0000-7000-8000-000000000001";

// The gateway's tests' server: `pay` acts once a key; `then` says what becomes of the first answer, `again` of others.
class ReplayTest : public ::testing::Test {
 protected:
  ReplayTest() {
    const std::string file = (std::filesystem::current_path() / "tests/gateway/upstream.py").string();
    test::WriteFile(folder_ / "gateway.toml", R"([tallyd]
lease_margin = "10s"
[upstreams.led]
command = "/usr/bin/python3"
args = [")" + file + R"("]
env = { LEDGER = ")" + (folder_ / "effects").string() +
                                                  R"(" }
[upstreams.led.tools.pay]
timeout = "10s"
replay = "keyed"
key = { argument = "key" }
reference = { argument = "ref" }
replay_window = "60s"
)");
    auto audit = gateway::AuditLog::Open({.path = (folder_ / "audit.jsonl").string()});
    EXPECT_TRUE(audit.ok());
    audit_ = *std::move(audit);
    v1::CallInfo& call = *parked_.mutable_call();
    call.set_call_id(kCall);
    call.set_tool("led__pay");
    call.set_arguments(R"({"text":"paid"})");
    v1::AttemptInfo& attempt = *call.add_attempts();
    attempt.set_attempt_id("0123456789abcdef");
    attempt.set_number(1);
    attempt.set_state(v1::UNCERTAIN);
    attempt.set_granted_at_us(kGranted);
    parked_.set_uncertain_receipt_id("receipt");
    parked_.set_granted_at_us(kGranted);
    parked_.set_now_us(kGranted + 20 * kSecond);
    parked_.set_claim_until_us(kGranted + 100 * kSecond);
    begun_at_us_ = parked_.now_us();
  }

  client::Answer<v1::BeginReplayResponse> Begin(const v1::BeginReplayRequest& request) {
    begun_.push_back(request);
    if (!refused_.empty()) {
      client::Failure failure;
      failure.code = refused_;
      return failure;
    }
    v1::ReceiptPayload payload;
    payload.set_format_version(receipt::kFormatVersion);
    payload.set_kind(v1::CALL_REPLAY_SENT);
    payload.set_time_us(begun_at_us_);
    v1::BeginReplayResponse response;
    response.add_receipts()->set_payload(receipt::Serialize(payload));
    return response;
  }

  absl::StatusOr<std::unique_ptr<LookUp>> Make(const std::string& tool, std::chrono::milliseconds timeout) {
    ToolConfig config;
    config.tool = tool;
    config.kind = Kind::kReplay;
    config.timeout = timeout;
    config.replay.gateway_config = (folder_ / "gateway.toml").string();
    return ReplayLookUp::Make(
        config, [this](const v1::BeginReplayRequest& request) { return Begin(request); }, audit_.get());
  }

  Answer Ask() {
    const auto look_up = Make("led__pay", std::chrono::seconds(10));
    EXPECT_TRUE(look_up.ok()) << look_up.status();
    return (*look_up)->Ask({parked_, keys::ProviderReference(kCall), keys::ProviderKey(kCall), "claim"});
  }

  std::vector<std::string> Lines(bool notes) const {
    std::vector<std::string> lines;
    std::istringstream text(test::ReadText(folder_ / "effects"));
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("# key") || (!notes && line[0] != '#')) lines.push_back(line);
    }
    return lines;
  }
  std::vector<std::string> Requests() const { return Lines(true); }
  // What was done, without requests.
  std::vector<std::string> Effects() const {
    std::vector<std::string> effects = Lines(false);
    std::erase_if(effects, [](const std::string& line) { return line[0] == '#'; });
    return effects;
  }
  // Nothing was sent, and nobody was told that it would be.
  void ExpectNothing(const Answer& answer, const std::string& why) {
    EXPECT_EQ(answer.finding, v1::FINDING_UNCLEAR);
    EXPECT_THAT(answer.detail, HasSubstr("not sent again"));
    EXPECT_THAT(answer.detail, HasSubstr(why));
    EXPECT_THAT(Requests(), IsEmpty());
  }
  Json Audited() {
    audit_.reset();
    Json sends = Json::array();
    std::istringstream text(test::ReadText(folder_ / "audit.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const Json entry = Json::parse(line);
      if (entry["method"] == "tools/call") sends.push_back(entry);
    }
    return sends;
  }

  Folder folder_;
  std::unique_ptr<gateway::AuditLog> audit_;
  v1::ParkedCall parked_;
  int64_t begun_at_us_ = 0;
  std::string refused_;
  std::vector<v1::BeginReplayRequest> begun_;
};

TEST_F(ReplayTest, SuccessIsHappenedWithTheAnswerAndTheKeyIsTheGateways) {
  const Answer answer = Ask();
  EXPECT_EQ(answer.finding, v1::FINDING_HAPPENED);
  ASSERT_TRUE(answer.result.has_value());
  EXPECT_EQ(test::TextOf(Json::parse(*answer.result)), "done: paid");
  EXPECT_EQ(answer.body, *answer.result);
  EXPECT_EQ(answer.reference, keys::ProviderKey(kCall));
  EXPECT_THAT(Requests(), ElementsAre("# key " + keys::ProviderKey(kCall)));
  EXPECT_THAT(Effects(), ElementsAre("paid"));
}

TEST_F(ReplayTest, WhatWasCarriedOutBeforeIsNotCarriedOutAgain) {
  EXPECT_EQ(Ask().finding, v1::FINDING_HAPPENED);
  EXPECT_EQ(Ask().finding, v1::FINDING_HAPPENED);
  EXPECT_THAT(Effects(), ElementsAre("paid"));
}

TEST_F(ReplayTest, BeginReplayComesFirstAndNamesAttemptReceiptAndClaim) {
  Ask();
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_EQ(begun_[0].call_id(), kCall);
  EXPECT_EQ(begun_[0].attempt_id(), "0123456789abcdef");
  EXPECT_EQ(begun_[0].supersedes(), "receipt");
  EXPECT_EQ(begun_[0].claim_id(), "claim");
}

TEST_F(ReplayTest, RefusedByTallydItIsNotSent) {
  refused_ = "PERMIT_REVOKED";
  ExpectNothing(Ask(), "PERMIT_REVOKED");
  EXPECT_THAT(Audited(), IsEmpty());
}

TEST_F(ReplayTest, OutsideOfTheWindowItIsNeverSentNorAnnounced) {
  // 60 s less timeout and margin: 40 s after the grant is the last moment.
  parked_.set_now_us(kGranted + 40 * kSecond + 1);
  begun_at_us_ = parked_.now_us();
  ExpectNothing(Ask(), "certainly knows");
  EXPECT_THAT(begun_, IsEmpty());
}

TEST_F(ReplayTest, TheWindowIsCountedFromTheFirstAttemptThatMayHaveBeenSent) {
  v1::AttemptInfo second = parked_.call().attempts(0);
  parked_.mutable_call()->mutable_attempts(0)->set_state(v1::NOT_HAPPENED);
  second.set_number(2);
  second.set_granted_at_us(kGranted + 30 * kSecond);
  *parked_.mutable_call()->add_attempts() = second;
  parked_.set_granted_at_us(second.granted_at_us());
  parked_.set_now_us(kGranted + 41 * kSecond);
  begun_at_us_ = parked_.now_us();
  ExpectNothing(Ask(), "certainly knows");
  // Of a released one not a byte was sent.
  parked_.mutable_call()->mutable_attempts(0)->set_state(v1::RELEASED);
  EXPECT_EQ(Ask().finding, v1::FINDING_HAPPENED);
}

TEST_F(ReplayTest, TallydsClockAtTheLastMomentDecidesNotTheOneOfTheClaim) {
  begun_at_us_ = kGranted + 41 * kSecond;
  ExpectNothing(Ask(), "certainly knows");
  EXPECT_EQ(begun_.size(), 1u);
}

TEST_F(ReplayTest, WhatPassesBetweenBeginReplayAndTheFirstByteCounts) {
  begun_at_us_ = kGranted + 40 * kSecond - 1;  // it takes longer than a microsecond
  ExpectNothing(Ask(), "the time to send it was over");
}

TEST_F(ReplayTest, AClaimThatEndsBeforeAnAnswerCanBeHereSendsNothing) {
  parked_.set_claim_until_us(parked_.now_us() + 9 * kSecond);
  ExpectNothing(Ask(), "claim ends");
}

TEST_F(ReplayTest, AnErrorSaysNothingOfTheEarlierSend) {
  parked_.mutable_call()->set_arguments(R"({"text":"paid","then":"error"})");
  const Answer answer = Ask();
  EXPECT_EQ(answer.finding, v1::FINDING_UNCLEAR);
  EXPECT_THAT(answer.detail, HasSubstr("sent again"));
  EXPECT_THAT(answer.body, HasSubstr("the account is closed"));
  parked_.mutable_call()->set_arguments(R"({"text":"paid","again":"rpc"})");
  EXPECT_EQ(Ask().finding, v1::FINDING_UNCLEAR);
  parked_.mutable_call()->set_arguments(R"({"text":"paid","again":"die"})");
  EXPECT_EQ(Ask().finding, v1::FINDING_UNCLEAR);
  const Json sends = Audited();
  ASSERT_EQ(sends.size(), 3u);
  EXPECT_EQ(sends[0]["outcome"], "uncertain");
  EXPECT_EQ(sends[2]["outcome"], "no_answer");
}

TEST_F(ReplayTest, EverySendHasItsLine) {
  Ask();
  const Json sends = Audited();
  ASSERT_EQ(sends.size(), 1u);
  EXPECT_EQ(sends[0]["call_id"], kCall);
  EXPECT_EQ(sends[0]["attempt"], 1);
  EXPECT_EQ(sends[0]["upstream"], "led");
  EXPECT_EQ(sends[0]["tool"], "pay");
  EXPECT_EQ(sends[0]["outcome"], "succeeded");
}

TEST_F(ReplayTest, WithoutArgumentsOrAttemptsNothingIsSent) {
  parked_.mutable_call()->clear_arguments();
  ExpectNothing(Ask(), "arguments");
  parked_.mutable_call()->clear_attempts();
  ExpectNothing(Ask(), "attempt");
}

TEST_F(ReplayTest, AToolThatTheGatewayDoesNotDeclareKeyedIsRefusedAtOnce) {
  for (const auto& [name, why] : {std::pair("led__append", "not declared"),
                                  std::pair("other__pay", "[upstreams.other]"), std::pair("pay", "upstream__tool")}) {
    EXPECT_THAT(std::string(Make(name, std::chrono::seconds(10)).status().message()), HasSubstr(why));
  }
  EXPECT_THAT(std::string(Make("led__pay", std::chrono::seconds(50)).status().message()),
              HasSubstr("never be sent again"));
}

}  // namespace
}  // namespace tally::reconciler
