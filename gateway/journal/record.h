// The journal's format. A file is kMagic, then records:
//
//   u32  bytes of the payload
//   u32  CRC-32C of the payload
//   u32  CRC-32C of the eight bytes before
//   payload: u8 stage, i64 send_within_ms, a CommitRequest (protobuf), integers in little endian
//
// The header has a checksum of its own, so that a record that a crash cut short (its header is whole, its payload is
// not all there) is told from one that the disk has spoilt.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "tally/v1/calls.pb.h"

namespace tally::gateway {

// How far an attempt has come. What a crash after each means is written in journal.h.
enum class Stage : uint8_t {
  kGranted = 1,    // DISPATCH came; nothing was sent
  kSending = 2,    // the first byte may be written from here on
  kOutcome = 3,    // what became of it is known; tallyd may not know it
  kDelivered = 4,  // tallyd knows it
};

struct Record {
  Stage stage = Stage::kGranted;
  int64_t send_within_ms = 0;  // of the grant
  // With kOutcome what is to be committed; before it call_id, attempt_id and sent_at_us alone.
  v1::CommitRequest commit;
};

inline constexpr std::string_view kMagic = "tally-journal-1\n";
inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kPayloadBytesMax = 80 << 20;

// Without the permit token and the key: the token is a secret, and call_id names the call.
std::string Encode(const Record& record);

// What a file's bytes hold.
struct Scan {
  bool foreign = false;  // it does not begin with kMagic: not ours
  int64_t torn = 0;      // bytes at the end that a crash cut short: they belong to a record that nobody was told about
  int64_t damaged = 0;   // bytes anywhere that are no record: what stood there is lost
  int64_t good_end = 0;  // where the last record ends
};

// Hands each record to `take`, with where it begins and how long it is, header included.
Scan ScanRecords(std::string_view file, const std::function<void(Record, int64_t offset, int64_t size)>& take);

}  // namespace tally::gateway
