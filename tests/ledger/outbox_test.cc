#include "server/ledger/outbox.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <pqxx/pqxx>

#include "server/ledger/ids.h"
#include "server/ledger/webhooks.h"
#include "tests/ledger/fixture.h"

namespace tally::ledger {
namespace {

using decide::Outcome;
using decide::Verdict;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kMark[] = "MARK-OF-WHAT-AN-AGENT-WROTE";

struct Row {
  std::string webhook, type;
  nlohmann::json body;
};

class Outbox : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(ledger_.BrokenRule(), ""); }

  decide::Id NewWebhook(const std::string& tenant = Ledger::kTenant) {
    const auto id = CreateWebhook(connection_, tenant, "https://hooks.example/" + tenant,
                                  [](const decide::Id&) -> absl::StatusOr<std::string> { return "sealed"; });
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }

  pqxx::result Sql(const std::string& sql) {
    pqxx::connection connection(ledger_.conninfo());
    pqxx::nontransaction work(connection);
    return work.exec(sql);
  }

  std::vector<Row> Rows() {
    std::vector<Row> rows;
    for (const pqxx::row& row : Sql("SELECT webhook_id, body FROM outbox ORDER BY message")) {
      const auto body = nlohmann::json::parse(row[1].c_str());
      rows.push_back({row[0].c_str(), body["type"], body});
    }
    return rows;
  }
  std::vector<std::string> Types() {
    std::vector<std::string> types;
    for (const Row& row : Rows()) types.push_back(row.type);
    return types;
  }

  Reply Parked(const decide::PermitTerms& permit, const std::string& key) {
    const Reply granted =
        replica_.Authorize(permit, {.key = key, .arguments = "{\"amount\":100,\"n\":\"" + key + kMark + "\"}"});
    EXPECT_EQ(granted.answer.verdict, Verdict::kDispatch);
    return granted;
  }

  std::unique_ptr<CallJob> ResolveJob(const Reply& granted, const Reply& parked, decide::Finding finding,
                                      v1::Role role = v1::OPERATOR) {
    decide::ResolveRequest request;
    request.principal.id = ledger_.Principal(role);
    request.call_id = *granted.answer.call_id;
    request.attempt_id = granted.answer.attempt_id;
    request.supersedes = parked.receipts.at(0).receipt_id();
    request.finding = finding;
    request.evidence.source = "test";
    return std::make_unique<CallJob>(ShardOf(request.call_id), lane::Priority::kReport,
                                     lane::Job::Clock::now() + seconds(30), request, Bodies{},
                                     [](lane::Fate, Reply&) {});
  }

  // All that may be tried now.
  std::vector<OutboxMessage> Claim(const std::vector<Share>& shares, microseconds lease = hours(1)) {
    std::vector<OutboxMessage> messages;
    int64_t now_us = 0;
    const TxResult result = ClaimMessages(connection_, shares, lease, &messages, &now_us);
    EXPECT_TRUE(result.ok()) << result.message;
    return messages;
  }
  static ledger::Outcome OutcomeOf(const OutboxMessage& message, bool taken) {
    ledger::Outcome outcome;
    outcome.message = message.message;
    outcome.tries = message.tries;
    outcome.webhook_id = message.target.webhook_id;
    outcome.call_id = message.call_id;
    outcome.created_at_us = message.created_at_us;
    outcome.taken = taken;
    return outcome;
  }
  std::vector<bool> End(const std::vector<ledger::Outcome>& outcomes, microseconds give_up_after = hours(72)) {
    std::vector<bool> given_up;
    const TxResult result = EndMessages(connection_, outcomes, give_up_after, &given_up);
    EXPECT_TRUE(result.ok()) << result.message;
    return given_up;
  }
  v1::WebhookInfo Info() {
    const auto list = ListWebhooks(connection_, Ledger::kTenant);
    EXPECT_TRUE(list.ok() && list->size() == 1);
    return list->at(0);
  }

  Ledger ledger_;
  Replica replica_{ledger_};
  Connection connection_{ledger_.conninfo()};
};

// ---- What is written ----

TEST_F(Outbox, NothingIsWrittenForACallThatIsAnsweredInTime) {
  NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  replica_.Commit(Parked(*permit, "a"), Outcome::kSucceeded, "{}");
  replica_.Commit(Parked(*permit, "b"), Outcome::kToolError, "{}");
  replica_.Commit(Parked(*permit, "c"), Outcome::kNotSent);
  EXPECT_THAT(Types(), IsEmpty());
}

TEST_F(Outbox, ACallsLifeIsToldInItsOrderOnceToEachWebhookOfItsTenant) {
  Sql("INSERT INTO tenants SELECT 'other', gen_random_uuid(), sealed_secret, created_at_us, sequence, head FROM "
      "tenants");
  const std::string one = IdText(NewWebhook()), two = IdText(NewWebhook()), foreign = IdText(NewWebhook("other"));
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = Parked(*permit, "secret-key");
  const Reply parked = replica_.Commit(granted, Outcome::kUncertain);
  replica_.Commit(granted, Outcome::kUncertain);  // again: nothing new
  replica_.Run(ResolveJob(granted, parked, decide::Finding::kCannotTell));
  const Reply resolved = replica_.Run(ResolveJob(granted, parked, decide::Finding::kNotHappened));
  ASSERT_EQ(resolved.answer.verdict, Verdict::kRecorded);
  const Reply contradicted = replica_.Commit(granted, Outcome::kSucceeded, "{}");
  decide::CorrectRequest correct;
  correct.principal.id = ledger_.Principal(v1::OPERATOR);
  correct.call_id = *granted.answer.call_id;
  correct.attempt_id = granted.answer.attempt_id;
  correct.supersedes = contradicted.receipts.at(0).receipt_id();
  correct.finding = decide::Finding::kNotHappened;
  correct.evidence.source = "test";
  const Reply corrected = replica_.Run(std::make_unique<CallJob>(ShardOf(correct.call_id), lane::Priority::kReport,
                                                                 lane::Job::Clock::now() + seconds(30), correct,
                                                                 Bodies{}, [](lane::Fate, Reply&) {}));
  ASSERT_EQ(corrected.answer.verdict, Verdict::kRecorded);

  std::vector<std::string> to_one, to_two;
  for (const Row& row : Rows()) {
    EXPECT_NE(row.webhook, foreign);
    (row.webhook == one ? to_one : to_two).push_back(row.type);
    EXPECT_EQ(row.body.dump().find("MARK"), std::string::npos);
    EXPECT_EQ(row.body.dump().find("secret-key"), std::string::npos);
  }
  EXPECT_THAT(to_one,
              ElementsAre("call.parked", "call.escalated", "call.resolved", "call.contradicted", "call.corrected"));
  EXPECT_EQ(to_two, to_one);

  const nlohmann::json first = Rows().front().body["data"];
  EXPECT_EQ(first["call_id"], IdText(*granted.answer.call_id));
  EXPECT_EQ(first["permit_id"], IdText(permit->permit_id));
  EXPECT_EQ(first["subject"], permit->subject);
  EXPECT_EQ(first["tool"], "pay");
  EXPECT_EQ(first["unit"], permit->unit);
  EXPECT_EQ(first["hold"], 100);
  EXPECT_EQ(first["charged"], 0);
  EXPECT_EQ(first["attempt"], 1);
  EXPECT_EQ(first["state"], "UNCERTAIN");
  EXPECT_EQ(first["receipt_id"], keys::HexEncode(parked.receipts[0].receipt_id()));
  EXPECT_FALSE(first.contains("closed_by"));
  const nlohmann::json third = Rows()[4].body["data"];
  EXPECT_EQ(third["state"], "NOT_HAPPENED");
  EXPECT_EQ(third["closed_by"], "operator");
  EXPECT_EQ(Rows()[6].body["data"]["charged"], 100);
  EXPECT_EQ(Rows()[6].body["data"]["closed_by"], "gateway");
}

TEST_F(Outbox, ALateAnswerResolvesAndWhatIsAddedToAVerdictDoesNot) {
  NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  const Reply late = Parked(*permit, "late");
  replica_.Commit(late, Outcome::kUncertain);
  replica_.Commit(late, Outcome::kToolError, "{}");
  EXPECT_THAT(Types(), ElementsAre("call.parked", "call.resolved"));
  EXPECT_EQ(Rows()[1].body["data"]["state"], "TOOL_ERROR");
  EXPECT_EQ(Rows()[1].body["data"]["closed_by"], "gateway");

  const Reply judged = Parked(*permit, "judged");
  const Reply parked = replica_.Commit(judged, Outcome::kUncertain);
  replica_.Run(ResolveJob(judged, parked, decide::Finding::kHappened));
  replica_.Commit(judged, Outcome::kSucceeded, "{}");
  EXPECT_THAT(Types(), ElementsAre("call.parked", "call.resolved", "call.parked", "call.resolved"));
}

TEST_F(Outbox, WhatOneBatchDoesIsToldInItsOrder) {
  NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = Parked(*permit, "a");
  std::vector<std::unique_ptr<CallJob>> jobs;
  jobs.push_back(replica_.CommitJob(*granted.answer.call_id, granted.answer.attempt_id, Outcome::kUncertain));
  jobs.push_back(replica_.CommitJob(*granted.answer.call_id, granted.answer.attempt_id, Outcome::kSucceeded, "{}"));
  ASSERT_EQ(replica_.Run(jobs), lane::BatchEnd::kCommitted);
  EXPECT_THAT(Types(), ElementsAre("call.parked", "call.resolved"));
}

TEST_F(Outbox, ADecisionThatIsRolledBackTellsNothingAndOneThatCannotBeToldIsNoDecision) {
  NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = Parked(*permit, "a");
  const std::unique_ptr<CallJob> job =
      replica_.CommitJob(*granted.answer.call_id, granted.answer.attempt_id, Outcome::kUncertain);
  lane::Job* const jobs[] = {job.get()};
  CallStore store(ledger_.conninfo(), ledger_.signer(), ledger_.terms());
  for (const char* broken :
       {"permit_state ADD CONSTRAINT broken CHECK (sequence < 3)", "outbox ADD CONSTRAINT broken CHECK (body = '')"}) {
    Sql(std::string("ALTER TABLE ") + broken);
    EXPECT_EQ(store.Run(jobs, false), lane::BatchEnd::kRejected);
    EXPECT_THAT(Types(), IsEmpty());
    EXPECT_EQ(ledger_.Query("SELECT state FROM calls"), std::to_string(v1::AUTHORIZED));
    Sql("ALTER TABLE permit_state DROP CONSTRAINT IF EXISTS broken; ALTER TABLE outbox DROP CONSTRAINT IF EXISTS "
        "broken");
  }
  EXPECT_EQ(store.Run(jobs, false), lane::BatchEnd::kCommitted);
  EXPECT_THAT(Types(), ElementsAre("call.parked"));
}

// ---- How it is emptied ----

TEST_F(Outbox, OfACallOnlyTheOldestMessageIsClaimedAndOtherCallsDoNotWait) {
  const decide::Id webhook = NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  for (const char* key : {"a", "b"}) {
    const Reply granted = Parked(*permit, key);
    replica_.Commit(granted, Outcome::kUncertain);
    replica_.Commit(granted, Outcome::kSucceeded, "{}");
  }
  std::vector<decide::Id> waiting;
  ASSERT_TRUE(FindWaiting(connection_, &waiting).ok());
  EXPECT_THAT(waiting, ElementsAre(webhook));

  const std::vector<OutboxMessage> first = Claim({{webhook, 10}});
  ASSERT_EQ(first.size(), 2u);
  EXPECT_NE(first[0].call_id, first[1].call_id);
  EXPECT_NE(first[0].message_id, first[1].message_id);
  for (const OutboxMessage& message : first) {
    EXPECT_NE(message.body.find("call.parked"), std::string::npos);
    EXPECT_EQ(message.tries, 1);
    EXPECT_EQ(message.target.sealed_secret, "sealed");
  }
  EXPECT_THAT(Claim({{webhook, 10}}), IsEmpty());  // leased

  End({OutcomeOf(first[0], true)});
  const std::vector<OutboxMessage> second = Claim({{webhook, 10}});
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].call_id, first[0].call_id);
  EXPECT_NE(second[0].body.find("call.resolved"), std::string::npos);
  EXPECT_EQ(Info().delivered(), 1);
  EXPECT_EQ(Info().waiting(), 3);
}

TEST_F(Outbox, AClaimThatRanOutIsTakenOverWithTheSameIdAndTheFirstClaimantChangesNothingMore) {
  const decide::Id webhook = NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  replica_.Commit(Parked(*permit, "a"), Outcome::kUncertain);
  const std::vector<OutboxMessage> first = Claim({{webhook, 1}}, microseconds(0));
  const std::vector<OutboxMessage> second = Claim({{webhook, 1}});
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].message_id, first[0].message_id);
  EXPECT_EQ(second[0].body, first[0].body);
  EXPECT_EQ(second[0].tries, 2);

  EXPECT_THAT(End({OutcomeOf(first[0], false)}, microseconds(0)), ElementsAre(false));
  EXPECT_THAT(Claim({{webhook, 1}}), IsEmpty());  // still the second's
  EXPECT_EQ(Info().waiting(), 1);
  End({OutcomeOf(first[0], true)});  // it was taken all the same
  End({OutcomeOf(second[0], true)});
  EXPECT_EQ(Info().waiting(), 0);
  EXPECT_EQ(Info().delivered(), 1);
}

TEST_F(Outbox, AMessageThatWasNotTakenWaitsAndWhatComesAfterItWaitsWithIt) {
  const decide::Id webhook = NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = Parked(*permit, "a");
  replica_.Commit(granted, Outcome::kUncertain);
  replica_.Commit(granted, Outcome::kSucceeded, "{}");
  ledger::Outcome failed = OutcomeOf(Claim({{webhook, 10}}).at(0), false);
  failed.error = "HTTP 500";
  failed.retry_after = hours(1);
  EXPECT_THAT(End({failed}), ElementsAre(false));
  EXPECT_THAT(Claim({{webhook, 10}}), IsEmpty());
  std::vector<decide::Id> waiting;
  ASSERT_TRUE(FindWaiting(connection_, &waiting).ok());
  EXPECT_THAT(waiting, IsEmpty());
  EXPECT_EQ(Info().last_error(), "HTTP 500");
  EXPECT_EQ(Info().waiting(), 2);

  Sql("UPDATE outbox SET next_try_us = 0 WHERE message = (SELECT min(message) FROM outbox)");
  const std::vector<OutboxMessage> again = Claim({{webhook, 10}});
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].tries, 2);
  End({OutcomeOf(again[0], true)});
  EXPECT_EQ(Claim({{webhook, 10}}).size(), 1u);  // its follower waits no longer
  EXPECT_EQ(Info().last_error(), "");
}

TEST_F(Outbox, AMessageIsGivenUpAtItsAgeOrWhenTheReceiverIsGone) {
  const decide::Id webhook = NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  for (const char* key : {"a", "b", "c"}) replica_.Commit(Parked(*permit, key), Outcome::kUncertain);
  std::vector<OutboxMessage> messages = Claim({{webhook, 10}});
  ASSERT_EQ(messages.size(), 3u);
  Sql("UPDATE outbox SET created_at_us = created_at_us - 3600000000::bigint * 72 WHERE message = " +
      std::to_string(messages[0].message));
  messages[0].created_at_us -= microseconds(hours(72)).count();
  std::vector<ledger::Outcome> outcomes;
  for (const OutboxMessage& message : messages) outcomes.push_back(OutcomeOf(message, false));
  for (ledger::Outcome& outcome : outcomes) outcome.error = "HTTP 410";
  outcomes[1].gone = true;
  EXPECT_THAT(End(outcomes), ElementsAre(true, true, false));
  EXPECT_EQ(Info().waiting(), 1);
  EXPECT_EQ(Info().given_up(), 2);
  EXPECT_EQ(Info().delivered(), 0);
  EXPECT_EQ(Info().last_error(), "HTTP 410");
}

TEST_F(Outbox, ADeletedWebhookTakesItsMessagesAlongAndAnOutcomeThatComesLaterIsNothing) {
  const decide::Id webhook = NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  const Reply granted = Parked(*permit, "a");
  replica_.Commit(granted, Outcome::kUncertain);
  const std::vector<OutboxMessage> claimed = Claim({{webhook, 1}});
  EXPECT_TRUE(absl::IsNotFound(DeleteWebhook(connection_, "other", webhook)));
  EXPECT_TRUE(DeleteWebhook(connection_, Ledger::kTenant, webhook).ok());
  EXPECT_THAT(Types(), IsEmpty());
  End({OutcomeOf(claimed.at(0), true)});
  replica_.Commit(granted, Outcome::kSucceeded, "{}");
  EXPECT_THAT(Types(), IsEmpty());
}

// Two replicas' connections, with a row in each other's way.
TEST_F(Outbox, ReplicasClaimDifferentMessagesAndDoNotWaitForEachOther) {
  const decide::Id webhook = NewWebhook();
  const auto permit = ledger_.Mint(OneGrant());
  for (int i = 0; i < 20; ++i) replica_.Commit(Parked(*permit, "k" + std::to_string(i)), Outcome::kUncertain);
  pqxx::connection rival(ledger_.conninfo());
  pqxx::work claiming(rival);
  claiming.exec("SELECT FROM outbox ORDER BY message LIMIT 5 FOR UPDATE");
  EXPECT_EQ(Claim({{webhook, 100}}).size(), 15u);
  claiming.abort();
  EXPECT_EQ(Claim({{webhook, 100}}).size(), 5u);
}

}  // namespace
}  // namespace tally::ledger
