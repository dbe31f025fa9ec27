#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "server/postgres/account.h"
#include "server/postgres/folders.h"
#include "server/postgres/install.h"
#include "server/postgres/postmaster_file.h"
#include "server/postgres/process.h"
#include "server/postgres/settings.h"
#include "tests/support/postgres/postgres.h"

namespace tally::postgres {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(Process, IsAliveUntilItEndsAndNotForALaterOneOfTheSameNumber) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  const auto process = Process::Find(child);
  ASSERT_TRUE(process);
  EXPECT_TRUE(process->alive());
  const Process earlier{.pid = child, .start_ticks = process->start_ticks - 1};
  EXPECT_FALSE(earlier.alive());
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process->alive()) << "ended, though nobody has waited for it";
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(process->alive());
  EXPECT_FALSE(Process::Find(0));
  EXPECT_FALSE(Process::Find(-1));
}

TEST(RunProgram, GivesExitCodeAndBothOutputs) {
  const auto own = OwnAccount();
  ASSERT_TRUE(own.ok());
  const auto finished = RunProgram(*own, {"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, 10s);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->exit_code, 3);
  EXPECT_EQ(finished->output, "out\nerr\n");
}

TEST(RunProgram, SaysThatAProgramIsMissing) {
  const auto own = OwnAccount();
  ASSERT_TRUE(own.ok());
  const auto finished = RunProgram(*own, {"/nonexistent/program"}, 10s);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->exit_code, 127);
  EXPECT_THAT(finished->output, HasSubstr("/nonexistent/program: No such file or directory"));
}

TEST(RunProgram, KillsWhatTakesTooLong) {
  const auto own = OwnAccount();
  ASSERT_TRUE(own.ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(RunProgram(*own, {"/bin/sleep", "600"}, 50ms).status()));
}

TEST(RunProgram, LongOutputIsCutNotAwaitedForever) {
  const auto own = OwnAccount();
  ASSERT_TRUE(own.ok());
  const auto finished = RunProgram(*own, {"/bin/sh", "-c", "head -c 1000000 /dev/zero"}, 60s);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_EQ(finished->exit_code, 0);
  EXPECT_EQ(finished->output.size(), 64u * 1024u);
}

TEST(RunProgram, PassesOnNeitherEnvironmentNorOpenFiles) {
  const auto own = OwnAccount();
  ASSERT_TRUE(own.ok());
  setenv("TALLY_SECRET_OF_A_TEST", "sesame", 1);
  const int inherited = open("/etc/passwd", O_RDONLY);  // without O_CLOEXEC
  ASSERT_GE(inherited, 0);
  const auto finished = RunProgram(*own, {"/bin/sh", "-c", "env; exec ls -l /proc/self/fd"}, 10s);
  close(inherited);
  ASSERT_TRUE(finished.ok()) << finished.status();
  EXPECT_THAT(finished->output, HasSubstr("/dev/null")) << "standard input, so the list was there";
  EXPECT_THAT(finished->output, testing::Not(HasSubstr("sesame")));
  EXPECT_THAT(finished->output, testing::Not(HasSubstr("/etc/passwd")));
}

TEST(ServerAccount, IsNeverRoot) {
  const auto account = ServerAccount();
  ASSERT_TRUE(account.ok()) << account.status();
  EXPECT_NE(account->uid, 0u);
}

TEST(FindInstall, TakesThisSystemsNewestAndSaysWhatItFoundOtherwise) {
  const auto account = ServerAccount();
  ASSERT_TRUE(account.ok());
  const auto newest = FindInstall(*account, std::nullopt);
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_GE(newest->major, kMajorMin);
  EXPECT_TRUE(newest->bin.is_absolute());
  const auto exact = FindInstall(*account, newest->major);
  ASSERT_TRUE(exact.ok());
  EXPECT_EQ(exact->bin, newest->bin);
  const auto absent = FindInstall(*account, 99);
  ASSERT_FALSE(absent.ok());
  EXPECT_THAT(std::string(absent.status().message()), HasSubstr(newest->bin.string()));
}

TEST(PostmasterFile, IsReadAsFarAsItHasBeenWritten) {
  test::ServerFolder folder;
  const auto file = folder.path() / "postmaster.pid";
  EXPECT_FALSE(ReadPostmasterFile(folder.path()));
  std::ofstream(file) << "";
  EXPECT_FALSE(ReadPostmasterFile(folder.path()));
  std::ofstream(file) << "not a number\n";
  EXPECT_FALSE(ReadPostmasterFile(folder.path()));
  std::ofstream(file) << "-5\n";
  EXPECT_FALSE(ReadPostmasterFile(folder.path()));
  std::ofstream(file) << "123\n/data/pg\n1700000000\n";
  auto read = ReadPostmasterFile(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->pid, 123);
  EXPECT_FALSE(read->ready);
  std::ofstream(file) << "123\n/data/pg\n1700000000\n5432\n/data/run\n\n  1 2\nstarting\n";
  read = ReadPostmasterFile(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sockets, "/data/run");
  EXPECT_FALSE(read->ready);
  std::ofstream(file) << "123\n/data/pg\n1700000000\n5432\n/data/run\n\n  1 2\nready   \n";
  read = ReadPostmasterFile(folder.path());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->ready);
}

TEST(ConnectionParameter, QuotesWhatLibpqWouldRead) {
  EXPECT_EQ(ConnectionParameter("host", "/a b"), "host='/a b'");
  EXPECT_EQ(ConnectionParameter("host", "it's \\"), "host='it\\'s \\\\'");
}

TEST(FileLock, IsOneHoldersUntilItLetsGo) {
  test::ServerFolder folder;
  const auto path = folder.path() / "lock";
  {
    const auto first = FileLock::Take(path);
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = FileLock::Take(path);
    ASSERT_FALSE(second.ok());
    EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(getpid())));
  }
  EXPECT_TRUE(FileLock::Take(path).ok());
}

TEST(PrivateFolder, RefusesALinkAndAFolderOthersMayEnter) {
  test::ServerFolder folder;
  const auto server = ServerAccount();
  ASSERT_TRUE(server.ok());
  EXPECT_TRUE(PrivateFolder(folder.path() / "new", *server).ok());
  EXPECT_TRUE(PrivateFolder(folder.path() / "new", *server).ok()) << "one that exists and is right is taken";
  std::filesystem::create_directory_symlink(folder.path() / "new", folder.path() / "link");
  EXPECT_FALSE(PrivateFolder(folder.path() / "link", *server).ok());
  std::filesystem::permissions(folder.path() / "new", std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  EXPECT_FALSE(PrivateFolder(folder.path() / "new", *server).ok());
}

}  // namespace
}  // namespace tally::postgres
