#include <algorithm>
#include <pqxx/pqxx>
#include <thread>

#include "server/ledger/report_reads.h"
#include "tests/ledger/story.h"

namespace tally::ledger {
namespace {

using decide::Finding;
using decide::Outcome;
using decide::Verdict;

using Count = std::map<int, int64_t>;  // by enumerator

Count CallsOf(const v1::Report& report) {
  Count count;
  for (const v1::OutcomeCount& outcome : report.calls()) count[outcome.state()] += outcome.calls();
  return count;
}

Count ClosedOf(const v1::Report& report) {
  Count count;
  for (const v1::ClosedBy& closed : report.closed()) count[closed.closer()] += closed.calls();
  return count;
}

std::map<std::string, int64_t> MoneyOf(const v1::Report& report) {
  std::map<std::string, int64_t> money;
  for (const v1::Money& sum : report.avoided().money()) money[sum.unit()] += sum.amount();
  return money;
}

// As it is defined: the first of the sorted values that at least this part of all does not exceed.
int64_t Percentile(std::vector<int64_t> values, int percent) {
  std::sort(values.begin(), values.end());
  return values[(values.size() * static_cast<size_t>(percent) + 99) / 100 - 1];
}

class Reports : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(ledger_.BrokenRule(), ""); }

  v1::Report Get(int days = 7) {
    Connection connection(ledger_.conninfo());
    auto report = GetReport(connection, Ledger::kTenant, days);
    EXPECT_TRUE(report.ok()) << report.status();
    return *report;
  }
  void Execute(const std::string& sql) {
    pqxx::connection raw(ledger_.conninfo());
    pqxx::nontransaction(raw).exec(sql);
  }

  Ledger ledger_;
};

TEST_F(Reports, AreTheNumbersOfWhatWasDone) {
  v1::MintRequest terms = OneGrant();
  *terms.add_grants() = terms.grants(0);
  terms.mutable_grants(1)->set_tool("look");
  terms.mutable_grants(1)->set_effect(v1::READ);
  Story s(ledger_, terms);
  v1::MintRequest in_yen = OneGrant();
  in_yen.set_unit("JPY/0");
  in_yen.set_subject("another agent");
  Story yen(ledger_, in_yen);

  for (const char* key : {"in-time-1", "in-time-2"}) {
    s.Authorize(key);
    s.Commit(key, Outcome::kSucceeded);
  }
  s.Authorize("error");
  s.Commit("error", Outcome::kToolError);
  s.Authorize("not-sent");
  s.Commit("not-sent", Outcome::kNotSent);
  s.Authorize("twice");
  s.Commit("twice", Outcome::kNotSent);
  s.Authorize("twice");
  s.Commit("twice", Outcome::kSucceeded);
  s.Authorize("open");
  EXPECT_EQ(s.Authorize("refused", "", "no-such-tool").answer.verdict, Verdict::kToolNotGranted);
  // Another name of a call is no call.
  EXPECT_EQ(s.Authorize("bound", R"({"amount":100,"act":"in-time-1"})").answer.verdict, Verdict::kReplay);
  // A READ is never unknown.
  s.Authorize("read", "", "look");
  EXPECT_EQ(s.Commit("read", Outcome::kUncertain).answer.state, v1::TOOL_ERROR);

  s.Park("late");
  EXPECT_EQ(s.Commit("late", Outcome::kSucceeded).answer.state, v1::SUCCEEDED);
  s.Park("late-error");
  EXPECT_EQ(s.Commit("late-error", Outcome::kToolError).answer.state, v1::TOOL_ERROR);
  s.Park("person-happened");
  s.Resolve("person-happened", Finding::kHappened, v1::OPERATOR, 250);
  s.Park("look-up-happened");
  s.Resolve("look-up-happened", Finding::kHappened, v1::RECONCILER);
  s.Park("look-up-not");
  s.Resolve("look-up-not", Finding::kNotHappened, v1::RECONCILER);
  s.Park("again");
  s.Resolve("again", Finding::kNotHappened, v1::OPERATOR);
  s.Authorize("again");
  s.Commit("again", Outcome::kSucceeded);
  s.Park("escalated");
  s.Resolve("escalated", Finding::kCannotTell, v1::RECONCILER);
  s.Park("parked");
  s.Park("escalated-closed");
  s.Resolve("escalated-closed", Finding::kCannotTell, v1::RECONCILER);
  s.Resolve("escalated-closed", Finding::kHappened, v1::OPERATOR);
  s.Park("contradicted");
  s.Resolve("contradicted", Finding::kNotHappened, v1::OPERATOR);
  EXPECT_EQ(s.Commit("contradicted", Outcome::kSucceeded).answer.state, v1::SUCCEEDED);
  s.Park("corrected");
  const Reply wrong = s.Resolve("corrected", Finding::kHappened, v1::OPERATOR);
  EXPECT_EQ(s.Correct("corrected", wrong, Finding::kNotHappened).answer.state, v1::NOT_HAPPENED);
  s.Park("corrected-back");
  const Reply also_wrong = s.Resolve("corrected-back", Finding::kNotHappened, v1::RECONCILER);
  s.Correct("corrected-back", also_wrong, Finding::kHappened);
  // Parked twice, each attempt on its own; then the first turns out to have happened.
  s.Park("parked-twice");
  s.Resolve("parked-twice", Finding::kNotHappened, v1::RECONCILER);
  s.Park("parked-twice");
  yen.Park("yen");
  yen.Resolve("yen", Finding::kHappened, v1::OPERATOR);

  const v1::Report report = Get();
  // By present state: released not-sent; open open; refused refused; uncertain escalated, parked, parked-twice.
  EXPECT_EQ(CallsOf(report), (Count{{v1::REFUSED, 1},
                                    {v1::AUTHORIZED, 1},
                                    {v1::UNCERTAIN, 3},
                                    {v1::SUCCEEDED, 3 + 1 + 2 + 1 + 1 + 1 + 1 + 1},
                                    {v1::TOOL_ERROR, 1 + 1 + 1},
                                    {v1::RELEASED, 1},
                                    {v1::NOT_HAPPENED, 2}}));
  ASSERT_EQ(report.unknown_size(), 7);
  EXPECT_EQ(report.unknown(6).parked(), 15);
  EXPECT_EQ(report.unknown(6).attempts(), 8 + 1 + 15);  // not parked, `again` when it went through, parked
  EXPECT_EQ(report.unknown(6).day_start_us() % kDayUs, 0);
  EXPECT_GT(report.unknown(6).day_start_us() + kDayUs, report.now_us());
  for (int day = 0; day < 6; ++day) {
    EXPECT_EQ(report.unknown(day).parked() + report.unknown(day).attempts(), 0);
    EXPECT_EQ(report.unknown(day).day_start_us() + kDayUs, report.unknown(day + 1).day_start_us());
  }
  EXPECT_EQ(report.parked().now(), 3);
  EXPECT_EQ(std::to_string(report.parked().oldest_us()),
            ledger_.Query("SELECT min(parked_at_us) FROM parkings WHERE state = 3"));
  EXPECT_EQ(ClosedOf(report), (Count{{v1::CLOSER_GATEWAY, 2}, {v1::CLOSER_RECONCILER, 4}, {v1::CLOSER_OPERATOR, 6}}));
  EXPECT_EQ(report.escalations_open(), 1);
  // late, person-happened, look-up-happened, escalated-closed, contradicted, corrected-back; and yen.
  EXPECT_EQ(report.avoided().calls(), 7);
  EXPECT_EQ(MoneyOf(report),
            (std::map<std::string, int64_t>{{"USD/2", 100 + 250 + 100 + 100 + 100 + 100}, {"JPY/0", 100}}));
  ASSERT_EQ(report.gateways_size(), 1);
  EXPECT_EQ(report.gateways(0).principal_id(), ledger_.Principal(v1::GATEWAY));
  EXPECT_EQ(report.gateways(0).attempts(), 24);
  EXPECT_EQ(report.gateways(0).not_sent(), 2);
}

TEST_F(Reports, OfATenantWithoutCallsAreZeroAndWhole) {
  const v1::Report report = Get(3);
  EXPECT_EQ(report.unknown_size(), 3);
  EXPECT_EQ(report.calls_size() + report.closed_size() + report.gateways_size(), 0);
  EXPECT_TRUE(report.has_parked());
  EXPECT_TRUE(report.has_avoided());
  EXPECT_EQ(report.parked().oldest_us(), 0);
}

TEST_F(Reports, AnEarlierAttemptThatTurnsOutToHaveHappenedCountsAsAvoided) {
  Story s(ledger_);
  s.Park("k");
  s.Resolve("k", Finding::kNotHappened, v1::RECONCILER);
  s.Authorize("k");
  EXPECT_EQ(Get().avoided().calls(), 0);
  EXPECT_EQ(s.CommitParked("k", Outcome::kSucceeded).answer.verdict, Verdict::kRecorded);
  s.Commit("k", Outcome::kNotSent);
  const v1::Report report = Get();
  EXPECT_EQ(CallsOf(report), (Count{{v1::SUCCEEDED, 1}}));
  EXPECT_EQ(report.avoided().calls(), 1);
  EXPECT_EQ(MoneyOf(report), (std::map<std::string, int64_t>{{"USD/2", 100}}));
  EXPECT_EQ(report.unknown(6).attempts(), 2);
  EXPECT_EQ(report.gateways(0).not_sent(), 1);
  // Who closed it first stays.
  EXPECT_EQ(ClosedOf(report), (Count{{v1::CLOSER_RECONCILER, 1}}));
}

TEST_F(Reports, OneBatchMayParkEscalateAndCloseACall) {
  Story s(ledger_);
  std::vector<std::unique_ptr<CallJob>> batch;
  const auto add = [&](const Reply& granted, Outcome outcome) {
    batch.push_back(s.replica().CommitJob(*granted.answer.call_id, granted.answer.attempt_id, outcome));
  };
  const Reply a = s.Authorize("c");
  const Reply b = s.Authorize("d");
  add(a, Outcome::kUncertain);
  add(b, Outcome::kUncertain);
  add(a, Outcome::kSucceeded);
  ASSERT_EQ(s.replica().Run(batch), lane::BatchEnd::kCommitted);
  v1::Report report = Get();
  EXPECT_EQ(report.unknown(6).parked(), 2);
  EXPECT_EQ(report.parked().now(), 1);
  ASSERT_EQ(report.closed_size(), 1);
  EXPECT_EQ(report.closed(0).closer(), v1::CLOSER_GATEWAY);
  EXPECT_EQ(report.closed(0).p99_ms(), 0);

  // Escalated, closed and contradicted at once.
  s.Park("e");
  std::vector<std::unique_ptr<CallJob>> ends;
  ends.push_back(s.ResolveJob("e", Finding::kCannotTell, v1::OPERATOR));
  ends.push_back(s.ResolveJob("e", Finding::kNotHappened, v1::OPERATOR));
  ASSERT_EQ(s.replica().Run(ends), lane::BatchEnd::kCommitted);
  EXPECT_EQ(ledger_.Query("SELECT escalated_at_us = closed_at_us AND state = 7 FROM parkings WHERE closed_by = 3"),
            "t");
  EXPECT_EQ(s.CommitParked("e", Outcome::kSucceeded).answer.state, v1::SUCCEEDED);
  EXPECT_EQ(Get().avoided().calls(), 2);

  // The answer that comes right after a person's verdict is added to it: it did not close the call.
  const Reply parked = s.Park("f");
  std::vector<std::unique_ptr<CallJob>> both;
  both.push_back(s.ResolveJob("f", Finding::kHappened, v1::OPERATOR));
  both.push_back(s.replica().CommitJob(*parked.answer.call_id, parked.answer.attempt_id, Outcome::kSucceeded, "late"));
  ASSERT_EQ(s.replica().Run(both), lane::BatchEnd::kCommitted);
  EXPECT_EQ(ClosedOf(Get()), (Count{{v1::CLOSER_GATEWAY, 1}, {v1::CLOSER_OPERATOR, 2}}));
}

TEST_F(Reports, CallsThatWereNeverUncertainDoNotTouchParkings) {
  {
    Story s(ledger_);
    for (int i = 0; i < 8; ++i) {
      const std::string key = std::to_string(i % 6);  // some of them twice
      s.Authorize(key);
      s.Commit(key, i % 2 == 0 ? Outcome::kNotSent : Outcome::kSucceeded);
    }
  }  // with its connection's end, what it touched is counted
  const auto touched = [&](const std::string& table) {
    return std::stoll(
        ledger_.Query("SELECT coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins FROM"
                      " pg_stat_user_tables WHERE relname = '" +
                      table + "'"));
  };
  for (int tries = 0; tries < 1000 && touched("calls") < 8; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GE(touched("calls"), 8);
  EXPECT_EQ(touched("parkings"), 0);
}

// Rows as no story can make them, a day apart and an hour long.
class ReportedTimes : public Reports {
 protected:
  void SetUp() override { now_us_ = std::stoll(ledger_.Query("SELECT (extract(epoch FROM now()) * 1000000)::bigint")); }
  void TearDown() override {}  // the rows belong to no calls

  void Parking(const std::string& parked_at, const std::string& closed_after, int closer, int state, int64_t charged,
               const std::string& tenant = Ledger::kTenant, const std::string& unit = "USD/2") {
    const bool open = closed_after == "NULL";
    Execute(
        "INSERT INTO parkings (shard, call_id, number, tenant, permit_id, tool, unit, hold, parked_at_us, parked_seq,"
        " closed_at_us, closed_by, state, charged) VALUES (0, gen_random_uuid(), 1, '" +
        tenant + "', gen_random_uuid(), 't', '" + unit + "', 1, " + parked_at + ", 1, " +
        (open ? "NULL, NULL, 3, 0)"
              : parked_at + " + " + closed_after + ", " + std::to_string(closer) + ", " + std::to_string(state) + ", " +
                    std::to_string(charged) + ")"));
  }

  int64_t now_us_ = 0;
};

TEST_F(ReportedTimes, MedianAndP99AreTheDiscreteOnesOfEachCloser) {
  std::map<int, std::vector<int64_t>> ms;
  for (int i = 0; i < 201; ++i) {
    const int closer = i % 3 + 1;
    const int64_t took = int64_t{i} * i * 37 % 10'007;
    ms[closer].push_back(took);
    Parking(std::to_string(now_us_ - 20'000'000), std::to_string(took * 1000 + i % 7), closer, 7, 0);
  }
  const v1::Report report = Get(2);  // two days, for midnight may lie among them
  ASSERT_EQ(report.closed_size(), 3);
  for (const v1::ClosedBy& closed : report.closed()) {
    EXPECT_EQ(closed.calls(), 67);
    EXPECT_EQ(closed.median_ms(), Percentile(ms[closed.closer()], 50)) << closed.closer();
    EXPECT_EQ(closed.p99_ms(), Percentile(ms[closed.closer()], 99)) << closed.closer();
  }
}

TEST_F(ReportedTimes, WhatIsParkedNowIsOldWhenverItWasParked) {
  for (int64_t hours : {1, 2, 3, 4, 24 * 400})
    Parking(std::to_string(now_us_ - hours * 3'600'000'000), "NULL", 0, 3, 0);
  const v1::Report report = Get(1);
  EXPECT_EQ(report.parked().now(), 5);
  EXPECT_EQ(report.parked().oldest_us(), now_us_ - int64_t{24} * 400 * 3'600'000'000);
  EXPECT_EQ(report.parked().age_median_ms() / 60'000, 3 * 60);
  EXPECT_EQ(report.parked().age_p99_ms() / 60'000, 24 * 400 * 60);
  EXPECT_EQ(report.closed_size(), 0);
}

TEST_F(ReportedTimes, ADayBeginsAtMidnightUtcAndTheFirstIsWhole) {
  const std::string today = "((extract(epoch FROM now()) * 1000000)::bigint / 86400000000 * 86400000000)";
  Parking(today + " - 2 * 86400000000::bigint", "1", 1, 4, 5);      // the first instant of the first day
  Parking(today + " - 2 * 86400000000::bigint - 1", "1", 1, 4, 7);  // the last before it
  Parking(today + " - 1", "1", 2, 4, 11);                           // yesterday's last
  Parking(today, "1", 3, 5, 13);                                    // today's first; an error, so nothing was avoided
  const v1::Report report = Get(3);
  ASSERT_EQ(report.unknown_size(), 3);
  EXPECT_EQ(report.unknown(0).parked(), 1);
  EXPECT_EQ(report.unknown(1).parked(), 1);
  EXPECT_EQ(report.unknown(2).parked(), 1);
  EXPECT_EQ(report.avoided().calls(), 2);
  EXPECT_EQ(MoneyOf(report), (std::map<std::string, int64_t>{{"USD/2", 16}}));
  EXPECT_EQ(ClosedOf(report), (Count{{1, 1}, {2, 1}, {3, 1}}));
  EXPECT_EQ(Get(4).avoided().calls(), 3);
  EXPECT_EQ(Get(kReportDaysMax).unknown_size(), kReportDaysMax);
}

TEST_F(ReportedTimes, AnothersParkingsAreNotCountedAndSumsDoNotOverflow) {
  Execute("INSERT INTO tenants VALUES ('other', gen_random_uuid(), '', 0, 1, '')");
  Parking(std::to_string(now_us_), "NULL", 0, 3, 0, "other");
  Parking(std::to_string(now_us_), "5", 1, 4, 9, "other");
  for (int i = 0; i < 3; ++i) Parking(std::to_string(now_us_), "5", 1, 4, INT64_MAX / 2);
  Parking(std::to_string(now_us_), "5", 1, 4, 3, Ledger::kTenant, "");  // a unit that migration 0002 could not read
  const v1::Report report = Get(2);
  EXPECT_EQ(report.parked().now(), 0);
  EXPECT_EQ(report.avoided().calls(), 4);
  EXPECT_EQ(MoneyOf(report), (std::map<std::string, int64_t>{{"USD/2", INT64_MAX}, {"", 3}}));

  Connection connection(ledger_.conninfo());
  const auto figures = ReadFigures(connection, 1);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->tenants.size(), 1u);
  EXPECT_EQ(figures->tenants_left_out, 1);
  EXPECT_EQ(figures->tenants.at(Ledger::kTenant).parked_total, 4);
  EXPECT_EQ(figures->tenants.at(Ledger::kTenant).money.at("USD/2"), INT64_MAX);
}

TEST_F(Reports, FiguresAreTheReportsAndWhatStandsInPermits) {
  Story s(ledger_);
  for (const char* key : {"a", "b", "c"}) s.Park(key);
  s.Resolve("a", Finding::kHappened, v1::RECONCILER);
  s.Resolve("b", Finding::kCannotTell, v1::OPERATOR);
  s.Authorize("d");
  s.Authorize("e");
  s.Commit("e", Outcome::kNotSent);
  s.Authorize("f", "", "no-such-tool");
  Connection connection(ledger_.conninfo());
  const auto figures = ReadFigures(connection, 10);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->tenants_left_out, 0);
  const TenantFigures& tenant = figures->tenants.at(Ledger::kTenant);
  const v1::Report report = Get();
  EXPECT_EQ(tenant.report.parked().now(), report.parked().now());
  EXPECT_EQ(tenant.report.closed(0).SerializeAsString(), report.closed(0).SerializeAsString());
  EXPECT_EQ(tenant.report.avoided().SerializeAsString(), report.avoided().SerializeAsString());
  EXPECT_EQ(tenant.report.escalations_open(), 1);
  EXPECT_EQ(tenant.calls_total, 5);
  EXPECT_EQ(tenant.attempts_total, 5);
  EXPECT_EQ(tenant.refusals_total, 1);
  EXPECT_EQ(tenant.parked_total, 3);
  EXPECT_EQ(tenant.escalated_total, 1);
  EXPECT_EQ(tenant.for_a_person, 1);
  EXPECT_EQ(tenant.closed_total.at(v1::CLOSER_RECONCILER), 1);
  EXPECT_EQ(tenant.happened, 1);
  EXPECT_EQ(tenant.money.at("USD/2"), 100);
  EXPECT_EQ(tenant.attempts.at(v1::AUTHORIZED), 1);
  EXPECT_EQ(tenant.attempts.at(v1::UNCERTAIN), 2);
  EXPECT_EQ(tenant.attempts.at(v1::SUCCEEDED), 1);
  EXPECT_EQ(tenant.attempts.at(v1::RELEASED), 1);
}

}  // namespace
}  // namespace tally::ledger
