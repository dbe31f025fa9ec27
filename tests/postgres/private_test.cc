// With a real server throughout. A tallyd that dies is played by a child process that is killed.
#include "server/postgres/private.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/postgres/cluster.h"
#include "server/postgres/postmaster_file.h"
#include "tests/postgres/query.h"
#include "tests/support/postgres/postgres.h"

namespace tally::postgres {
namespace {

using test::Query;
using test::ServerFolder;
using testing::HasSubstr;
using testing::StartsWith;

std::unique_ptr<PrivatePostgres> MustStart(const std::filesystem::path& data_dir) {
  auto started = PrivatePostgres::Start(data_dir);
  EXPECT_TRUE(started.ok()) << started.status();
  return started.ok() ? *std::move(started) : nullptr;
}

// Runs `body` in a child process that then waits to be killed; returns once it is there.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<bool()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      const char done = body() ? 'y' : 'n';
      if (write(ends[1], &done, 1) != 1) _exit(1);
      for (;;) pause();
    }
    close(ends[1]);
    char done = 'n';
    EXPECT_EQ(read(ends[0], &done, 1), 1);
    EXPECT_EQ(done, 'y');
    close(ends[0]);
  }
  ~OtherProcess() { Kill(); }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// A tallyd that has started its private database.
struct OtherTallyd : OtherProcess {
  explicit OtherTallyd(const std::filesystem::path& data_dir)
      : OtherProcess([&] {
          auto started = PrivatePostgres::Start(data_dir);
          return started.ok() && started->release() != nullptr;
        }) {}
};

// Containers may have no /dev/shm, a tiny one, or one that user postgres may not enter.
TEST(PrivatePostgres, KeepsNothingInDevShm) {
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_NE(postgres, nullptr);
  std::ifstream file(absl::StrCat("/proc/", postgres->postmaster_pid(), "/maps"));
  const std::string maps((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(maps, HasSubstr("/postgres"));
  EXPECT_THAT(maps, testing::Not(HasSubstr("/dev/shm/")));
}

TEST(PrivatePostgres, FirstStartMakesADatabaseOfItsOwnRoleWhichIsNoSuperuser) {
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  EXPECT_FALSE(postgres->adopted());
  const std::string connection = postgres->ConnectionString();
  EXPECT_EQ(Query(connection, "SELECT current_user || ' ' || current_database()"), "tally tally");
  EXPECT_EQ(Query(connection, "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user"), "f");
  EXPECT_EQ(Query(connection, "CREATE TABLE t (id int); INSERT INTO t VALUES (7); SELECT id FROM t"), "7");
}

TEST(PrivatePostgres, RunsWithTheSettingsThatTheWorkloadAndDurabilityNeed) {
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  const auto setting = [&](const std::string& name) { return Query(postgres->ConnectionString(), "SHOW " + name); };
  EXPECT_EQ(setting("fsync"), "on");
  EXPECT_EQ(setting("synchronous_commit"), "on");
  EXPECT_EQ(setting("full_page_writes"), "on");
  EXPECT_EQ(setting("data_checksums"), "on");
  EXPECT_EQ(setting("jit"), "off");
  EXPECT_EQ(setting("listen_addresses"), "");
  EXPECT_EQ(setting("max_pred_locks_per_transaction"), "1024");
  EXPECT_EQ(setting("max_pred_locks_per_page"), "128");
  EXPECT_EQ(setting("server_encoding"), "UTF8");
  EXPECT_EQ(Query(postgres->ConnectionString(), "SELECT datcollate FROM pg_database WHERE datname = 'tally'"), "C");
}

TEST(PrivatePostgres, StopEndsTheServerAndTheNextStartFindsWhatWasStored) {
  ServerFolder folder;
  auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  Query(postgres->ConnectionString(), "CREATE TABLE t (id int); INSERT INTO t VALUES (42)");
  const auto server = Process::Find(postgres->postmaster_pid());
  ASSERT_TRUE(server);
  ASSERT_TRUE(postgres->Stop().ok());
  EXPECT_FALSE(server->alive());
  EXPECT_TRUE(postgres->Stop().ok()) << "a second Stop has nothing to do";
  EXPECT_FALSE(postgres->EnsureRunning().ok()) << "stopped means stopped";
  EXPECT_THAT(Query(postgres->ConnectionString(), "SELECT 1"), StartsWith("error:"));

  postgres.reset();
  postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  EXPECT_FALSE(postgres->adopted());
  EXPECT_EQ(Query(postgres->ConnectionString(), "SELECT id FROM t"), "42");
}

TEST(PrivatePostgres, DestructionStopsTheServer) {
  ServerFolder folder;
  auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  const auto server = Process::Find(postgres->postmaster_pid());
  ASSERT_TRUE(server);
  postgres.reset();
  EXPECT_FALSE(server->alive());
}

TEST(PrivatePostgres, ServerOutlivesAKilledTallydAndIsAdopted) {
  ServerFolder folder;
  OtherTallyd first(folder.data_dir());
  const auto file = ReadPostmasterFile(folder.data_dir() / "pg");
  ASSERT_TRUE(file);
  const auto server = Process::Find(file->pid);
  ASSERT_TRUE(server);
  first.Kill();
  ASSERT_TRUE(server->alive());

  const auto second = MustStart(folder.data_dir());
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->adopted());
  EXPECT_EQ(second->postmaster_pid(), server->pid);
  EXPECT_EQ(Query(second->ConnectionString(), "SELECT 1"), "1");
  EXPECT_TRUE(second->Stop().ok());
  EXPECT_FALSE(server->alive()) << "an adopted server is stopped as one's own";
}

TEST(PrivatePostgres, SecondTallydOnTheSameFolderIsRefusedAndToldWhoHoldsIt) {
  ServerFolder folder;
  OtherTallyd first(folder.data_dir());
  const auto file = ReadPostmasterFile(folder.data_dir() / "pg");
  ASSERT_TRUE(file);
  const auto second = PrivatePostgres::Start(folder.data_dir());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("process ", first.pid(), " uses this data folder")));
  const auto after = ReadPostmasterFile(folder.data_dir() / "pg");
  ASSERT_TRUE(after);
  EXPECT_EQ(after->pid, file->pid) << "the refused one has touched nothing";
  EXPECT_TRUE(Process::Find(file->pid));
}

TEST(PrivatePostgres, KilledServerIsStartedAgainAtOnceWithEverythingConfirmed) {
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  const std::string connection = postgres->ConnectionString();
  Query(connection, "CREATE TABLE t (id int)");
  for (int round = 1; round <= 3; ++round) {
    ASSERT_EQ(Query(connection, absl::StrCat("INSERT INTO t VALUES (", round, ") RETURNING id")), absl::StrCat(round));
    const pid_t killed = postgres->postmaster_pid();
    ASSERT_GT(killed, 0);
    ASSERT_EQ(kill(killed, SIGKILL), 0);
    // Its processes may still be there: that must not be an error.
    const absl::Status again = postgres->EnsureRunning();
    ASSERT_TRUE(again.ok()) << again;
    // The kill may not have been seen yet by then.
    if (postgres->postmaster_pid() == killed) {
      const auto gone = Process{.pid = killed, .start_ticks = 0};
      while (Process::Find(gone.pid)) absl::SleepFor(absl::Milliseconds(5));
      ASSERT_TRUE(postgres->EnsureRunning().ok());
    }
    EXPECT_NE(postgres->postmaster_pid(), killed);
    EXPECT_EQ(Query(connection, "SELECT count(*) FROM t"), absl::StrCat(round));
  }
}

TEST(PrivatePostgres, TallydAndServerKilledTogetherStartAgain) {
  ServerFolder folder;
  OtherTallyd first(folder.data_dir());
  const auto file = ReadPostmasterFile(folder.data_dir() / "pg");
  ASSERT_TRUE(file);
  kill(file->pid, SIGKILL);
  first.Kill();
  const auto second = MustStart(folder.data_dir());
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->adopted());
  EXPECT_EQ(Query(second->ConnectionString(), "SELECT 1"), "1");
}

TEST(PrivatePostgres, ServerThatIsStoppingIsNotAdopted) {
  ServerFolder folder;
  OtherTallyd first(folder.data_dir());
  const auto file = ReadPostmasterFile(folder.data_dir() / "pg");
  ASSERT_TRUE(file);
  first.Kill();
  kill(file->pid, SIGINT);
  const auto second = MustStart(folder.data_dir());
  ASSERT_TRUE(second);
  // Adopted in its last moment or started anew, it must answer in the end.
  ASSERT_TRUE(second->EnsureRunning().ok());
  for (int tries = 0; tries < 500 && second->postmaster_pid() == file->pid && Process::Find(file->pid); ++tries) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  ASSERT_TRUE(second->EnsureRunning().ok());
  EXPECT_NE(second->postmaster_pid(), file->pid);
  EXPECT_EQ(Query(second->ConnectionString(), "SELECT 1"), "1");
}

// What a restarted container leaves: the file names a process number that some other program of the same user has now.
TEST(PrivatePostgres, LeftoverFileThatNamesAnUnrelatedProcessIsNotBelieved) {
  ServerFolder folder;
  MustStart(folder.data_dir());  // and stopped
  const auto server = ServerAccount();
  ASSERT_TRUE(server.ok());
  const auto other = Spawn(*server, {"/bin/sleep", "60"}, STDERR_FILENO);
  ASSERT_TRUE(other.ok());
  while (CommandLine(*other) != std::vector<std::string>{"/bin/sleep", "60"}) absl::SleepFor(absl::Milliseconds(1));
  const auto path = folder.data_dir() / "pg" / "postmaster.pid";
  std::ofstream(path) << *other << "\n" << (folder.data_dir() / "pg").string() << "\n1\n5432\n/tmp\n\n1 1\nready   \n";
  const auto postgres = MustStart(folder.data_dir());
  kill(*other, SIGKILL);
  waitpid(*other, nullptr, 0);
  ASSERT_TRUE(postgres);
  EXPECT_FALSE(postgres->adopted());
  EXPECT_EQ(Query(postgres->ConnectionString(), "SELECT 1"), "1");
}

TEST(PrivatePostgres, ServerThatSomebodyElseStartedOnTheClusterIsNamedAndLeftAlone) {
  ServerFolder folder;
  MustStart(folder.data_dir());  // and stopped
  const auto server = ServerAccount();
  ASSERT_TRUE(server.ok());
  const auto install = FindInstall(*server, std::nullopt);
  ASSERT_TRUE(install.ok());
  const auto log = open((folder.path() / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const auto other =
      Spawn(*server,
            {(install->bin / "postgres").string(), "-D", (folder.data_dir() / "pg").string(), "-c",
             "listen_addresses=", "-c", "unix_socket_directories=" + (folder.data_dir() / "run").string()},
            log);
  close(log);
  ASSERT_TRUE(other.ok());
  std::optional<PostmasterFile> file;
  for (int tries = 0; tries < 1000 && !(file && file->ready); ++tries) {
    absl::SleepFor(absl::Milliseconds(10));
    file = ReadPostmasterFile(folder.data_dir() / "pg");
  }
  const auto refused = PrivatePostgres::Start(folder.data_dir());
  EXPECT_TRUE(Process::Find(*other));
  kill(*other, SIGQUIT);
  waitpid(*other, nullptr, 0);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr(absl::StrCat("process ", *other, " is a PostgreSQL on ", (folder.data_dir() / "pg").string())));
}

TEST(PrivatePostgres, DeepDataFolderGetsAShortSocketFolderThatOnlyItsUserMayEnter) {
  ServerFolder folder;
  const auto deep = folder.data_dir() / std::string(60, 'a') / std::string(60, 'b');
  std::filesystem::create_directories(deep);
  std::filesystem::path sockets;
  {
    const auto postgres = MustStart(deep);
    ASSERT_TRUE(postgres);
    EXPECT_EQ(Query(postgres->ConnectionString(), "SELECT 1"), "1");
    const auto file = ReadPostmasterFile(deep / "pg");
    ASSERT_TRUE(file);
    sockets = file->sockets;
    EXPECT_LE(sockets.string().size(), SocketFolderBytesMax());
    const auto server = ServerAccount();
    ASSERT_TRUE(server.ok());
    EXPECT_TRUE(IsPrivateFolder(sockets, *server));
  }
  EXPECT_FALSE(std::filesystem::exists(sockets)) << "an orderly stop leaves nothing in /tmp";
}

TEST(PrivatePostgres, OddCharactersInThePathAreOnlyCharacters) {
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir() / "it's a \"b\\c\", d");
  ASSERT_TRUE(postgres);
  EXPECT_EQ(Query(postgres->ConnectionString(), "SELECT 1"), "1");
}

TEST(PrivatePostgres, OthersCanEnterNeitherTheClusterNorTheSocketFolder) {
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  for (const char* name : {"pg", "run"}) {
    struct stat entry;
    ASSERT_EQ(stat((folder.data_dir() / name).c_str(), &entry), 0);
    EXPECT_EQ(entry.st_mode & 07777, 0700u) << name;
  }
  if (geteuid() != 0) return;  // to look as another user one must be root
  auto nobody = OwnAccount();
  ASSERT_TRUE(nobody.ok());
  *nobody = Account{.name = "nobody", .uid = 65534, .gid = 65534, .groups = {65534}};
  const auto tried = RunProgram(
      *nobody,
      {"/usr/bin/psql", "-w", "-h", (folder.data_dir() / "run").string(), "-U", "tally", "tally", "-c", "SELECT 1"},
      std::chrono::seconds(10));
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_NE(tried->exit_code, 0);
  EXPECT_THAT(tried->output, HasSubstr("Permission denied"));
}

TEST(PrivatePostgres, EvenInsideTheSocketFolderAnotherUserIsNotTakenForUs) {
  if (geteuid() != 0) GTEST_SKIP() << "to connect as another user one must be root";
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  std::filesystem::permissions(folder.data_dir() / "run", std::filesystem::perms::all);
  std::filesystem::permissions(folder.data_dir() / "run" / ".s.PGSQL.5432", std::filesystem::perms::all);
  const Account nobody{.name = "nobody", .uid = 65534, .gid = 65534, .groups = {65534}};
  const auto tried = RunProgram(
      nobody,
      {"/usr/bin/psql", "-w", "-h", (folder.data_dir() / "run").string(), "-U", "tally", "tally", "-c", "SELECT 1"},
      std::chrono::seconds(10));
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_NE(tried->exit_code, 0);
  EXPECT_THAT(tried->output, HasSubstr("Peer authentication failed"));
}

TEST(PrivatePostgres, RootIsToldWhichFolderStopsTheServersUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root runs the server as another user";
  ServerFolder folder;
  const auto closed = folder.path() / "closed";
  std::filesystem::create_directory(closed);
  chmod(closed.c_str(), 0700);
  const auto started = PrivatePostgres::Start(closed / "data");
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(std::string(started.status().message()), HasSubstr(absl::StrCat("may not enter ", closed.string(), ".")));
}

TEST(PrivatePostgres, HalfMadeClusterIsMadeAnew) {
  ServerFolder folder;
  std::filesystem::create_directories(folder.data_dir() / "pg.new" / "base");
  std::ofstream(folder.data_dir() / "pg.new" / "PG_VERSION") << "15\n";
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  EXPECT_EQ(Query(postgres->ConnectionString(), "SELECT 1"), "1");
}

TEST(PrivatePostgres, ClusterOfAVersionThatIsNotInstalledIsNamedAndLeftAlone) {
  ServerFolder folder;
  MustStart(folder.data_dir());
  std::ofstream(folder.data_dir() / "pg" / "PG_VERSION") << "99\n";
  const auto started = PrivatePostgres::Start(folder.data_dir());
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("made by PostgreSQL 99"));
}

TEST(PrivatePostgres, FolderWithoutAClusterIsNotOverwritten) {
  ServerFolder folder;
  std::filesystem::create_directories(folder.data_dir() / "pg");
  const auto started = PrivatePostgres::Start(folder.data_dir());
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("holds no PostgreSQL cluster"));
}

TEST(PrivatePostgres, ServerThatCannotStartSaysWhyWithinBounds) {
  ServerFolder folder;
  const auto started = PrivatePostgres::Start(folder.data_dir(), {.settings = {{"max_connections", "many"}}});
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(std::string(started.status().message()), HasSubstr("max_connections"));
}

TEST(PrivatePostgres, LogHoldsNoStatementsAndNoValues) {
  ServerFolder folder;
  const auto postgres = MustStart(folder.data_dir());
  ASSERT_TRUE(postgres);
  EXPECT_THAT(Query(postgres->ConnectionString(),
                    "CREATE TABLE t (s text PRIMARY KEY); INSERT INTO t VALUES ('sesame'), ('sesame')"),
              HasSubstr("duplicate key"));
  EXPECT_THAT(Query(postgres->ConnectionString(), "SELECT 'sesame'::int"), StartsWith("error:"));
  ASSERT_TRUE(postgres->Stop().ok());
  std::ifstream log(folder.data_dir() / "postgres.log");
  const std::string text{std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, HasSubstr("database system is shut down"));
  EXPECT_THAT(text, testing::Not(HasSubstr("sesame")));
}

}  // namespace
}  // namespace tally::postgres
