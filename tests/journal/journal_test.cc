#include "gateway/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>

#include "tests/journal/folder.h"

namespace tally::gateway {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;
using testing::Not;

using Story = std::function<asio::awaitable<void>(Journal&)>;

// Tells a story on a loop of its own, with a journal that is then closed.
void Tell(const JournalOptions& options, const Story& story, std::vector<Leftover>* leftovers = nullptr,
          std::string* notice = nullptr) {
  asio::io_context loop;
  auto journal = Journal::Open(options, loop.get_executor());
  ASSERT_TRUE(journal.ok()) << journal.status();
  if (leftovers != nullptr) *leftovers = (*journal)->TakeLeftovers();
  if (notice != nullptr) *notice = (*journal)->notice();
  if (story) asio::co_spawn(loop, story(**journal), asio::detached);
  loop.run();
}

std::vector<Leftover> LeftBy(const Folder& folder, const Story& story) {
  std::vector<Leftover> leftovers;
  Tell({.path = folder / "j"}, story);
  Tell({.path = folder / "j"}, nullptr, &leftovers);
  return leftovers;
}

v1::CommitRequest Succeeded(const std::string& result) {
  v1::CommitRequest commit;
  commit.set_call_id("call");
  commit.set_attempt_id(AttemptId(1));
  commit.set_outcome(v1::OUTCOME_SUCCEEDED);
  commit.set_result(result);
  commit.set_permit_token("hunter2");
  return commit;
}

TEST(Journal, GrantedAndNeverSentIsNotSentOnceTheSendWindowIsOver) {
  const Folder folder;
  const auto leftovers = LeftBy(folder, [](Journal& journal) -> asio::awaitable<void> {
    journal.Granted("call", AttemptId(1), 10'000);
    co_return;
  });
  ASSERT_EQ(leftovers.size(), 1u);
  EXPECT_EQ(leftovers[0].commit.outcome(), v1::OUTCOME_NOT_SENT);
  EXPECT_EQ(leftovers[0].commit.call_id(), "call");
  EXPECT_EQ(leftovers[0].commit.attempt_id(), AttemptId(1));
  EXPECT_EQ(leftovers[0].wait.count(), 10'000);
}

TEST(Journal, SendingWithoutOutcomeIsUncertainAndKeepsItsTime) {
  const Folder folder;
  const auto leftovers = LeftBy(folder, [](Journal& journal) -> asio::awaitable<void> {
    journal.Granted("call", AttemptId(1), 10'000);
    const absl::Status status = co_await journal.Sending("call", AttemptId(1), 1234);
    EXPECT_TRUE(status.ok());
  });
  ASSERT_EQ(leftovers.size(), 1u);
  EXPECT_EQ(leftovers[0].commit.outcome(), v1::OUTCOME_UNCERTAIN);
  EXPECT_EQ(leftovers[0].commit.sent_at_us(), 1234);
  EXPECT_EQ(leftovers[0].wait.count(), 0);
}

TEST(Journal, AnOutcomeIsCommittedAsItWas) {
  const Folder folder;
  const auto leftovers = LeftBy(folder, [](Journal& journal) -> asio::awaitable<void> {
    co_await journal.Sending("call", AttemptId(1), 1234);
    co_await journal.Outcome(Succeeded("first"));
    const absl::Status status = co_await journal.Outcome(Succeeded("second"));
    EXPECT_TRUE(status.ok());
  });
  ASSERT_EQ(leftovers.size(), 1u);
  EXPECT_EQ(leftovers[0].commit.outcome(), v1::OUTCOME_SUCCEEDED);
  EXPECT_EQ(leftovers[0].commit.result(), "second");
  EXPECT_THAT(ReadFile(folder / "j"), Not(HasSubstr("hunter2")));
}

TEST(Journal, WhatWasDeliveredIsDoneWithUntilALateAnswerComes) {
  const Folder folder;
  EXPECT_TRUE(LeftBy(folder, [](Journal& journal) -> asio::awaitable<void> {
                co_await journal.Outcome(Succeeded("r"));
                journal.Delivered(AttemptId(1));
              }).empty());
  const auto leftovers =
      LeftBy(folder, [](Journal& journal) -> asio::awaitable<void> { co_await journal.Outcome(Succeeded("late")); });
  ASSERT_EQ(leftovers.size(), 1u);
  EXPECT_EQ(leftovers[0].commit.result(), "late");
}

TEST(Journal, AfterDamageGrantedIsUncertainForItsSendingMayBeWhatWasLost) {
  const Folder folder;
  std::string bytes = std::string(kMagic) + Encode(MakeRecord(Stage::kGranted, 1));
  bytes += Encode(MakeRecord(Stage::kSending, 1));
  bytes[bytes.size() - 1] = static_cast<char>(~bytes[bytes.size() - 1]);
  WriteFile(folder / "j", bytes);
  std::vector<Leftover> leftovers;
  std::string notice;
  Tell({.path = folder / "j"}, nullptr, &leftovers, &notice);
  ASSERT_EQ(leftovers.size(), 1u);
  EXPECT_EQ(leftovers[0].commit.outcome(), v1::OUTCOME_UNCERTAIN);
  EXPECT_THAT(notice, HasSubstr("damaged"));
}

TEST(Journal, AfterATornTailGrantedIsNotSentForNobodyWasToldToSend) {
  const Folder folder;
  const std::string torn = Encode(MakeRecord(Stage::kSending, 1));
  for (size_t size = 1; size < torn.size(); ++size) {
    WriteFile(folder / "j", std::string(kMagic) + Encode(MakeRecord(Stage::kGranted, 1)) + torn.substr(0, size));
    std::vector<Leftover> leftovers;
    std::string notice;
    Tell({.path = folder / "j"}, nullptr, &leftovers, &notice);
    ASSERT_EQ(leftovers.size(), 1u);
    ASSERT_EQ(leftovers[0].commit.outcome(), v1::OUTCOME_NOT_SENT) << size;
    ASSERT_THAT(notice, HasSubstr("cut short"));
  }
}

TEST(Journal, OnAFullDiskTheCallMustNotBeSentAndTheJournalSaysSo) {
  const Folder folder;
  Tell({.path = folder / "j"}, [&](Journal& journal) -> asio::awaitable<void> {
    {
      const FullDisk full(ReadFile(folder / "j").size());
      const absl::Status status = co_await journal.Sending("call", AttemptId(1), 1);
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_FALSE(journal.healthy());
    }
    const absl::Status status = co_await journal.Sending("call", AttemptId(1), 1);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(journal.healthy());
  });
}

TEST(Journal, WhereTooManyWaitForTheDiskTheCallIsNotSentAndOutcomesAreTaken) {
  const Folder folder;
  Tell({.path = folder / "j", .queue_max = 0}, [](Journal& journal) -> asio::awaitable<void> {
    const absl::Status refused = co_await journal.Sending("call", AttemptId(1), 1);
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    const absl::Status taken = co_await journal.Outcome(Succeeded("r"));
    EXPECT_TRUE(taken.ok()) << taken;
  });
}

TEST(Journal, OneRecordThatIsRefusedIsNotTheOthersFault) {
  const Folder folder;
  asio::io_context loop;
  auto journal = Journal::Open({.path = folder / "j"}, loop.get_executor());
  ASSERT_TRUE(journal.ok());
  int good = 0, bad = 0;
  for (int i = 0; i < 40; ++i) {
    asio::co_spawn(
        loop,
        [&, i]() -> asio::awaitable<void> {
          // Every fourth names no call.
          const absl::Status status = co_await (*journal)->Sending(i % 4 == 0 ? "" : "call", AttemptId(i), 1);
          ++(status.ok() ? good : bad);
          EXPECT_EQ(status.ok(), i % 4 != 0) << status;
        },
        asio::detached);
  }
  loop.run();
  EXPECT_EQ(good, 30);
  EXPECT_EQ(bad, 10);
}

TEST(Journal, ASecondGatewayIsTurnedAway) {
  const Folder folder;
  asio::io_context loop;
  const auto first = Journal::Open({.path = folder / "j"}, loop.get_executor());
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsUnavailable(Journal::Open({.path = folder / "j"}, loop.get_executor()).status()));
}

}  // namespace
}  // namespace tally::gateway
