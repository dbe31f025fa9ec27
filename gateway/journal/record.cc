#include "gateway/journal/record.h"

#include <boost/crc.hpp>
#include <optional>

namespace tally::gateway {
namespace {

constexpr size_t kPayloadHeadBytes = 9;  // stage, send_within_ms

uint32_t Crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

template <typename Number>
void Put(std::string& out, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i) out += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i));
}

template <typename Number>
Number Get(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(Number); ++i) {
    number |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return static_cast<Number>(number);
}

std::optional<Record> Decode(std::string_view payload) {
  if (payload.size() < kPayloadHeadBytes) return std::nullopt;
  Record record;
  const auto stage = static_cast<uint8_t>(payload[0]);
  if (stage < static_cast<uint8_t>(Stage::kGranted) || stage > static_cast<uint8_t>(Stage::kDelivered)) {
    return std::nullopt;
  }
  record.stage = static_cast<Stage>(stage);
  record.send_within_ms = Get<int64_t>(payload.substr(1));
  const std::string_view commit = payload.substr(kPayloadHeadBytes);
  if (!record.commit.ParseFromArray(commit.data(), static_cast<int>(commit.size()))) return std::nullopt;
  return record;
}

bool HeaderIsWhole(std::string_view at) {
  return at.size() >= kRecordHeaderBytes && Crc32c(at.substr(0, 8)) == Get<uint32_t>(at.substr(8)) &&
         Get<uint32_t>(at) <= kPayloadBytesMax;
}

}  // namespace

std::string Encode(const Record& record) {
  v1::CommitRequest commit = record.commit;
  commit.clear_permit_token();
  commit.clear_key();
  std::string payload;
  Put(payload, static_cast<uint8_t>(record.stage));
  Put(payload, record.send_within_ms);
  commit.AppendToString(&payload);

  std::string bytes;
  bytes.reserve(kRecordHeaderBytes + payload.size());
  Put(bytes, static_cast<uint32_t>(payload.size()));
  Put(bytes, Crc32c(payload));
  Put(bytes, Crc32c(bytes));
  return bytes += payload;
}

Scan ScanRecords(std::string_view file, const std::function<void(Record, int64_t, int64_t)>& take) {
  Scan scan;
  // A crash while the file was made leaves a part of the magic, or nothing.
  if (file.size() < kMagic.size() && kMagic.substr(0, file.size()) == file) {
    scan.torn = static_cast<int64_t>(file.size());
    return scan;
  }
  if (file.substr(0, kMagic.size()) != kMagic) {
    scan.foreign = true;
    return scan;
  }
  size_t at = kMagic.size();
  scan.good_end = static_cast<int64_t>(at);
  while (at < file.size()) {
    const std::string_view rest = file.substr(at);
    if (HeaderIsWhole(rest)) {
      const size_t size = kRecordHeaderBytes + Get<uint32_t>(rest);
      if (size > rest.size()) {
        scan.torn = static_cast<int64_t>(rest.size());
        return scan;
      }
      const std::string_view payload = rest.substr(kRecordHeaderBytes, size - kRecordHeaderBytes);
      if (Crc32c(payload) == Get<uint32_t>(rest.substr(4))) {
        if (auto record = Decode(payload)) {
          take(*std::move(record), static_cast<int64_t>(at), static_cast<int64_t>(size));
          at += size;
          scan.good_end = static_cast<int64_t>(at);
          continue;
        }
      }
    } else if (rest.size() < kRecordHeaderBytes) {
      scan.torn = static_cast<int64_t>(rest.size());
      return scan;
    }
    // Spoilt here. What follows may be whole: found again byte by byte, by the header's checksum and the payload's.
    ++scan.damaged;
    ++at;
  }
  return scan;
}

}  // namespace tally::gateway
