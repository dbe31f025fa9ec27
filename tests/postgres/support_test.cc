#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/time/clock.h"
#include "server/postgres/process.h"
#include "tests/postgres/query.h"
#include "tests/support/postgres/postgres.h"

namespace tally::test {
namespace {

TEST(TestPostgres, EachDatabaseIsACopyOfItsTemplateAndNobodyElsesBusiness) {
  Postgres& postgres = Postgres::Shared();
  int filled = 0;
  for (int i = 0; i < 2; ++i) {
    postgres.MakeTemplate("with_table", [&](const std::string& connection) {
      ++filled;
      Query(connection, "CREATE TABLE t (id int); INSERT INTO t VALUES (1)");
    });
  }
  EXPECT_EQ(filled, 1);
  const std::string one = postgres.CreateDatabase("with_table"), two = postgres.CreateDatabase("with_table");
  EXPECT_EQ(Query(one, "DELETE FROM t"), "");
  EXPECT_EQ(Query(one, "SELECT count(*) FROM t"), "0");
  EXPECT_EQ(Query(two, "SELECT count(*) FROM t"), "1");
  EXPECT_EQ(Query(postgres.CreateDatabase(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
  EXPECT_EQ(Query(two, "SELECT current_user"), "tally");
}

TEST(TestPostgres, KillAndRestartKeepWhatWasConfirmed) {
  Postgres postgres(Postgres::Fsync::kOn);
  const std::string connection = postgres.CreateDatabase();
  EXPECT_EQ(Query(connection, "SHOW fsync"), "on");
  Query(connection, "CREATE TABLE t (id int); INSERT INTO t VALUES (5)");
  const auto server = postgres::Process::Find(postgres.postmaster_pid());
  ASSERT_TRUE(server);
  postgres.Kill();
  EXPECT_FALSE(server->alive());
  EXPECT_THAT(Query(connection, "SELECT 1"), testing::StartsWith("error:"));
  postgres.Restart();
  EXPECT_EQ(Query(connection, "SELECT id FROM t"), "5");
}

TEST(TestPostgres, NothingIsLeftBehindByAProgramThatIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t program = fork();
  if (program == 0) {
    Postgres postgres;
    const pid_t server = postgres.postmaster_pid();
    if (write(ends[1], &server, sizeof server) != sizeof server) _exit(1);
    for (;;) pause();
  }
  close(ends[1]);
  pid_t pid = 0;
  ASSERT_EQ(read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  close(ends[0]);
  const auto server = postgres::Process::Find(pid);
  ASSERT_TRUE(server);
  const auto words = postgres::CommandLine(pid);
  ASSERT_EQ(words.size(), 3u);
  const std::filesystem::path config = words[2].substr(words[2].find('=') + 1);
  kill(program, SIGKILL);
  waitpid(program, nullptr, 0);
  const std::filesystem::path folder = config.parent_path().parent_path();
  for (int tries = 0; tries < 3000 && (server->alive() || std::filesystem::exists(folder)); ++tries) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_FALSE(server->alive());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace tally::test
