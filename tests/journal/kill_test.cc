// A real process appends, and is killed by SIGKILL at some moment. What it was told is on disk must be found.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>

#include "gateway/journal/journal.h"
#include "tests/journal/folder.h"

namespace tally::gateway {
namespace {

namespace asio = boost::asio;

constexpr int kRounds = 30;
constexpr int kCallers = 8;
constexpr int kPerRound = 1'000'000;  // attempts a round may have

struct Said {
  char what;  // s: sending is on disk, o: the outcome is, d: about to note delivered
  int attempt;
};

std::string ResultOf(int attempt) {
  return std::string(static_cast<size_t>(attempt % 7) * 3'000 + 1, static_cast<char>('a' + attempt % 26));
}

void Say(int pipe, char what, int attempt) {
  const Said said{what, attempt};
  // Less than PIPE_BUF: whole or not at all.
  if (write(pipe, &said, sizeof said) != static_cast<ssize_t>(sizeof said)) _exit(3);
}

asio::awaitable<void> Caller(Journal& journal, int pipe, int first) {
  for (int attempt = first; attempt < first + kPerRound; attempt += kCallers) {
    const std::string call = "call-" + std::to_string(attempt);
    journal.Granted(call, AttemptId(attempt), 10'000);
    const absl::Status sending = co_await journal.Sending(call, AttemptId(attempt), attempt);
    if (!sending.ok()) _exit(4);
    Say(pipe, 's', attempt);
    v1::CommitRequest commit;
    commit.set_call_id(call);
    commit.set_attempt_id(AttemptId(attempt));
    commit.set_outcome(v1::OUTCOME_SUCCEEDED);
    commit.set_result(ResultOf(attempt));
    const absl::Status outcome = co_await journal.Outcome(std::move(commit));
    if (!outcome.ok()) _exit(5);
    Say(pipe, 'o', attempt);
    if (attempt % 16 == 0) continue;  // some are never delivered
    Say(pipe, 'd', attempt);
    journal.Delivered(AttemptId(attempt));
  }
}

[[noreturn]] void Child(const std::string& path, int pipe, int round) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  asio::io_context loop;
  auto journal = Journal::Open({.path = path, .compact_bytes_min = 64 << 10}, loop.get_executor());
  if (!journal.ok()) _exit(2);
  for (int i = 0; i < kCallers; ++i) {
    asio::co_spawn(loop, Caller(**journal, pipe, round * kPerRound + i), asio::detached);
  }
  loop.run();
  _exit(6);
}

// Reads what the child says until it ends; kills it after `patience`.
std::vector<Said> KillAfter(pid_t child, int pipe, std::chrono::milliseconds patience) {
  std::vector<Said> all;
  const auto end = std::chrono::steady_clock::now() + patience;
  bool killed = false;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd readable{pipe, POLLIN, 0};
    poll(&readable, 1, killed ? 1'000 : static_cast<int>(std::max<int64_t>(left.count(), 0)));
    // Not before it has begun: a child that is killed while it starts shows nothing.
    if (!killed && left.count() <= 0 && !all.empty()) {
      kill(child, SIGKILL);
      killed = true;
    }
    if ((readable.revents & (POLLIN | POLLHUP)) == 0) {
      if (left.count() < -60'000) break;
      continue;
    }
    Said said{};
    if (read(pipe, &said, sizeof said) != static_cast<ssize_t>(sizeof said)) break;
    all.push_back(said);
  }
  kill(child, SIGKILL);
  return all;
}

TEST(JournalUnderSigkill, NothingThatWasAcknowledgedIsLost) {
  const Folder folder;
  const std::string path = folder / "j";
  std::map<std::string, char> last;  // by attempt: the last thing the child said of it
  int64_t acknowledged = 0;
  for (int round = 0; round < kRounds; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[0]);
      Child(path, ends[1], round);
    }
    close(ends[1]);
    for (const Said& said : KillAfter(child, ends[0], std::chrono::milliseconds(5 + round * 7))) {
      last[AttemptId(said.attempt)] = said.what;
      ++acknowledged;
    }
    close(ends[0]);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself: " << WEXITSTATUS(status);

    JournalFile::Found found;
    ASSERT_TRUE(JournalFile::Open(path, {.bytes_max = int64_t{1} << 40}, &found).ok());
    ASSERT_EQ(found.damaged, 0);
    std::map<std::string, const Record*> open;
    for (const Record& record : found.open) open[record.commit.attempt_id()] = &record;
    for (auto& [attempt, what] : last) {
      const auto record = open.find(attempt);
      if (what == 'd' && record == open.end()) continue;  // noted as delivered, or so it may be
      ASSERT_NE(record, open.end()) << "lost after '" << what << "' in round " << round;
      const v1::CommitRequest& commit = record->second->commit;
      if (what != 's') {
        ASSERT_EQ(record->second->stage, Stage::kOutcome);
      }
      ASSERT_GE(record->second->stage, Stage::kSending);
      if (record->second->stage == Stage::kOutcome) {
        ASSERT_EQ(commit.result(), ResultOf(std::stoi(commit.call_id().substr(5))));
      } else {
        ASSERT_EQ(commit.sent_at_us(), std::stoi(commit.call_id().substr(5)));
      }
    }
  }
  EXPECT_GT(acknowledged, kRounds);
}

}  // namespace
}  // namespace tally::gateway
