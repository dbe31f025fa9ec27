// Files that hold secrets: nobody but their owner may read them, and they are never overwritten.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "lib/keys/secret.h"

namespace tally::keys {

inline constexpr size_t kMaxPrivateFileSize = 64 * 1024;

// Reads a regular file that only its owner (this user or root) can read: mode 0600 or stricter. A file open to others
// is refused before a byte is read, with the command that closes it. Follows symbolic links; what they lead to is
// checked.
absl::StatusOr<Secret> ReadPrivateFile(const std::string& path);

// Creates the file with mode 0600 and fsyncs it and its folder. AlreadyExists, and nothing touched, if anything is
// there. A crash on the way may leave an empty or partial file, which the next read refuses.
absl::Status WritePrivateFile(const std::string& path, std::string_view content);

// Without one line end at the end: a secret typed into a file has one.
std::string_view WithoutLineEnd(std::string_view text);

}  // namespace tally::keys
