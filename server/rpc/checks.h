#ifndef TALLY_SERVER_RPC_CHECKS_H_
#define TALLY_SERVER_RPC_CHECKS_H_

#include <grpcpp/support/status.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/decide/world.h"
#include "tally/v1/calls.pb.h"

// The form of requests, checked before any work is done for them.
namespace tally::rpc {

inline constexpr size_t kArgumentsBytesMax = 256 * 1024;
inline constexpr size_t kResultBytesMax = 1024 * 1024;  // larger: only its hash is kept
inline constexpr size_t kPartialBytesMax = 64 * 1024;
inline constexpr size_t kEvidenceBytesMax = 1024 * 1024;
inline constexpr int kPageMax = 1000;
inline constexpr int kPageDefault = 100;

// 1 to `bytes_max` bytes without control characters.
bool IsLine(std::string_view text, size_t bytes_max);

grpc::Status CheckKey(std::string_view name, std::string_view key);
grpc::Status CheckAttemptId(std::string_view id);
grpc::Status CheckLeaseMs(int64_t lease_ms);
grpc::Status CheckEvidence(const v1::Evidence& evidence, bool reason_required);

// Of a call, permit or principal. One that cannot be an id of ours is NotFound: what is foreign, missing or misspelt
// looks the same.
grpc::Status ReadId(std::string_view text, decide::Id& id);

// 0: the default; otherwise 1 to kPageMax.
grpc::Status ReadPageSize(int asked, int& size);
// A page token is the last id of the page before; empty: from the start.
grpc::Status ReadPageToken(std::string_view token, decide::Id& after);

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_CHECKS_H_
