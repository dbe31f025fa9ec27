#include <gtest/gtest.h>

#include "lib/keys/hash.h"
#include "tests/rpc/service.h"

namespace tally::test {
namespace {

// What is within a limit is served, and what is one beyond is refused with LIMIT or MALFORMED, over the wire.
class Limits : public testing::Test {
 protected:
  Limits() {
    v1::MintRequest terms = service_.Terms("acme");
    terms.mutable_grants(0)->mutable_cost()->set_none(true);
    terms.mutable_grants(0)->mutable_budget()->set_unlimited(true);
    terms.mutable_grants(0)->set_lease_ms(86'400'000);
    permit_ = service_.Mint(terms);
  }

  v1::AuthorizeRequest Asking(const std::string& key) { return Service::Asking(permit_, key); }

  // The code of the error, or the name of the disposition.
  std::string Ask(const v1::AuthorizeRequest& request) {
    v1::AuthorizeResponse response;
    const Outcome outcome = service_.Authorize(service_.Of("acme", v1::GATEWAY), request, response);
    return outcome.ok() ? v1::Disposition_Name(response.disposition()) : outcome.code();
  }

  v1::CommitRequest Answer(const std::string& key) {
    const v1::AuthorizeResponse granted = service_.Granted(permit_, key);
    v1::CommitRequest commit;
    commit.set_call_id(granted.call_id());
    commit.set_attempt_id(granted.attempt_id());
    commit.set_outcome(v1::OUTCOME_SUCCEEDED);
    return commit;
  }

  std::string Say(const v1::CommitRequest& request, v1::CommitResponse& response) {
    const Outcome outcome = service_.Commit(service_.Of("acme", v1::GATEWAY), request, response);
    return outcome.ok() ? v1::CallState_Name(response.state()) : outcome.code();
  }

  Service service_;
  v1::MintResponse permit_;
};

TEST_F(Limits, KeysHave1To255BytesWithoutControlCharacters) {
  EXPECT_EQ(Ask(Asking(std::string(255, 'k'))), "DISPATCH");
  EXPECT_EQ(Ask(Asking(std::string(256, 'k'))), "LIMIT");
  for (const std::string& key : {std::string(), std::string("a\nb"), std::string("a\0b", 3), std::string("a\x7f")}) {
    v1::AuthorizeRequest request = Asking("x");
    request.set_key(key);
    EXPECT_EQ(Ask(request), "MALFORMED");
  }
  EXPECT_EQ(Ask(Asking("schlüssel 🔑")), "DISPATCH");
}

TEST_F(Limits, AttemptIdsHaveExactly16Bytes) {
  for (const size_t size : {0, 15, 17, 32}) {
    v1::AuthorizeRequest request = Asking("k");
    request.set_attempt_id(keys::RandomBytes(size));
    EXPECT_EQ(Ask(request), "MALFORMED") << size;
  }
}

TEST_F(Limits, ToolNamesHave1To128OfTheirCharacters) {
  v1::AuthorizeRequest request = Asking("k");
  request.set_tool(std::string(128, 't'));
  EXPECT_EQ(Ask(request), "DENIED");  // not granted, but a name
  for (const std::string& tool : {std::string(), std::string(129, 't'), std::string("a b"), std::string("tool*")}) {
    request.set_tool(tool);
    EXPECT_EQ(Ask(request), "MALFORMED") << tool;
  }
}

TEST_F(Limits, ArgumentsHaveAtMost256KiB) {
  v1::AuthorizeRequest request = Asking("k");
  const std::string frame = R"({"a":""})";
  request.set_arguments(R"({"a":")" + std::string(256 * 1024 - frame.size(), 'x') + R"("})");
  EXPECT_EQ(Ask(request), "DISPATCH");
  request = Asking("k2");
  request.set_arguments(R"({"a":")" + std::string(256 * 1024 - frame.size() + 1, 'x') + R"("})");
  EXPECT_EQ(Ask(request), "LIMIT");
}

TEST_F(Limits, ArgumentsHaveAtMost64Levels) {
  auto nested = [](int levels) {
    return R"({"a":)" + std::string(static_cast<size_t>(levels) - 1, '[') +
           std::string(static_cast<size_t>(levels) - 1, ']') + "}";
  };
  v1::AuthorizeRequest request = Asking("k");
  request.set_arguments(nested(64));
  EXPECT_EQ(Ask(request), "DISPATCH");
  request = Asking("k2");
  request.set_arguments(nested(65));
  EXPECT_EQ(Ask(request), "ARGUMENTS_NOT_CANONICAL");
}

TEST_F(Limits, LeasesLastFromASecondToADay) {
  v1::AuthorizeRequest request = Asking("k");
  for (const int64_t wrong : {int64_t{-1}, int64_t{0}, int64_t{999}, int64_t{86'400'001}, INT64_MAX, INT64_MIN}) {
    request.set_lease_ms(wrong);
    EXPECT_EQ(Ask(request), "LIMIT") << wrong;
  }
  request.set_lease_ms(86'400'000);
  EXPECT_EQ(Ask(request), "DISPATCH");
  request = Asking("k2");
  request.set_lease_ms(1000);
  v1::AuthorizeResponse response;
  EXPECT_TRUE(service_.Authorize(service_.Of("acme", v1::GATEWAY), request, response).ok());
  EXPECT_EQ(response.lease_ms(), 1000);
}

TEST_F(Limits, AResultOverAMebibyteIsRecordedByItsHashAndSaidToBeSo) {
  for (const size_t over : {0, 1}) {
    const std::string key = "k" + std::to_string(over);
    v1::CommitRequest commit = Answer(key);
    commit.set_result(std::string(1024 * 1024 + over, 'r'));
    v1::CommitResponse response;
    EXPECT_EQ(Say(commit, response), "SUCCEEDED");
    EXPECT_EQ(response.result_kept(), over == 0);
    // The same report again is known, although the body is not kept.
    v1::CommitResponse again;
    EXPECT_EQ(Say(commit, again), "SUCCEEDED");
    EXPECT_EQ(again.receipts(0).receipt_id(), response.receipts(0).receipt_id());
    v1::AuthorizeResponse replay;
    EXPECT_TRUE(service_.Authorize(service_.Of("acme", v1::GATEWAY), Asking(key), replay).ok());
    EXPECT_EQ(replay.disposition(), v1::REPLAY);
    EXPECT_EQ(replay.has_result(), over == 0);
    EXPECT_EQ(replay.result().size(), over == 0 ? commit.result().size() : 0);
    EXPECT_EQ(replay.has_refusal() ? replay.refusal().code() : "", over == 0 ? "" : "ALREADY_DONE");
  }
}

TEST_F(Limits, APartialAnswerHasAtMost64KiB) {
  v1::CommitRequest commit = Answer("k");
  commit.set_outcome(v1::OUTCOME_UNCERTAIN);
  commit.set_partial_answer(std::string(64 * 1024 + 1, 'p'));
  v1::CommitResponse response;
  EXPECT_EQ(Say(commit, response), "LIMIT");
  commit.set_partial_answer(std::string(64 * 1024, 'p'));
  EXPECT_EQ(Say(commit, response), "UNCERTAIN");
}

TEST_F(Limits, WhatAnOutcomeCannotCarryIsRefused) {
  const v1::CommitRequest good = Answer("k");
  v1::CommitResponse response;
  v1::CommitRequest commit = good;
  commit.set_outcome(v1::COMMIT_OUTCOME_UNSPECIFIED);
  EXPECT_EQ(Say(commit, response), "MALFORMED");
  commit = good;
  commit.set_outcome(v1::OUTCOME_NOT_SENT);
  commit.set_result("x");
  EXPECT_EQ(Say(commit, response), "MALFORMED");
  commit = good;
  commit.set_no_effect(true);
  EXPECT_EQ(Say(commit, response), "MALFORMED");
  commit = good;
  commit.set_amount(-1);
  EXPECT_EQ(Say(commit, response), "MALFORMED");
  commit = good;
  commit.set_partial_answer("x");
  EXPECT_EQ(Say(commit, response), "MALFORMED");
  commit = good;
  commit.set_permit_token(permit_.permit_token());
  commit.set_key("k");
  EXPECT_EQ(Say(commit, response), "MALFORMED");  // named twice
  commit = good;
  commit.clear_call_id();
  EXPECT_EQ(Say(commit, response), "MALFORMED");  // not named
  EXPECT_EQ(Say(good, response), "SUCCEEDED");
}

TEST_F(Limits, EvidenceHasAtMostAMebibyteAndMustSayWhereItIsFrom) {
  v1::CommitRequest commit = Answer("k");
  commit.set_outcome(v1::OUTCOME_UNCERTAIN);
  v1::CommitResponse parked;
  ASSERT_EQ(Say(commit, parked), "UNCERTAIN");
  v1::ResolveRequest resolve;
  resolve.set_call_id(commit.call_id());
  resolve.set_attempt_id(commit.attempt_id());
  resolve.set_supersedes(parked.receipts(0).receipt_id());
  resolve.set_verdict(v1::VERDICT_HAPPENED);
  v1::Evidence good;
  good.set_source("ledger");
  good.set_reference("row 7");
  good.set_reason("seen");
  good.set_body(std::string(1024 * 1024, 'e'));
  auto say = [&](const v1::Evidence& evidence) {
    *resolve.mutable_evidence() = evidence;
    v1::ResolveResponse response;
    const Outcome outcome =
        Call(&v1::ParkedCalls::Stub::Resolve, *service_.parked, service_.Of("acme", v1::OPERATOR), resolve, response);
    return outcome.ok() ? v1::CallState_Name(response.state()) : outcome.code();
  };
  v1::Evidence evidence = good;
  evidence.set_body(std::string(1024 * 1024 + 1, 'e'));
  EXPECT_EQ(say(evidence), "LIMIT");
  evidence = good;
  evidence.clear_body();
  EXPECT_EQ(say(evidence), "MALFORMED");
  evidence = good;
  evidence.clear_reason();
  EXPECT_EQ(say(evidence), "MALFORMED");
  evidence = good;
  evidence.set_source("a\tb");
  EXPECT_EQ(say(evidence), "MALFORMED");
  evidence = good;
  evidence.set_reference(std::string(1025, 'r'));
  EXPECT_EQ(say(evidence), "MALFORMED");
  EXPECT_EQ(say(good), "SUCCEEDED");
}

TEST_F(Limits, PagesHoldAtMost1000) {
  v1::ListCallsRequest request;
  v1::ListCallsResponse response;
  const Principal& who = service_.Of("acme", v1::OPERATOR);
  for (const int size : {-1, 1001}) {
    request.set_page_size(size);
    EXPECT_EQ(Call(&v1::Calls::Stub::ListCalls, *service_.calls, who, request, response).code(), "LIMIT");
  }
  request.set_page_size(1000);
  request.set_page_token("nonsense");
  EXPECT_EQ(Call(&v1::Calls::Stub::ListCalls, *service_.calls, who, request, response).code(), "MALFORMED");
}

TEST_F(Limits, PagesTogetherHoldEachCallOnce) {
  std::set<std::string> made;
  for (int i = 0; i < 5; ++i) made.insert(service_.Granted(permit_, "k" + std::to_string(i)).call_id());
  std::set<std::string> seen;
  v1::ListCallsRequest request;
  request.set_page_size(2);
  int pages = 0;
  do {
    v1::ListCallsResponse response;
    ASSERT_TRUE(
        Call(&v1::Calls::Stub::ListCalls, *service_.calls, service_.Of("acme", v1::OPERATOR), request, response).ok());
    for (const v1::CallInfo& info : response.calls()) EXPECT_TRUE(seen.insert(info.call_id()).second);
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty() && ++pages < 10);
  EXPECT_EQ(seen, made);
}

// ---- Arguments that are not what they seem ----

class Arguments : public Limits, public testing::WithParamInterface<const char*> {};

TEST_P(Arguments, AreRefusedBeforeAnythingIsDone) {
  v1::AuthorizeRequest request = Asking("k");
  request.set_arguments(GetParam());
  v1::AuthorizeResponse response;
  const Outcome outcome = service_.Authorize(service_.Of("acme", v1::GATEWAY), request, response);
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << GetParam();
  EXPECT_EQ(outcome.code(), "ARGUMENTS_NOT_CANONICAL") << GetParam();
  EXPECT_NE(outcome.status.error_message().find("Nothing was done"), std::string::npos);
  // The key is as unused as before.
  EXPECT_EQ(Ask(Asking("k")), "DISPATCH");
}

INSTANTIATE_TEST_SUITE_P(Bad, Arguments,
                         testing::Values("{", "nonsense", R"({"a":1,"a":2})", R"({"amount":1,"Amount":2})",
                                         R"({"a":"\ud800"})", R"({"a":"\udc00\ud800"})", R"({"a":01})", R"({"a":1.})",
                                         R"({"a":NaN})", R"({"a":1} x)", R"({"a":"\x"})", "{\"a\":\"\xff\"}",
                                         "{\"a\":\"line\nbreak\"}", "\xef\xbb\xbf{}"));

TEST_F(Limits, NumbersKeepTheirValue) {
  v1::AuthorizeRequest request = Asking("k");
  request.set_arguments(R"({"zero":-0,"id":9007199254740993,"tiny":1e-400,"huge":1e400,"same":1.0})");
  ASSERT_EQ(Ask(request), "DISPATCH");
  // The same values in other words are the same call; a neighbouring 64-bit number is not.
  request.set_attempt_id(keys::RandomBytes(16));
  request.set_arguments(R"({"same":1,"huge":10e399,"tiny":1E-400,"id":9007199254740993,"zero":0})");
  EXPECT_EQ(Ask(request), "PENDING");
  request.set_arguments(R"({"same":1,"huge":10e399,"tiny":1E-400,"id":9007199254740992,"zero":0})");
  EXPECT_EQ(Ask(request), "KEY_REUSED");
}

TEST_F(Limits, AnEscapedNulIsTextLikeAnyOther) {
  v1::AuthorizeRequest request = Asking("k");
  request.set_arguments(R"({"a":"x\u0000y"})");
  EXPECT_EQ(Ask(request), "DISPATCH");
  v1::GetCallRequest get;
  get.set_permit_token(permit_.permit_token());
  get.set_key("k");
  v1::CallInfo info;
  EXPECT_TRUE(Call(&v1::Calls::Stub::GetCall, *service_.calls, service_.Of("acme", v1::OPERATOR), get, info).ok());
  EXPECT_EQ(info.arguments(), R"({"a":"x\u0000y"})");
}

}  // namespace
}  // namespace tally::test
