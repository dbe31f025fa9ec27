#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <thread>

#include "tests/support/rules/rules.h"
#include "tests/support/tallyd/tallyd.h"

// Two tallyd processes on one database, and many callers. What is counted is what callers were told.
namespace tally::test {
namespace {

v1::MintRequest Terms(const std::string& subject, int64_t cap) {
  v1::MintRequest request;
  request.set_subject(subject);
  request.set_unit("USD/2");
  request.mutable_budget()->set_at_most(1'000'000);
  request.set_expires_in_ms(3'600'000);
  v1::GrantTerms& grant = *request.add_grants();
  grant.set_tool("pay");
  grant.mutable_cap()->set_at_most(cap);
  grant.mutable_budget()->set_at_most(1'000'000);
  grant.mutable_cost()->set_pointer("/amount");
  return request;
}

// What a caller does: the same key and attempt_id again where it lost a race, bounded. What it was told in the end.
// Nothing else is asked again: a deadlock or a full queue that is answered as anything but contended is seen.
struct Told {
  grpc::Status status;
  v1::AuthorizeResponse answer;
  int contended = 0;  // times it was asked to come again
};

Told Ask(v1::Calls::Stub& calls, const std::string& credential, const v1::AuthorizeRequest& request) {
  Told told;
  for (int i = 0; i < 100; ++i) {
    grpc::ClientContext context;
    Prepare(context, credential, 60);
    told.status = calls.Authorize(&context, request, &told.answer);
    if (told.status.error_code() != grpc::StatusCode::ABORTED) break;
    if (ReasonOf(told.status) != "SERIALIZATION_FAILURE") break;
    ++told.contended;
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + 13 * (i % 7)));
  }
  return told;
}

v1::AuthorizeRequest Wanted(const std::string& token, const std::string& key, int64_t amount) {
  v1::AuthorizeRequest request;
  request.set_permit_token(token);
  request.set_key(key);
  request.set_attempt_id(RandomAttemptId());
  request.set_tool("pay");
  request.set_arguments("{\"amount\":" + std::to_string(amount) + "}");
  return request;
}

void RaceForTheCap(const std::string& lanes, int wanted) {
  constexpr int kCallers = 64;
  constexpr int kCap = 100;
  Fleet fleet(Postgres::Shared(), 2, lanes);
  const v1::MintResponse permit = fleet.Mint(Terms("agent", kCap));
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::map<std::string, int> outcomes;
  int contended = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      const auto calls = v1::Calls::NewStub(fleet.replica(static_cast<size_t>(c) % 2).Channel());
      for (int n = next++; n < wanted; n = next++) {
        const Told told =
            Ask(*calls, fleet.credential(v1::GATEWAY), Wanted(permit.permit_token(), "k" + std::to_string(n), n + 1));
        const std::string outcome =
            !told.status.ok() ? "error " + ReasonOf(told.status)
                              : v1::Disposition_Name(told.answer.disposition()) + " " + told.answer.refusal().code();
        std::lock_guard<std::mutex> lock(mutex);
        ++outcomes[outcome];
        contended += told.contended;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(outcomes, (std::map<std::string, int>{{"DISPATCH ", kCap}, {"CAP_EXCEEDED CALL_CAP", wanted - kCap}}));
  EXPECT_EQ(BrokenRule(fleet.conninfo()), "");
  EXPECT_EQ(Query(fleet.conninfo(), "SELECT slots FROM grants"), std::to_string(kCap));
  EXPECT_EQ(Query(fleet.conninfo(), "SELECT count(*) FROM permit_state WHERE held + spent > budget"), "0");
  std::cout << "  " << contended << " answers were contended" << std::endl;
  EXPECT_EQ(fleet.VerifyChain(permit.permit_id()), "");
}

TEST(Race, TwoReplicasAnd64CallersGetExactlyTheCap) { RaceForTheCap("", 1000); }

TEST(Race, TheSameWithLanesAndBatchesOfOne) { RaceForTheCap("count = 1\nbatch_max = 1", 1000); }

// Two permits of one subject, the same intent at the same instant, each through another replica.
TEST(Race, OneIntentIsDispatchedOnceAcrossReplicasAndPermits) {
  constexpr int kRounds = 1000;
  Fleet fleet(Postgres::Shared(), 2);
  const v1::MintResponse permits[2] = {fleet.Mint(Terms("agent", 100'000)), fleet.Mint(Terms("agent", 100'000))};
  std::barrier together(2);
  std::vector<std::string> outcomes[2];
  int contended[2] = {0, 0};
  std::vector<std::thread> callers;
  for (size_t c = 0; c < 2; ++c) {
    callers.emplace_back([&, c] {
      const auto calls = v1::Calls::NewStub(fleet.replica(c).Channel());
      for (int round = 0; round < kRounds; ++round) {
        const v1::AuthorizeRequest request = Wanted(permits[c].permit_token(), "k" + std::to_string(round), round + 1);
        together.arrive_and_wait();
        const Told told = Ask(*calls, fleet.credential(v1::GATEWAY), request);
        contended[c] += told.contended;
        outcomes[c].push_back(!told.status.ok()                           ? "error " + ReasonOf(told.status)
                              : told.answer.disposition() == v1::DISPATCH ? "DISPATCH"
                                                                          : told.answer.refusal().code());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  int wrong = 0;
  for (size_t round = 0; round < kRounds; ++round) {
    const bool first = outcomes[0][round] == "DISPATCH" && outcomes[1][round] == "INTENT_PENDING";
    const bool second = outcomes[1][round] == "DISPATCH" && outcomes[0][round] == "INTENT_PENDING";
    if (first || second) continue;
    ++wrong;
    ADD_FAILURE() << "round " << round << ": " << outcomes[0][round] << ", " << outcomes[1][round];
    if (wrong == 5) break;
  }
  EXPECT_EQ(BrokenRule(fleet.conninfo()), "");
  for (const v1::MintResponse& permit : permits) EXPECT_EQ(fleet.VerifyChain(permit.permit_id()), "");
  std::cout << "  " << contended[0] + contended[1] << " answers were contended" << std::endl;
}

// The same call a hundred times at once: one may send, and everybody else is told not to.
TEST(Race, AHundredIdenticalCallsAreDispatchedOnce) {
  constexpr int kCallers = 100;
  Fleet fleet(Postgres::Shared(), 2);
  const v1::MintResponse permit = fleet.Mint(Terms("agent", 10));
  std::barrier together(kCallers);
  std::atomic<int> dispatched = 0, pending = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      const auto calls = v1::Calls::NewStub(fleet.replica(static_cast<size_t>(c) % 2).Channel());
      together.arrive_and_wait();
      const Told told = Ask(*calls, fleet.credential(v1::GATEWAY), Wanted(permit.permit_token(), "k", 5));
      dispatched += told.status.ok() && told.answer.disposition() == v1::DISPATCH;
      pending += told.status.ok() && told.answer.disposition() == v1::PENDING;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(dispatched, 1);
  EXPECT_EQ(pending, kCallers - 1);
  EXPECT_EQ(BrokenRule(fleet.conninfo()), "");
  EXPECT_EQ(fleet.VerifyChain(permit.permit_id()), "");
}

}  // namespace
}  // namespace tally::test
