#include <absl/strings/numbers.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/support/rules/rules.h"
#include "tests/support/tallyd/tallyd.h"

// A driver that writes down what it was told, while tallyd or PostgreSQL is killed again and again. Nothing that was
// acknowledged may be missing afterwards, and nothing may have been let through twice.
namespace tally::test {
namespace {

constexpr int kCallers = 8;
constexpr int64_t kAmount = 10;
constexpr int kAskedAgainMax = 2000;

uint32_t FromEnvironment(const char* name, uint32_t otherwise) {
  const char* text = std::getenv(name);
  uint32_t number = otherwise;
  if (text != nullptr && !absl::SimpleAtoi(text, &number))
    throw std::invalid_argument(std::string(name) + " is not a number");
  return number;
}

int Kills() { return static_cast<int>(FromEnvironment("TALLY_CRASHES", 8)); }
uint32_t Seed() { return FromEnvironment("TALLY_SEED", 1); }

v1::MintRequest Terms() {
  v1::MintRequest request;
  request.set_subject("agent");
  request.set_unit("USD/2");
  request.mutable_budget()->set_unlimited(true);
  request.set_expires_in_ms(24 * 3'600'000);
  v1::GrantTerms& grant = *request.add_grants();
  grant.set_tool("pay");
  grant.mutable_cap()->set_unlimited(true);
  grant.mutable_budget()->set_unlimited(true);
  grant.mutable_cost()->set_fixed(kAmount);
  grant.set_lease_ms(3'600'000);
  return request;
}

class Driver {
 public:
  Driver(Fleet& fleet, const v1::MintResponse& permit) : fleet_(fleet), permit_(permit) {}

  void Run(int caller) {
    const auto calls = v1::Calls::NewStub(fleet_.replica(0).Channel());
    std::mt19937 random(Seed() * 1000 + static_cast<uint32_t>(caller));
    for (int n = 0; !stop_; ++n) {
      const std::string key = "k" + std::to_string(caller) + "-" + std::to_string(n);
      if (!OneCall(*calls, key, random)) return;
    }
  }
  void Stop() { stop_ = true; }

  // What was told, against what is stored.
  void Check() {
    EXPECT_EQ(failure_, "");
    EXPECT_GT(succeeded_, 0);
    EXPECT_EQ(BrokenRule(fleet_.conninfo()), "");
    EXPECT_EQ(Query(fleet_.conninfo(), "SELECT spent FROM grants"), std::to_string(kAmount * succeeded_));
    EXPECT_EQ(Query(fleet_.conninfo(), "SELECT held FROM grants"), std::to_string(kAmount * uncertain_));
    std::map<std::string, std::string> stored;
    std::set<std::pair<std::string, int>> granted;
    for (const v1::Receipt& receipt : fleet_.Chain(permit_.permit_id())) {
      stored[receipt.receipt_id()] = receipt.SerializeAsString();
      v1::ReceiptPayload payload;
      ASSERT_TRUE(payload.ParseFromString(receipt.payload()));
      if (payload.kind() != v1::CALL_ALLOWED) continue;
      EXPECT_TRUE(granted.emplace(payload.call_id(), payload.attempt_number()).second) << "an attempt granted twice";
    }
    int missing = 0;
    for (const auto& [id, receipt] : told_) {
      const auto found = stored.find(id);
      missing += found == stored.end() || found->second != receipt;
    }
    EXPECT_EQ(missing, 0) << "of " << told_.size() << " acknowledged receipts";
    EXPECT_EQ(fleet_.VerifyChain(permit_.permit_id()), "");
    AskAgain();
    std::cout << "  " << told_.size() << " decisions acknowledged, " << succeeded_ << " calls succeeded, " << uncertain_
              << " parked, " << retries_ << " requests repeated" << std::endl;
  }

 private:
  template <typename Response>
  void Note(const Response& response) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const v1::Receipt& receipt : response.receipts()) told_[receipt.receipt_id()] = receipt.SerializeAsString();
  }
  bool Fail(const std::string& why) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failure_.empty()) failure_ = why;
    return false;
  }

  // Again with the same key and attempt_id, as the error map says, for at most two minutes.
  template <typename Call>
  grpc::Status Persist(Call&& call) {
    grpc::Status status;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    do {
      grpc::ClientContext context;
      Prepare(context, fleet_.credential(v1::GATEWAY), 20);
      status = call(context);
      switch (status.error_code()) {
        case grpc::StatusCode::UNAVAILABLE:
        case grpc::StatusCode::ABORTED:
        case grpc::StatusCode::DEADLINE_EXCEEDED:
        case grpc::StatusCode::RESOURCE_EXHAUSTED:
          break;
        default:
          return status;
      }
      ++retries_;
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
    } while (std::chrono::steady_clock::now() < patience);
    return status;
  }

  grpc::Status Authorize(v1::Calls::Stub& calls, const std::string& key, const std::string& attempt_id,
                         v1::AuthorizeResponse& answer) {
    v1::AuthorizeRequest request;
    request.set_permit_token(permit_.permit_token());
    request.set_key(key);
    request.set_attempt_id(attempt_id);
    request.set_tool("pay");
    request.set_arguments("{\"key\":\"" + key + "\"}");
    return Persist([&](grpc::ClientContext& context) { return calls.Authorize(&context, request, &answer); });
  }

  grpc::Status Commit(v1::Calls::Stub& calls, const std::string& key, const std::string& attempt_id,
                      v1::CommitOutcome outcome, v1::CommitResponse& answer) {
    v1::CommitRequest request;
    request.set_permit_token(permit_.permit_token());
    request.set_key(key);
    request.set_attempt_id(attempt_id);
    request.set_outcome(outcome);
    if (outcome == v1::OUTCOME_SUCCEEDED) request.set_result("{\"ok\":true}");
    return Persist([&](grpc::ClientContext& context) { return calls.Commit(&context, request, &answer); });
  }

  // A key that ended is never let through again: its success is replayed, and what is unknown stays so.
  void AskAgain() {
    const auto calls = v1::Calls::NewStub(fleet_.replica(0).Channel());
    int asked = 0;
    for (const auto& [key, disposition] : ended_) {
      if (++asked > kAskedAgainMax) break;
      v1::AuthorizeResponse answer;
      const grpc::Status status = Authorize(*calls, key, RandomAttemptId(), answer);
      ASSERT_TRUE(status.ok()) << status.error_message();
      ASSERT_EQ(answer.disposition(), disposition) << key;
    }
  }

  // Attempts until one is sent; each that is not sent is given back first.
  bool OneCall(v1::Calls::Stub& calls, const std::string& key, std::mt19937& random) {
    for (int attempt = 0; attempt < 4; ++attempt) {
      const std::string attempt_id = RandomAttemptId();
      v1::AuthorizeResponse granted;
      grpc::Status status = Authorize(calls, key, attempt_id, granted);
      if (!status.ok()) return Fail("Authorize: " + status.error_message());
      Note(granted);
      const bool window_over = granted.disposition() == v1::PENDING;
      if (granted.disposition() != v1::DISPATCH && !(window_over && granted.refusal().code() == "SEND_WINDOW_OVER")) {
        return Fail("Authorize: " + granted.ShortDebugString().substr(0, 300));
      }
      // Every attempt before was acknowledged as given back.
      if (granted.attempt_number() != attempt + 1) {
        return Fail("attempt " + std::to_string(attempt + 1) + " of key " + key + " was granted as number " +
                    std::to_string(granted.attempt_number()));
      }
      if (random() % 4 == 0) {  // somebody else with the same key, while it is open
        v1::AuthorizeResponse rival;
        status = Authorize(calls, key, RandomAttemptId(), rival);
        if (!status.ok() || rival.disposition() != v1::PENDING) return Fail("a second dispatch of key " + key);
      }
      const auto choice = random() % 10;
      const v1::CommitOutcome outcome = window_over || choice == 0 ? v1::OUTCOME_NOT_SENT
                                        : choice == 1              ? v1::OUTCOME_UNCERTAIN
                                                                   : v1::OUTCOME_SUCCEEDED;
      v1::CommitResponse ended;
      status = Commit(calls, key, attempt_id, outcome, ended);
      if (!status.ok()) return Fail("Commit: " + status.error_message());
      Note(ended);
      if (outcome == v1::OUTCOME_NOT_SENT) continue;
      ++(outcome == v1::OUTCOME_SUCCEEDED ? succeeded_ : uncertain_);
      std::lock_guard<std::mutex> lock(mutex_);
      ended_[key] = outcome == v1::OUTCOME_SUCCEEDED ? v1::REPLAY : v1::PENDING;
      return true;
    }
    return true;
  }

  Fleet& fleet_;
  const v1::MintResponse permit_;
  std::atomic<bool> stop_ = false;
  std::atomic<int64_t> succeeded_ = 0, uncertain_ = 0, retries_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::string> told_;       // receipt id → receipt
  std::map<std::string, v1::Disposition> ended_;  // key → what it must be answered from then on
  std::string failure_;
};

template <typename Crash>
void UnderLoad(Fleet& fleet, Crash&& crash) {
  Driver driver(fleet, fleet.Mint(Terms()));
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) callers.emplace_back([&driver, c] { driver.Run(c); });
  std::mt19937 random(Seed());
  for (int kill = 0; kill < Kills(); ++kill) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 400));
    crash(random);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  driver.Stop();
  for (std::thread& caller : callers) caller.join();
  driver.Check();
}

TEST(Crash, TallydKilledUnderLoadLosesAndRepeatsNothing) {
  Fleet fleet(Postgres::Shared(), 1);
  UnderLoad(fleet, [&](std::mt19937&) {
    fleet.replica(0).Kill();
    fleet.replica(0).Start();
  });
}

TEST(Crash, PostgresKilledUnderLoadLosesAndRepeatsNothing) {
  Postgres postgres(Postgres::Fsync::kOn);
  Fleet fleet(postgres, 1);
  UnderLoad(fleet, [&](std::mt19937&) {
    postgres.Kill();
    postgres.Restart();
  });
}

// The PostgreSQL that tallyd runs for itself, fsync on: it outlives its tallyd and is adopted by the next, or both go
// down, as in a crash of the machine, and come back together.
TEST(Crash, TallydAndItsOwnPostgresKilledUnderLoadLoseAndRepeatNothing) {
  Fleet fleet;
  int adopted = 0, both = 0;
  UnderLoad(fleet, [&](std::mt19937& random) {
    const bool with_postgres = random() % 2 == 0;
    fleet.replica(0).Kill();
    if (with_postgres) fleet.KillPrivatePostgres();
    ++(with_postgres ? both : adopted);
    fleet.replica(0).Start();
  });
  std::cout << "  tallyd killed alone " << adopted << " times, with its PostgreSQL " << both << " times" << std::endl;
}

// The same, and its tallyd lives on: it starts the database again, and settles what it was committing.
TEST(Crash, ItsOwnPostgresKilledUnderALivingTallydLosesAndRepeatsNothing) {
  Fleet fleet;
  UnderLoad(fleet, [&](std::mt19937&) {
    fleet.KillPrivatePostgres();
    fleet.AwaitPrivatePostgres();
  });
}

}  // namespace
}  // namespace tally::test
