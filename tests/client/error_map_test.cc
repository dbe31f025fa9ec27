#include "lib/client/error_map.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "tests/client/statuses.h"

namespace tally::client {
namespace {

const v1::Kind kAllKinds[] = {
    v1::KIND_DENIED,      v1::KIND_CONTENDED, v1::KIND_CAP_EXCEEDED, v1::KIND_DELIVERY_UNCERTAIN, v1::KIND_ALREADY_DONE,
    v1::KIND_READ_FAILED, v1::KIND_INVALID,   v1::KIND_CONFLICT,     v1::KIND_UNAUTHORIZED,       v1::KIND_UNAVAILABLE};

TEST(ErrorMap, EveryKindHasItsOwnRow) {
  std::set<std::string_view> names;
  for (const v1::Kind kind : kAllKinds) {
    EXPECT_EQ(Info(kind).kind, kind);
    names.insert(Info(kind).name);
  }
  EXPECT_EQ(names.size(), std::size(kAllKinds));
}

TEST(ErrorMap, OnlyContendedAndUnavailableAreAskedAgainWithTheSameKey) {
  for (const v1::Kind kind : kAllKinds) {
    const bool again = Info(kind).retry == v1::RETRY_SAME_KEY;
    EXPECT_EQ(again, kind == v1::KIND_CONTENDED || kind == v1::KIND_UNAVAILABLE) << Info(kind).name;
  }
}

TEST(ErrorMap, ExitsAreThoseThatScriptsRelyOn) {
  EXPECT_EQ(Info(v1::KIND_DENIED).authorize_exit, 10);
  EXPECT_EQ(Info(v1::KIND_CONTENDED).authorize_exit, 11);
  EXPECT_EQ(Info(v1::KIND_CAP_EXCEEDED).authorize_exit, 12);
  EXPECT_EQ(Info(v1::KIND_DELIVERY_UNCERTAIN).authorize_exit, 13);
  EXPECT_EQ(Info(v1::KIND_ALREADY_DONE).authorize_exit, 14);
  EXPECT_EQ(Info(v1::KIND_UNAVAILABLE).authorize_exit, 3);
  for (const v1::Kind kind : {v1::KIND_INVALID, v1::KIND_CONFLICT, v1::KIND_UNAUTHORIZED}) {
    EXPECT_EQ(Info(kind).authorize_exit, 1);
  }
}

RC_GTEST_PROP(ErrorMap, AKindFromTheFutureIsDeliveryUncertainAndItsAdviceIsNotFollowed, ()) {
  const int number =
      *rc::gen::suchThat(rc::gen::arbitrary<int>(), [](int n) { return !v1::Kind_IsValid(n) || n == 0; });
  v1::Refusal refusal;
  refusal.set_kind(static_cast<v1::Kind>(number));
  refusal.set_code("FROM_THE_FUTURE");
  refusal.set_retry(static_cast<v1::Retry>(*rc::gen::inRange(0, 7)));
  const Failure failure = FromRefusal(refusal);
  RC_ASSERT(failure.kind == v1::KIND_DELIVERY_UNCERTAIN);
  RC_ASSERT(failure.retry == v1::RETRY_WAIT);
  RC_ASSERT(failure.code == "FROM_THE_FUTURE");
}

TEST(ErrorMap, ARefusalInTheBodyKeepsItsWords) {
  v1::Refusal refusal;
  refusal.set_kind(v1::KIND_CAP_EXCEEDED);
  refusal.set_code("CALL_CAP");
  refusal.set_message("The permit's three refunds are used up.");
  refusal.set_retry(v1::RETRY_NEVER);
  const Failure failure = FromRefusal(refusal);
  EXPECT_EQ(failure.kind, v1::KIND_CAP_EXCEEDED);
  EXPECT_EQ(failure.code, "CALL_CAP");
  EXPECT_EQ(failure.message, "The permit's three refunds are used up.");
  EXPECT_EQ(failure.retry, v1::RETRY_NEVER);
}

TEST(ErrorMap, AStatusTakesItsKindFromErrorInfo) {
  const Failure conflict = FromStatus(StatusWith(grpc::StatusCode::FAILED_PRECONDITION, "COMMIT_CONFLICT"));
  EXPECT_EQ(conflict.kind, v1::KIND_CONFLICT);
  EXPECT_EQ(conflict.code, "COMMIT_CONFLICT");
  const Failure invalid = FromStatus(StatusWith(grpc::StatusCode::FAILED_PRECONDITION, "KEY_REUSED"));
  EXPECT_EQ(invalid.kind, v1::KIND_INVALID);
  const Failure contended = FromStatus(StatusWith(grpc::StatusCode::ABORTED, "SERIALIZATION_FAILURE", 50));
  EXPECT_EQ(contended.kind, v1::KIND_CONTENDED);
  EXPECT_EQ(contended.retry_delay, std::chrono::milliseconds(50));
}

TEST(ErrorMap, AnUnknownCodeIsNeverContended) {
  EXPECT_EQ(FromStatus(StatusWith(grpc::StatusCode::ABORTED, "SOMETHING_NEW")).kind, v1::KIND_DELIVERY_UNCERTAIN);
  EXPECT_EQ(FromStatus(StatusWith(grpc::StatusCode::DATA_LOSS, "SOMETHING_NEW")).kind, v1::KIND_DELIVERY_UNCERTAIN);
  EXPECT_EQ(FromStatus(StatusWith(grpc::StatusCode::INVALID_ARGUMENT, "SOMETHING_NEW")).kind, v1::KIND_INVALID);
}

TEST(ErrorMap, ErrorsThatTheServiceDidNotSpeakAreUnavailable) {
  for (const auto code : {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::DEADLINE_EXCEEDED,
                          grpc::StatusCode::CANCELLED, grpc::StatusCode::UNKNOWN, grpc::StatusCode::INTERNAL,
                          grpc::StatusCode::ABORTED, grpc::StatusCode::NOT_FOUND}) {
    const Failure failure = FromStatus(grpc::Status(code, "connection reset"));
    EXPECT_EQ(failure.kind, v1::KIND_UNAVAILABLE) << code;
    EXPECT_EQ(failure.code, kTransportCode);
  }
  EXPECT_EQ(FromStatus(StatusWith(grpc::StatusCode::ABORTED, "SERIALIZATION_FAILURE", 0, "elsewhere.example")).kind,
            v1::KIND_UNAVAILABLE);
}

TEST(ErrorMap, AbsurdDelaysAndBrokenDetailsAreBounded) {
  EXPECT_EQ(FromStatus(StatusWith(grpc::StatusCode::UNAVAILABLE, "OVERLOADED", INT64_MAX)).retry_delay,
            std::chrono::hours(24));
  EXPECT_EQ(FromStatus(StatusWith(grpc::StatusCode::UNAVAILABLE, "OVERLOADED", -5)).retry_delay,
            std::chrono::milliseconds(0));
  EXPECT_EQ(FromStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "x", "\xff\xff not a message")).kind,
            v1::KIND_UNAVAILABLE);
}

}  // namespace
}  // namespace tally::client
