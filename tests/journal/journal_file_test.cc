#include "gateway/journal/journal_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include "tests/journal/folder.h"

namespace tally::gateway {
namespace {

using testing::HasSubstr;

constexpr JournalFile::Limits kLarge{.bytes_max = int64_t{1} << 40, .compact_bytes_min = 1 << 20};

JournalFile::Found Reopen(const std::string& path) {
  JournalFile::Found found;
  const auto file = JournalFile::Open(path, kLarge, &found);
  EXPECT_TRUE(file.ok()) << file.status();
  return found;
}

// What is open, by attempt, and its stage.
std::map<std::string, Stage> Open(const JournalFile::Found& found) {
  std::map<std::string, Stage> open;
  for (const Record& record : found.open) open[record.commit.attempt_id()] = record.stage;
  return open;
}

TEST(JournalFile, TheLastRecordOfAnAttemptCounts) {
  const Folder folder;
  {
    const auto file = JournalFile::Open(folder / "j", kLarge, nullptr);
    ASSERT_TRUE(file.ok()) << file.status();
    for (const Record& record :
         {MakeRecord(Stage::kGranted, 1), MakeRecord(Stage::kGranted, 2), MakeRecord(Stage::kGranted, 3),
          MakeRecord(Stage::kSending, 2), MakeRecord(Stage::kSending, 3), MakeRecord(Stage::kOutcome, 3, "r"),
          MakeRecord(Stage::kOutcome, 4, "r"), MakeRecord(Stage::kDelivered, 4)}) {
      ASSERT_TRUE((*file)->Append({record}, Durability::kSynced).ok());
    }
  }
  const std::map<std::string, Stage> expected = {
      {AttemptId(1), Stage::kGranted}, {AttemptId(2), Stage::kSending}, {AttemptId(3), Stage::kOutcome}};
  EXPECT_EQ(Open(Reopen(folder / "j")), expected);
  // Opening writes the file anew; nothing is lost by that either.
  EXPECT_EQ(Open(Reopen(folder / "j")), expected);
}

TEST(JournalFile, OnlyOneHasItAtATime) {
  const Folder folder;
  auto first = JournalFile::Open(folder / "j", kLarge, nullptr);
  ASSERT_TRUE(first.ok());
  const auto second = JournalFile::Open(folder / "j", kLarge, nullptr);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another gateway"));
  first->reset();
  EXPECT_TRUE(JournalFile::Open(folder / "j", kLarge, nullptr).ok());
}

TEST(JournalFile, NobodyElseCanReadIt) {
  const Folder folder;
  ASSERT_TRUE(JournalFile::Open(folder / "j", kLarge, nullptr).ok());
  struct stat about {};
  ASSERT_EQ(stat((folder / "j").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  chmod((folder / "j").c_str(), 0640);
  const auto file = JournalFile::Open(folder / "j", kLarge, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(file.status()));
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("chmod 600"));
}

TEST(JournalFile, AnotherFileIsLeftAsItIs) {
  const Folder folder;
  WriteFile(folder / "j", "something of somebody else's\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(JournalFile::Open(folder / "j", kLarge, nullptr).status()));
  EXPECT_EQ(ReadFile(folder / "j"), "something of somebody else's\n");
}

TEST(JournalFile, ATailTornAtAnyByteIsCutAndWhatWasBeforeItStays) {
  const Folder folder;
  std::string bytes(kMagic);
  std::vector<size_t> ends;
  const Record records[] = {MakeRecord(Stage::kGranted, 1), MakeRecord(Stage::kSending, 1),
                            MakeRecord(Stage::kOutcome, 2, "r")};
  for (const Record& record : records) ends.push_back((bytes += Encode(record)).size());
  for (size_t size = 0; size < bytes.size(); ++size) {
    WriteFile(folder / "j", bytes.substr(0, size));
    const size_t whole =
        static_cast<size_t>(std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= size; }));
    JournalFile::Found found;
    {
      const auto file = JournalFile::Open(folder / "j", kLarge, &found);
      ASSERT_TRUE(file.ok()) << file.status();
      std::map<std::string, Stage> expected;
      if (whole > 0) expected[AttemptId(1)] = whole > 1 ? Stage::kSending : Stage::kGranted;
      ASSERT_EQ(Open(found), expected) << size;
      ASSERT_EQ(found.damaged, 0) << size;
      ASSERT_EQ(found.torn > 0,
                size > 0 && size != kMagic.size() && std::find(ends.begin(), ends.end(), size) == ends.end());
      ASSERT_TRUE((*file)->Append({MakeRecord(Stage::kSending, 9)}, Durability::kSynced).ok());
    }
    // What is added after the cut is found, and the tail is gone.
    found = Reopen(folder / "j");
    ASSERT_EQ(Open(found).count(AttemptId(9)), 1u) << size;
    ASSERT_EQ(found.torn, 0) << size;
  }
}

TEST(JournalFile, DamageIsSaidAndACopyKept) {
  const Folder folder;
  std::string bytes(kMagic);
  bytes += Encode(MakeRecord(Stage::kGranted, 1));
  const size_t spoilt = bytes.size() + 20;
  bytes += Encode(MakeRecord(Stage::kSending, 1)) + Encode(MakeRecord(Stage::kOutcome, 2, "r"));
  bytes[spoilt] = static_cast<char>(~bytes[spoilt]);
  WriteFile(folder / "j", bytes);
  const JournalFile::Found found = Reopen(folder / "j");
  EXPECT_GT(found.damaged, 0);
  EXPECT_EQ(Open(found),
            (std::map<std::string, Stage>{{AttemptId(1), Stage::kGranted}, {AttemptId(2), Stage::kOutcome}}));
  EXPECT_EQ(ReadFile(found.damaged_copy), bytes);
  EXPECT_EQ(Reopen(folder / "j").damaged, 0);
}

TEST(JournalFile, OnAFullDiskAnAppendFailsWholeAndTheNextOneIsTakenOnceThereIsRoom) {
  const Folder folder;
  {
    const auto file = JournalFile::Open(folder / "j", kLarge, nullptr);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append({MakeRecord(Stage::kGranted, 1)}, Durability::kSynced).ok());
    {
      // Room for a part of it only.
      const FullDisk full(static_cast<rlim_t>((*file)->bytes()) + 5);
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(absl::IsUnavailable((*file)->Append({MakeRecord(Stage::kSending, 1)}, Durability::kSynced)));
      }
    }
    EXPECT_EQ(static_cast<int64_t>(ReadFile(folder / "j").size()), (*file)->bytes());
    EXPECT_TRUE((*file)->Append({MakeRecord(Stage::kSending, 2)}, Durability::kSynced).ok());
  }
  const JournalFile::Found found = Reopen(folder / "j");
  EXPECT_EQ(Open(found),
            (std::map<std::string, Stage>{{AttemptId(1), Stage::kGranted}, {AttemptId(2), Stage::kSending}}));
  EXPECT_EQ(found.torn + found.damaged, 0);
}

TEST(JournalFile, AtItsLimitNothingNewIsSentAndOutcomesAreStillTaken) {
  const Folder folder;
  const auto file = JournalFile::Open(folder / "j", {.bytes_max = 1000}, nullptr);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append({MakeRecord(Stage::kOutcome, 1, std::string(900, 'r'))}, Durability::kSynced).ok());
  EXPECT_TRUE(absl::IsResourceExhausted((*file)->Append({MakeRecord(Stage::kSending, 2)}, Durability::kSynced)));
  EXPECT_TRUE((*file)->Append({MakeRecord(Stage::kOutcome, 3, std::string(900, 'r'))}, Durability::kSynced).ok());
  EXPECT_TRUE((*file)->Append({MakeRecord(Stage::kDelivered, 1)}, Durability::kWritten).ok());
}

TEST(JournalFile, WhatIsDoneWithNeverKeepsCallsFromBeingSent) {
  const Folder folder;
  const auto file = JournalFile::Open(folder / "j", {.bytes_max = 10'000}, nullptr);
  ASSERT_TRUE(file.ok());
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE((*file)->Append({MakeRecord(Stage::kSending, i)}, Durability::kSynced).ok()) << i;
    ASSERT_TRUE((*file)->Append({MakeRecord(Stage::kOutcome, i, std::string(100, 'r'))}, Durability::kWritten).ok());
    ASSERT_TRUE((*file)->Append({MakeRecord(Stage::kDelivered, i)}, Durability::kWritten).ok());
  }
}

TEST(JournalFile, ARecordMustNameCallAndAttempt) {
  const Folder folder;
  const auto file = JournalFile::Open(folder / "j", kLarge, nullptr);
  ASSERT_TRUE(file.ok());
  Record record = MakeRecord(Stage::kSending, 1);
  record.commit.clear_call_id();
  EXPECT_TRUE(absl::IsInvalidArgument((*file)->Append({record}, Durability::kSynced)));
  record = MakeRecord(Stage::kSending, 1);
  record.commit.clear_attempt_id();
  EXPECT_TRUE(absl::IsInvalidArgument((*file)->Append({record}, Durability::kSynced)));
}

TEST(JournalFile, WhatIsDoneWithIsCompactedAwayAndWhatIsOpenStays) {
  const Folder folder;
  const std::string result(10'000, 'r');
  {
    const auto file = JournalFile::Open(folder / "j", kLarge, nullptr);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append({MakeRecord(Stage::kOutcome, 1, "kept")}, Durability::kSynced).ok());
    for (int i = 2; i < 1000; ++i) {
      ASSERT_TRUE((*file)
                      ->Append({MakeRecord(Stage::kGranted, i), MakeRecord(Stage::kSending, i),
                                MakeRecord(Stage::kOutcome, i, result), MakeRecord(Stage::kDelivered, i)},
                               Durability::kWritten)
                      .ok());
      ASSERT_LT((*file)->bytes(), kLarge.compact_bytes_min + 20'000);
    }
    EXPECT_EQ((*file)->open_attempts(), 1u);
  }
  const JournalFile::Found found = Reopen(folder / "j");
  ASSERT_EQ(found.open.size(), 1u);
  EXPECT_EQ(found.open[0].commit.result(), "kept");
}

TEST(JournalFile, WhereNoCopyCanBeMadeItGoesOnWithTheOldFile) {
  const Folder folder;
  const auto file = JournalFile::Open(folder / "j", kLarge, nullptr);
  ASSERT_TRUE(file.ok());
  std::filesystem::create_directory(folder / "j.new");
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(
        (*file)
            ->Append({MakeRecord(Stage::kOutcome, i, std::string(10'000, 'r')), MakeRecord(Stage::kDelivered, i)},
                     Durability::kWritten)
            .ok());
  }
  EXPECT_GT((*file)->bytes(), 2 * kLarge.compact_bytes_min);
}

// Any history of appends, compactions and restarts, against a map.
RC_GTEST_PROP(JournalFile, FindsWhatAMapWouldHold, ()) {
  const Folder folder;
  std::map<std::string, std::string> expected;
  auto file = JournalFile::Open(folder / "j", kLarge, nullptr);
  RC_ASSERT(file.ok());
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    std::vector<Record> batch;
    const int size = *rc::gen::inRange(1, 4);
    for (int j = 0; j < size; ++j) {
      const auto stage = static_cast<Stage>(*rc::gen::inRange(1, 5));
      const int attempt = *rc::gen::inRange(0, 8);
      const int large = *rc::gen::inRange(0, 4);
      batch.push_back(
          MakeRecord(stage, attempt, std::string(large == 0 ? 400'000 : 10, static_cast<char>('a' + i % 26))));
      if (stage == Stage::kDelivered) {
        expected.erase(AttemptId(attempt));
      } else {
        expected[AttemptId(attempt)] = Encode(batch.back());
      }
    }
    RC_ASSERT((*file)->Append(batch, Durability::kWritten).ok());
    if (*rc::gen::inRange(0, 20) == 0 || i + 1 == steps) {
      file->reset();
      JournalFile::Found found;
      file = JournalFile::Open(folder / "j", kLarge, &found);
      RC_ASSERT(file.ok());
      std::map<std::string, std::string> open;
      for (const Record& record : found.open) open[record.commit.attempt_id()] = Encode(record);
      RC_ASSERT(open == expected);
    }
  }
}

}  // namespace
}  // namespace tally::gateway
