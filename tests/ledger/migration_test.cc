#include <pqxx/pqxx>

#include "server/ledger/report_reads.h"
#include "tests/ledger/story.h"

// What is parked when a database comes from migration 0001, and what was parked and closed before it.
namespace tally::ledger {
namespace {

using decide::Finding;
using decide::Outcome;

// The rows of one database in another that has an older schema: its columns only.
void CopyRows(const std::string& from, const std::string& to) {
  pqxx::connection source(from), target(to);
  pqxx::nontransaction read(source);
  pqxx::work write(target);
  const pqxx::result tables = write.exec(
      "SELECT relname, (SELECT string_agg(attname, ',' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid"
      " AND attnum > 0 AND NOT attisdropped) FROM pg_class c WHERE relkind = 'r' AND relnamespace = "
      "'public'::regnamespace"
      " AND relname NOT IN ('schema_migrations', 'boots') ORDER BY oid");
  for (const pqxx::row& table : tables) {
    const std::string name = table[0].c_str();
    for (const pqxx::row& row :
         read.exec("SELECT t::text FROM (SELECT " + std::string(table[1].c_str()) + " FROM " + name + ") t")) {
      write.exec_params("INSERT INTO " + name + " SELECT ($1::" + name + ").*", row[0].c_str());
    }
  }
  write.commit();
}

class Upgrade : public ::testing::Test {
 protected:
  // Brings the ledger's rows to a database at version 1, and that to the present.
  void Migrate() {
    old_ = test::Postgres::Shared().CreateDatabase();
    Connection connection(old_);
    ASSERT_TRUE(ledger::Migrate(connection, EmbeddedMigrations().first(1)).ok());
    CopyRows(ledger_.conninfo(), old_);
    const auto done = ledger::Migrate(connection);
    ASSERT_TRUE(done.ok()) << done.status();
    ASSERT_EQ(static_cast<size_t>(*done), EmbeddedMigrations().size() - 1);
  }
  std::string Old(const std::string& sql) {
    pqxx::connection raw(old_);
    pqxx::nontransaction work(raw);
    const pqxx::result rows = work.exec(sql);
    return rows.empty() || rows[0][0].is_null() ? "" : rows[0][0].c_str();
  }

  Ledger ledger_;
  std::string old_;
};

constexpr char kAll[] =
    "SELECT string_agg(concat_ws('|', shard, call_id, number, tenant, permit_id, tool, unit, hold, parked_at_us, "
    "parked_seq,"
    " escalated_at_us, closed_at_us, state, charged), '\n' ORDER BY call_id) FROM parkings";

TEST_F(Upgrade, MakesTheRowsOfWhatIsParkedAsTheStoreWouldHave) {
  // A subject's length is one byte in its terms, or two.
  v1::MintRequest long_subject = OneGrant();
  long_subject.set_subject(std::string(255, 's'));
  long_subject.set_unit("ABCDEFGHIJKL/18");
  v1::MintRequest edge = OneGrant();
  edge.set_subject(std::string(128, 's'));
  v1::MintRequest below = OneGrant();
  below.set_subject(std::string(127, 's'));
  for (const v1::MintRequest& terms : {OneGrant(), long_subject, edge, below}) {
    Story s(ledger_, terms);
    s.Park("a");
    s.Park("b");
    s.Resolve("b", Finding::kCannotTell, v1::RECONCILER);
    s.Authorize("open");
    s.Park("again");
    s.Resolve("again", Finding::kNotHappened, v1::OPERATOR);
    s.Park("again");
  }
  Migrate();
  EXPECT_EQ(Old("SELECT count(*) FROM parkings"), "12");
  const std::string open = std::string(kAll) + " WHERE closed_at_us IS NULL";
  EXPECT_EQ(Old(open), ledger_.Query(open));
}

TEST_F(Upgrade, LetsWhatWasClosedBeforeItBePutRightAndWhatWasParkedBeClosed) {
  Story s(ledger_);
  s.Park("contradicted");
  s.Resolve("contradicted", Finding::kNotHappened, v1::OPERATOR);
  s.Park("parked");
  Migrate();
  // The same keys and principals, on the migrated database.
  Replica replica(ledger_);
  TermsCache terms(10);
  CallStore store(old_, ledger_.signer(), terms, [](const TxResult& result) { ADD_FAILURE() << result.message; });
  const auto commit = [&](const std::string& key) {
    const auto id = keys::ParseUuid(Old("SELECT call_id FROM calls WHERE key = '" + key + "'"));
    const auto attempt = keys::ParseUuid(Old("SELECT attempt_id FROM calls WHERE key = '" + key + "'"));
    decide::Id call_id, attempt_id;
    std::copy(id->begin(), id->end(), call_id.begin());
    std::copy(attempt->begin(), attempt->end(), attempt_id.begin());
    auto job = replica.CommitJob(call_id, attempt_id, Outcome::kSucceeded, "late");
    lane::Job* jobs[] = {job.get()};
    EXPECT_EQ(store.Run(jobs, false), lane::BatchEnd::kCommitted) << key;
    return job->reply.answer.state;
  };
  EXPECT_EQ(commit("contradicted"), v1::SUCCEEDED);
  EXPECT_EQ(commit("parked"), v1::SUCCEEDED);
  EXPECT_EQ(Old("SELECT count(*) FROM parkings"), "1");
  EXPECT_EQ(Old("SELECT state FROM parkings WHERE closed_by = 1 AND unit = 'USD/2' AND charged = 100"), "4");
  Connection connection(old_);
  const auto report = GetReport(connection, Ledger::kTenant, 7);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->avoided().calls(), 1);
  EXPECT_EQ(report->parked().now(), 0);
}

}  // namespace
}  // namespace tally::ledger
