#include "gateway/journal/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "lib/keys/encoding.h"
#include "tests/journal/folder.h"

namespace tally::gateway {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Read {
  Scan scan;
  std::vector<Record> records;
};

Read ReadAll(std::string_view file) {
  Read read;
  read.scan = ScanRecords(file, [&](Record record, int64_t offset, int64_t size) {
    EXPECT_LE(offset + size, static_cast<int64_t>(file.size()));
    read.records.push_back(std::move(record));
  });
  return read;
}

std::string Text(const Record& record) {
  return std::to_string(static_cast<int>(record.stage)) + ' ' + std::to_string(record.send_within_ms) + ' ' +
         record.commit.SerializeAsString();
}

std::vector<Record> Three() {
  return {MakeRecord(Stage::kGranted, 1), MakeRecord(Stage::kSending, 1), MakeRecord(Stage::kOutcome, 2, "done")};
}

TEST(Record, TheFormatIsFrozen) {
  Record record{Stage::kGranted, 0x0102, {}};
  record.commit.set_call_id("c");
  record.commit.set_attempt_id("a");
  // Both checksums computed apart from this code.
  EXPECT_EQ(keys::HexEncode(Encode(record)), "0f000000d28f421f7e97d6ca0102010000000000000a0163220161");
}

TEST(Record, TokenAndKeyAreNeverWritten) {
  Record record = MakeRecord(Stage::kOutcome, 1);
  record.commit.set_permit_token("hunter2");
  record.commit.set_key("secret-key");
  EXPECT_THAT(Encode(record), Not(HasSubstr("hunter2")));
  EXPECT_THAT(Encode(record), Not(HasSubstr("secret-key")));
}

RC_GTEST_PROP(Record, WhatIsWrittenIsRead, (std::vector<std::pair<std::string, std::string>> bodies)) {
  std::string file(kMagic);
  std::vector<std::string> written;
  for (const auto& [result, partial] : bodies) {
    Record record{static_cast<Stage>(1 + result.size() % 4), static_cast<int64_t>(partial.size()) - 3, {}};
    record.commit.set_attempt_id("a");
    record.commit.set_result(result);
    record.commit.set_partial_answer(partial);
    written.push_back(Text(record));
    file += Encode(record);
  }
  const Read read = ReadAll(file);
  RC_ASSERT(read.records.size() == written.size());
  for (size_t i = 0; i < written.size(); ++i) RC_ASSERT(Text(read.records[i]) == written[i]);
  RC_ASSERT(read.scan.torn == 0 && read.scan.damaged == 0 && !read.scan.foreign);
}

TEST(Record, AFileThatEndsAtAnyByteIsTornThereAndLosesNothingBefore) {
  std::string file(kMagic);
  std::vector<size_t> ends = {file.size()};
  for (const Record& record : Three()) ends.push_back((file += Encode(record)).size());
  for (size_t size = 0; size <= file.size(); ++size) {
    const Read read = ReadAll(std::string_view(file).substr(0, size));
    const size_t whole =
        static_cast<size_t>(std::count_if(ends.begin(), ends.end(), [&](size_t end) { return end <= size; }));
    ASSERT_EQ(read.records.size(), whole == 0 ? 0 : whole - 1) << size;
    ASSERT_EQ(read.scan.damaged, 0) << size;
    ASSERT_FALSE(read.scan.foreign);
    ASSERT_EQ(read.scan.torn, static_cast<int64_t>(size - (whole == 0 ? 0 : ends[whole - 1]))) << size;
  }
}

TEST(Record, AByteThatWasSpoiltCostsItsRecordAloneAndIsSaid) {
  std::string file(kMagic);
  std::vector<size_t> begins;
  for (const Record& record : Three()) {
    begins.push_back(file.size());
    file += Encode(record);
  }
  for (size_t at = 0; at < file.size(); ++at) {
    std::string spoilt = file;
    spoilt[at] = static_cast<char>(spoilt[at] ^ 0x10);
    const Read read = ReadAll(spoilt);
    if (at < kMagic.size()) {
      ASSERT_TRUE(read.scan.foreign) << at;
      continue;
    }
    ASSERT_EQ(read.records.size(), 2u) << at;
    ASSERT_GT(read.scan.damaged, 0) << at;
    const size_t hit = at < begins[1] ? 0 : at < begins[2] ? 1 : 2;
    for (size_t i = 0, found = 0; i < 3; ++i) {
      if (i == hit) continue;
      ASSERT_EQ(Text(read.records[found++]), Text(Three()[i])) << at;
    }
  }
}

// What a power cut may leave where the file had grown and its bytes had not arrived.
TEST(Record, ZeroesAreDamageAndNotATornRecord) {
  const std::string file = std::string(kMagic) + Encode(Three()[0]) + std::string(500, '\0');
  const Read read = ReadAll(file);
  EXPECT_EQ(read.records.size(), 1u);
  EXPECT_GT(read.scan.damaged, 0);
}

RC_GTEST_PROP(Record, AnyBytesAtAllAreReadWithoutHarm, (std::string noise, bool ours)) {
  const std::string file = (ours ? std::string(kMagic) + Encode(Three()[0]) : "") + noise;
  const Read read = ReadAll(file);
  RC_ASSERT(read.scan.good_end <= static_cast<int64_t>(file.size()));
  if (ours) RC_ASSERT(read.records.size() >= 1u);
}

}  // namespace
}  // namespace tally::gateway
