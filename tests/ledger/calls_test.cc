#include <pqxx/pqxx>
#include <thread>

#include "tests/ledger/fixture.h"

namespace tally::ledger {
namespace {

using decide::Outcome;
using decide::Verdict;

class Calls : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(ledger_.BrokenRule(), ""); }

  Ledger ledger_;
  Replica replica_{ledger_};
};

TEST_F(Calls, GrantedCommittedAndReplayedByteForByte) {
  const auto permit = ledger_.Mint(OneGrant(3, 1000));
  const Reply granted = replica_.Authorize(*permit, {.key = "k1"});
  ASSERT_EQ(granted.answer.verdict, Verdict::kDispatch);
  const Reply committed = replica_.Commit(granted, Outcome::kSucceeded, R"({"ok":true})");
  EXPECT_EQ(committed.answer.state, v1::SUCCEEDED);
  const Reply again = replica_.Authorize(*permit, {.key = "k1"});
  ASSERT_EQ(again.answer.verdict, Verdict::kReplay);
  EXPECT_EQ(again.result, R"({"ok":true})");
  ASSERT_EQ(again.receipts.size(), 2u);
  EXPECT_EQ(again.receipts[0].SerializeAsString(), granted.receipts[0].SerializeAsString());
  EXPECT_EQ(again.receipts[1].SerializeAsString(), committed.receipts[0].SerializeAsString());
  EXPECT_EQ(ledger_.Query("SELECT spent FROM permit_state"), "100");
}

TEST_F(Calls, TheCapStopsTheNextCallAndTheRefusalIsRepeated) {
  const auto permit = ledger_.Mint(OneGrant(1));
  ASSERT_EQ(replica_.Authorize(*permit, {.key = "k1"}).answer.verdict, Verdict::kDispatch);
  const Replica::Ask other{.key = "k2", .arguments = R"({"amount":7})"};
  const Reply refused = replica_.Authorize(*permit, other);
  EXPECT_EQ(refused.answer.verdict, Verdict::kCallCap);
  const Reply again = replica_.Authorize(*permit, other);
  EXPECT_EQ(again.answer.verdict, Verdict::kCallCap);
  EXPECT_EQ(again.receipts[0].receipt_id(), refused.receipts[0].receipt_id());
}

TEST_F(Calls, ALostAnswerBlocksTheIntentUnderEveryKey) {
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = replica_.Authorize(*permit, {.key = "k1"});
  replica_.Commit(granted, Outcome::kUncertain);
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k1"}).answer.verdict, Verdict::kStillPending);
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k2"}).answer.verdict, Verdict::kIntentPending);
  EXPECT_EQ(replica_.Commit(granted, Outcome::kNotSent).answer.verdict, Verdict::kLeaseOver);
  EXPECT_EQ(ledger_.Query("SELECT count(*) FROM evidence WHERE source = 'gateway_journal'"), "1");
  EXPECT_EQ(replica_.Commit(granted, Outcome::kSucceeded, "late").answer.state, v1::SUCCEEDED);
  const Reply bound = replica_.Authorize(*permit, {.key = "k2"});
  EXPECT_EQ(bound.answer.verdict, Verdict::kReplay);
  EXPECT_EQ(bound.result, "late");
  const Reply bound_again = replica_.Authorize(*permit, {.key = "k2"});
  EXPECT_EQ(bound_again.receipts.size(), 3u);
  EXPECT_EQ(bound_again.answer.repeat_of, granted.answer.call_id);
}

TEST_F(Calls, NotSentGivesTheSlotBackAndTheSameKeyGoesThrough) {
  const auto permit = ledger_.Mint(OneGrant(1));
  const Reply granted = replica_.Authorize(*permit, {.key = "k1"});
  EXPECT_EQ(replica_.Commit(granted, Outcome::kNotSent).answer.state, v1::RELEASED);
  const Reply again = replica_.Authorize(*permit, {.key = "k1"});
  EXPECT_EQ(again.answer.verdict, Verdict::kDispatch);
  EXPECT_EQ(again.answer.attempt_number, 2);
  // The first attempt turns out to have happened: both are charged, beyond the cap.
  EXPECT_EQ(replica_.Commit(granted, Outcome::kSucceeded, "first").answer.verdict, Verdict::kRecorded);
  EXPECT_EQ(ledger_.Query("SELECT slot_overrun FROM grants"), "1");
  EXPECT_EQ(replica_.Commit(again, Outcome::kNotSent).answer.state, v1::SUCCEEDED);
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k1"}).result, "first");
}

TEST_F(Calls, AnAttemptIdIsUsedOnceInTheWholeDatabase) {
  const auto permit = ledger_.Mint(OneGrant());
  v1::MintRequest other_terms = OneGrant();
  other_terms.set_subject("somebody else");
  const auto other = ledger_.Mint(other_terms);
  const decide::Id attempt = NewAttemptId();
  ASSERT_EQ(replica_.Authorize(*permit, {.key = "k1", .attempt_id = attempt}).answer.verdict, Verdict::kDispatch);
  EXPECT_EQ(replica_.Authorize(*other, {.key = "k1", .attempt_id = attempt}).answer.verdict, Verdict::kAttemptUsed);
  EXPECT_EQ(
      replica_.Authorize(*permit, {.key = "k9", .arguments = R"({"amount":1})", .attempt_id = attempt}).answer.verdict,
      Verdict::kAttemptUsed);
}

TEST_F(Calls, ATombstoneKeepsALateAuthorizeFromBeingGranted) {
  const auto permit = ledger_.Mint(OneGrant());
  const decide::Id attempt = NewAttemptId();
  auto job = replica_.CommitJob({}, attempt, Outcome::kNotSent);
  auto& request = std::get<decide::CommitRequest>(job->request);
  request.call = decide::CallName::OfKey(permit->permit_id, "k1");
  auto moved = std::make_unique<CallJob>(permit->shard, lane::Priority::kReport, lane::Job::Clock::time_point::max(),
                                         job->request, job->bodies, [](lane::Fate, Reply&) {});
  const Reply voided = replica_.Run(std::move(moved));
  EXPECT_EQ(voided.answer.attempt_state, v1::VOIDED);
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k1", .attempt_id = attempt}).answer.verdict, Verdict::kAttemptUsed);
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k1"}).answer.verdict, Verdict::kDispatch);
}

TEST_F(Calls, ALeaseThatRunsOutParksTheCall) {
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = replica_.Authorize(*permit, {.key = "k1", .lease = decide::kSecond});
  ASSERT_EQ(granted.answer.verdict, Verdict::kDispatch);
  Connection connection(ledger_.conninfo());
  std::vector<decide::Id> lapsed;
  for (int i = 0; i < 100 && lapsed.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_TRUE(FindLapsed(connection, 10, &lapsed).ok());
  }
  ASSERT_EQ(lapsed, std::vector<decide::Id>{*granted.answer.call_id});
  const auto sweep = [&] {
    return replica_.Run(
        std::make_unique<CallJob>(permit->shard, lane::Priority::kReport, lane::Job::Clock::time_point::max(),
                                  decide::SweepRequest{lapsed.front()}, Bodies{}, [](lane::Fate, Reply&) {}));
  };
  EXPECT_EQ(sweep().answer.state, v1::UNCERTAIN);
  EXPECT_FALSE(sweep().answer.wrote);
  lapsed.clear();
  ASSERT_TRUE(FindLapsed(connection, 10, &lapsed).ok());
  EXPECT_TRUE(lapsed.empty());
}

TEST_F(Calls, ABatchDecidesEachRequestOnWhatThoseBeforeItDid) {
  const auto permit = ledger_.Mint(OneGrant(3));
  std::vector<std::unique_ptr<CallJob>> batch;
  for (int i = 0; i < 5; ++i) {
    batch.push_back(replica_.AuthorizeJob(
        *permit, {.key = "k" + std::to_string(i), .arguments = R"({"amount":)" + std::to_string(i) + "}"}));
  }
  batch.push_back(replica_.AuthorizeJob(*permit, {.key = "k0", .arguments = R"({"amount":0})"}));
  batch.push_back(replica_.AuthorizeJob(*permit, {.key = "other", .arguments = R"({"amount":1})"}));
  ASSERT_EQ(replica_.Run(batch), lane::BatchEnd::kCommitted);
  int granted = 0;
  for (const auto& job : batch) granted += job->reply.answer.verdict == Verdict::kDispatch;
  EXPECT_EQ(granted, 3);
  EXPECT_EQ(batch[4]->reply.answer.verdict, Verdict::kCallCap);
  EXPECT_EQ(batch[5]->reply.answer.verdict, Verdict::kStillAuthorized);
  EXPECT_EQ(batch[6]->reply.answer.verdict, Verdict::kIntentPending);
}

TEST_F(Calls, AReadIsGrantedCommittedAndLeavesNoIntentBehind) {
  v1::MintRequest terms = OneGrant();
  terms.mutable_grants(0)->set_effect(v1::READ);
  const auto permit = ledger_.Mint(terms);
  const Reply one = replica_.Authorize(*permit, {.key = "k1"});
  const Reply two = replica_.Authorize(*permit, {.key = "k2"});
  ASSERT_EQ(two.answer.verdict, Verdict::kDispatch);
  EXPECT_EQ(ledger_.Query("SELECT count(*) FROM intents"), "2");
  EXPECT_EQ(replica_.Commit(one, Outcome::kUncertain).answer.state, v1::TOOL_ERROR);
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k1"}).answer.verdict, Verdict::kReadNoAnswer);
  EXPECT_EQ(replica_.Commit(one, Outcome::kSucceeded, "late").answer.state, v1::SUCCEEDED);
  EXPECT_EQ(replica_.Commit(two, Outcome::kSucceeded, "x").answer.state, v1::SUCCEEDED);
  EXPECT_EQ(ledger_.Query("SELECT count(*) FROM intents"), "0");
}

TEST_F(Calls, ARefusedCallLeavesNoClaimOnItsIntent) {
  const auto permit = ledger_.Mint(OneGrant(0));
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k1"}).answer.verdict, Verdict::kCallCap);
  EXPECT_EQ(ledger_.Query("SELECT count(*) FROM intents"), "0");
}

TEST_F(Calls, ResolveNeedsTheReceiptItAnswersAndKeepsTheEvidence) {
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = replica_.Authorize(*permit, {.key = "k1"});
  const Reply parked = replica_.Commit(granted, Outcome::kUncertain);
  decide::ResolveRequest resolve;
  resolve.principal.id = ledger_.Principal(v1::OPERATOR);
  resolve.call_id = *granted.answer.call_id;
  resolve.attempt_id = granted.answer.attempt_id;
  resolve.supersedes = granted.receipts[0].receipt_id();
  resolve.finding = decide::Finding::kNotHappened;
  resolve.evidence.source = "ledger-file";
  Bodies bodies;
  bodies.evidence = "no such line";
  const auto run = [&] {
    return replica_.Run(std::make_unique<CallJob>(permit->shard, lane::Priority::kReport,
                                                  lane::Job::Clock::time_point::max(), resolve, bodies,
                                                  [](lane::Fate, Reply&) {}));
  };
  EXPECT_EQ(run().answer.verdict, Verdict::kStaleResolution);
  resolve.supersedes = parked.receipts[0].receipt_id();
  const Reply resolved = run();
  EXPECT_EQ(resolved.answer.state, v1::NOT_HAPPENED);
  EXPECT_EQ(run().receipts[0].receipt_id(), resolved.receipts[0].receipt_id());
  EXPECT_EQ(ledger_.Query("SELECT body FROM evidence WHERE source = 'ledger-file'"), "\\x6e6f2073756368206c696e65");
  EXPECT_EQ(replica_.Authorize(*permit, {.key = "k1"}).answer.attempt_number, 2);
}

// Two replicas on one permit: the database lets no more through than the cap, whoever retries.
// A connection that made its plans on an empty table goes on to find calls by their own index as the table grows. With
// the first plans it would read every call of the shard for each one looked for.
TEST_F(Calls, PlansFollowTheGrowthOfTheTable) {
  constexpr int kRounds = 64, kBatch = 32;
  {
    pqxx::connection raw(ledger_.conninfo());
    pqxx::nontransaction(raw).exec("ALTER TABLE calls SET (autovacuum_enabled = false)");  // it would bring new plans
  }
  const auto permit = ledger_.Mint(OneGrant());
  int amount = 0;
  {
    Replica fresh(ledger_);
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::unique_ptr<CallJob>> grants, commits;
      for (int i = 0; i < kBatch; ++i) {
        const std::string n = std::to_string(++amount);
        grants.push_back(fresh.AuthorizeJob(*permit, {.key = "k" + n, .arguments = R"({"amount":)" + n + "}"}));
      }
      ASSERT_EQ(fresh.Run(grants), lane::BatchEnd::kCommitted);
      for (const auto& job : grants) {
        const decide::Answer& granted = job->reply.answer;
        ASSERT_EQ(granted.verdict, Verdict::kDispatch);
        commits.push_back(fresh.CommitJob(*granted.call_id, granted.attempt_id, Outcome::kSucceeded));
      }
      ASSERT_EQ(fresh.Run(commits), lane::BatchEnd::kCommitted);
    }
  }  // with its connection's end, what it read is counted
  const std::string read = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'calls'";
  int64_t rows = 0;
  for (int tries = 0; tries < 1000 && rows < amount; ++tries) {
    rows = std::stoll(ledger_.Query(read));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(rows, amount);
  // Every commit finds its call twice, to decide and to store; with the first plans, among half of all on average.
  EXPECT_LT(rows, int64_t{amount} * amount / 4);
}

TEST_F(Calls, TwoReplicasRaceForOneCap) {
  constexpr int kCap = 20;
  const auto permit = ledger_.Mint(OneGrant(kCap));
  std::atomic<int> granted = 0;
  std::vector<std::thread> replicas;
  for (int r = 0; r < 2; ++r) {
    replicas.emplace_back([&, r] {
      Replica replica(ledger_);
      for (int round = 0; round < 10; ++round) {
        std::vector<std::unique_ptr<CallJob>> batch;
        for (int i = 0; i < 4; ++i) {
          const std::string n = std::to_string(1000 * r + 10 * round + i);
          batch.push_back(replica.AuthorizeJob(*permit, {.key = "k" + n, .arguments = R"({"amount":)" + n + "}"}));
        }
        ASSERT_EQ(replica.Run(batch, 200), lane::BatchEnd::kCommitted);
        for (const auto& job : batch) {
          const Verdict verdict = job->reply.answer.verdict;
          ASSERT_TRUE(verdict == Verdict::kDispatch || verdict == Verdict::kCallCap);
          granted += verdict == Verdict::kDispatch;
        }
      }
    });
  }
  for (std::thread& replica : replicas) replica.join();
  EXPECT_EQ(granted, kCap);
}

}  // namespace
}  // namespace tally::ledger
