#include "tests/doubt/cut_proxy.h"
#include "tests/ledger/fixture.h"

// The reply to a COMMIT is lost. What is said afterwards must be true: committed only if it is, and nothing granted
// twice.
namespace tally::ledger {
namespace {

using decide::Outcome;
using decide::Verdict;
using test::CutProxy;

std::string ValueOf(const std::string& conninfo, const std::string& name) {
  const size_t at = conninfo.find(name + "=");
  const size_t from = at + name.size() + 1;
  std::string value = conninfo.substr(from, conninfo.find(' ', from) - from);
  std::erase(value, '\'');
  return value;
}

// The same database, reached through the proxy.
std::string Through(const CutProxy& proxy, std::string conninfo) {
  const size_t at = conninfo.find("host=");
  conninfo.replace(at, conninfo.find(' ', at) - at, "host=" + proxy.socket_dir().string());
  return conninfo + " requirepeer=''";  // the proxy is not the server's user
}

class Doubt : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(ledger_.BrokenRule(), ""); }

  std::vector<std::unique_ptr<CallJob>> Batch(Replica& replica) {
    std::vector<std::unique_ptr<CallJob>> batch;
    batch.push_back(replica.AuthorizeJob(*permit_, {.key = "k1", .attempt_id = attempt_}));
    return batch;
  }
  lane::BatchEnd RunThroughProxy(std::vector<std::unique_ptr<CallJob>>& batch) {
    std::vector<lane::Job*> jobs = {batch.front().get()};
    return store_.Run(jobs, false);
  }

  Ledger ledger_;
  std::shared_ptr<const decide::PermitTerms> permit_ = ledger_.Mint(OneGrant(1));
  const decide::Id attempt_ = NewAttemptId();
  CutProxy proxy_{ValueOf(ledger_.conninfo(), "host")};
  CallStore store_{Through(proxy_, ledger_.conninfo()), ledger_.signer(), ledger_.terms()};
  Replica direct_{ledger_};
};

TEST_F(Doubt, WhatHadCommittedIsAnsweredAsCommitted) {
  auto batch = Batch(direct_);
  proxy_.CutNext(CutProxy::Cut::kAfterCommit);
  ASSERT_EQ(RunThroughProxy(batch), lane::BatchEnd::kCommitted);
  EXPECT_EQ(proxy_.cuts(), 1);
  EXPECT_EQ(batch.front()->reply.answer.verdict, Verdict::kDispatch);
  EXPECT_EQ(direct_.Authorize(*permit_, {.key = "k1", .attempt_id = attempt_}).answer.attempt_number, 1);
}

TEST_F(Doubt, WhatHadNotCommittedIsTriedAgain) {
  auto batch = Batch(direct_);
  proxy_.CutNext(CutProxy::Cut::kBeforeCommit);
  ASSERT_EQ(RunThroughProxy(batch), lane::BatchEnd::kLostRace);
  EXPECT_EQ(proxy_.cuts(), 1);
  EXPECT_EQ(ledger_.Query("SELECT count(*) FROM calls"), "0");
  ASSERT_EQ(RunThroughProxy(batch), lane::BatchEnd::kCommitted);
  EXPECT_EQ(batch.front()->reply.answer.verdict, Verdict::kDispatch);
}

// "in progress" is not an answer: the server is still committing when the client asks.
TEST_F(Doubt, WhatIsStillCommittingIsWaitedFor) {
  ledger_.Query(
      "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1); RETURN NULL; END $$;"
      "CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON attempts DEFERRABLE INITIALLY DEFERRED"
      " FOR EACH ROW EXECUTE FUNCTION dawdle()");
  auto batch = Batch(direct_);
  proxy_.CutNext(CutProxy::Cut::kWhileCommitting);
  ASSERT_EQ(RunThroughProxy(batch), lane::BatchEnd::kCommitted);
  EXPECT_EQ(proxy_.cuts(), 1);
  EXPECT_EQ(batch.front()->reply.answer.verdict, Verdict::kDispatch);
}

TEST_F(Doubt, WhatCannotBeFoundOutIsInDoubtAndTheSameKeyAndAttemptTellLater) {
  auto batch = Batch(direct_);
  proxy_.RefuseAfterCut(true);
  proxy_.CutNext(CutProxy::Cut::kAfterCommit);
  ASSERT_EQ(RunThroughProxy(batch), lane::BatchEnd::kInDoubt);
  proxy_.Accept();
  auto again = Batch(direct_);
  ASSERT_EQ(RunThroughProxy(again), lane::BatchEnd::kCommitted);
  EXPECT_EQ(again.front()->reply.answer.verdict, Verdict::kDispatch);
  EXPECT_EQ(again.front()->reply.answer.attempt_number, 1);
  EXPECT_EQ(ledger_.Query("SELECT count(*) FROM attempts"), "1");
}

TEST_F(Doubt, ADatabaseThatIsAwayMeansThatNothingHappened) {
  proxy_.RefuseAfterCut(true);
  proxy_.CutNext(CutProxy::Cut::kBeforeCommit);
  auto lost = Batch(direct_);
  ASSERT_EQ(RunThroughProxy(lost), lane::BatchEnd::kInDoubt);
  auto batch = Batch(direct_);
  EXPECT_EQ(RunThroughProxy(batch), lane::BatchEnd::kDown);
  EXPECT_EQ(ledger_.Query("SELECT count(*) FROM calls"), "0");
  // A gateway that gives up says NOT_SENT: from then on the attempt in doubt can never be granted.
  auto voided = direct_.CommitJob({}, attempt_, Outcome::kNotSent);
  auto& request = std::get<decide::CommitRequest>(voided->request);
  request.call = decide::CallName::OfKey(permit_->permit_id, "k1");
  EXPECT_EQ(
      direct_
          .Run(std::make_unique<CallJob>(permit_->shard, lane::Priority::kReport, lane::Job::Clock::time_point::max(),
                                         request, Bodies{}, [](lane::Fate, Reply&) {}))
          .answer.attempt_state,
      v1::VOIDED);
  proxy_.Accept();
  ASSERT_EQ(RunThroughProxy(batch), lane::BatchEnd::kCommitted);
  EXPECT_EQ(batch.front()->reply.answer.verdict, Verdict::kAttemptUsed);
}

}  // namespace
}  // namespace tally::ledger
