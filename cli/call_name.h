// How commands name a call and an attempt, and take what must not stand in a command line.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/session.h"

namespace tally::cli {

inline constexpr size_t kArgumentsBytesMax = 1 << 20;  // the server's limit is lower, and its own to tell
inline constexpr size_t kResultBytesMax = 64 << 20;    // larger than is kept: the server keeps the hash
inline constexpr size_t kEvidenceBytesMax = 2 << 20;

// 16 bytes from 32 hex digits or UUID text.
absl::StatusOr<std::string> ParseAttemptId(const std::string& text);
// 32 bytes from 64 hex digits.
absl::StatusOr<std::string> ParseReceiptId(const std::string& text);

// From --permit-token-file (`-`: stdin), or TALLY_PERMIT_TOKEN. The token itself is never an argument.
absl::StatusOr<std::string> ReadPermitToken(const std::string& file);

// A call by its id, or by permit token and key for whoever lost the answer that had the id.
struct CallName {
  std::string id;
  std::string permit_token_file;
  std::string key;
};
std::shared_ptr<CallName> AddCallName(CLI::App& command);

// Fills call_id, or permit_token and key.
template <typename Request>
absl::Status NameCall(const CallName& name, Request* request) {
  if (!name.id.empty() && (!name.key.empty() || !name.permit_token_file.empty())) {
    return absl::InvalidArgumentError("name the call by ID, or by permit token and --key, not both");
  }
  if (!name.id.empty()) {
    request->set_call_id(name.id);
    return absl::OkStatus();
  }
  if (name.key.empty()) return absl::InvalidArgumentError("name the call: its ID, or --key with the permit token");
  auto token = ReadPermitToken(name.permit_token_file);
  if (!token.ok()) return token.status();
  request->set_permit_token(*std::move(token));
  request->set_key(name.key);
  return absl::OkStatus();
}

}  // namespace tally::cli
