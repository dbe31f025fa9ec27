#include "gateway/journal/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/journal/folder.h"

namespace tally::gateway {
namespace {

using nlohmann::json;

AuditEntry Entry(int number) {
  return {.time_us = 1'764'495'660'123'456,
          .method = "tools/call",
          .upstream = "files",
          .tool = "write_file",
          .permit_id = "permit",
          .call_id = "call-" + std::to_string(number),
          .attempt_id = AttemptId(1),
          .attempt = 1,
          .send = 2,
          .outcome = "succeeded",
          .latency_us = 12'345};
}

std::vector<json> Lines(const std::string& path) {
  std::vector<json> lines;
  std::istringstream text(ReadFile(path));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

bool Eventually(const std::function<bool()>& what) {
  for (int i = 0; i < 2'000; ++i) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST(AuditLog, ALineSaysWhatWasSentAndWhatCameOfIt) {
  EXPECT_EQ(AuditLine(Entry(7)),
            R"({"time":"2025-11-30T09:41:00.123456Z","method":"tools/call","upstream":"files","tool":"write_file",)"
            R"("permit_id":"permit","call_id":"call-7","attempt_id":"01000000000000000000000000000000","attempt":1,)"
            R"("send":2,"outcome":"succeeded","latency_ms":12.345})");
  // An internal read has no call; a name that is no UTF-8 or holds a line end is still one line.
  const std::string line =
      AuditLine({.method = "tools/list", .upstream = "u\xff", .tool = "a\nb", .outcome = "failed"});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_FALSE(json::parse(line).contains("call_id"));
}

TEST(AuditLog, EveryLineIsThereWhenItIsClosed) {
  const Folder folder;
  {
    const auto log = AuditLog::Open({.path = folder / "a"});
    ASSERT_TRUE(log.ok()) << log.status();
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE((*log)->Write(Entry(i)));
  }
  {
    const auto log = AuditLog::Open({.path = folder / "a"});
    ASSERT_TRUE((*log)->Write(Entry(1'000)));
  }
  const auto lines = Lines(folder / "a");
  ASSERT_EQ(lines.size(), 1'001u);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i]["call_id"], "call-" + std::to_string(i));
}

TEST(AuditLog, HalfALineOfACrashStaysAndEnds) {
  const Folder folder;
  WriteFile(folder / "a", "{\"time\":");
  {
    const auto log = AuditLog::Open({.path = folder / "a"});
    ASSERT_TRUE((*log)->Write(Entry(1)));
  }
  EXPECT_EQ(ReadFile(folder / "a"), "{\"time\":\n" + AuditLine(Entry(1)) + "\n");
}

TEST(AuditLog, FilesAreRotatedBySizeAndTheOldestGo) {
  const Folder folder;
  const int64_t size = static_cast<int64_t>(AuditLine(Entry(10)).size()) + 1;
  {
    const auto log = AuditLog::Open({.path = folder / "a", .file_bytes_max = 10 * size, .files_max = 2});
    for (int i = 10; i < 45; ++i) ASSERT_TRUE((*log)->Write(Entry(i)));
  }
  EXPECT_EQ(Lines(folder / "a").size(), 5u);
  EXPECT_EQ(Lines(folder / "a").back()["call_id"], "call-44");
  EXPECT_EQ(Lines(folder / "a.1").size(), 10u);
  EXPECT_EQ(Lines(folder / "a.2").front()["call_id"], "call-20");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.3"));
}

TEST(AuditLog, AFileThatWasMovedAwayIsReopened) {
  const Folder folder;
  const auto log = AuditLog::Open({.path = folder / "a"});
  ASSERT_TRUE((*log)->Write(Entry(1)));
  ASSERT_TRUE(Eventually([&] { return !Lines(folder / "a").empty(); }));
  std::filesystem::rename(folder / "a", folder / "moved");
  (*log)->Reopen();
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(folder / "a"); }));
  ASSERT_TRUE((*log)->Write(Entry(2)));
  ASSERT_TRUE(Eventually([&] { return Lines(folder / "a").size() == 1; }));
  EXPECT_EQ(Lines(folder / "moved").size(), 1u);
}

TEST(AuditLog, AFileThatWasRemovedIsMadeAnew) {
  const Folder folder;
  const auto log = AuditLog::Open({.path = folder / "a"});
  ASSERT_TRUE((*log)->Write(Entry(1)));
  ASSERT_TRUE(Eventually([&] { return !Lines(folder / "a").empty(); }));
  std::filesystem::remove(folder / "a");
  ASSERT_TRUE((*log)->Write(Entry(2)));
  ASSERT_TRUE(Eventually([&] { return Lines(folder / "a").size() == 1; }));
}

TEST(AuditLog, WhileTheDiskIsFullItIsNotHealthyAndAfterwardsNothingIsMissing) {
  const Folder folder;
  const auto log = AuditLog::Open({.path = folder / "a"});
  ASSERT_TRUE((*log)->healthy());
  {
    // Room for one line and a half.
    const FullDisk full(AuditLine(Entry(1)).size() * 3 / 2);
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE((*log)->Write(Entry(i)));
    ASSERT_TRUE(Eventually([&] { return !(*log)->healthy(); }));
  }
  ASSERT_TRUE(Eventually([&] { return (*log)->healthy(); }));
  const auto lines = Lines(folder / "a");
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(lines[i]["call_id"], "call-" + std::to_string(i + 1));
}

TEST(AuditLog, LinesThatFoundTheQueueFullAreCountedAndSaid) {
  const Folder folder;
  const auto log = AuditLog::Open({.path = folder / "a", .queue_max = 100});
  int lost = 0;
  {
    const FullDisk full(0);
    for (int i = 0; i < 500; ++i) lost += (*log)->Write(Entry(i)) ? 0 : 1;
    EXPECT_FALSE((*log)->healthy());
  }
  ASSERT_GT(lost, 0);
  ASSERT_TRUE(Eventually([&] { return (*log)->healthy(); }));
  const auto lines = Lines(folder / "a");
  int written = 0, said = 0;
  for (const json& line : lines) line.contains("lost") ? said += line["lost"].get<int>() : ++written;
  EXPECT_EQ(said, lost);
  EXPECT_EQ(written + lost, 500);
}

TEST(AuditLog, AFolderThatIsNotThereIsSaidAtOnce) {
  const Folder folder;
  const auto log = AuditLog::Open({.path = folder / "none/a"});
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(std::string(log.status().message()), testing::HasSubstr("none/a"));
}

}  // namespace
}  // namespace tally::gateway
