// Where the key that seals the signing seeds comes from: a file, the environment or a systemd credential. Never argv.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "lib/keys/secret.h"

namespace tally::keys {

inline constexpr size_t kKeyEncryptionKeySize = 32;

// Its text form is 64 hex digits, with or without a line end; files and credentials may also hold the 32 bytes as they
// are. Errors never show what was read.
absl::StatusOr<Secret> KeyEncryptionKeyFromFile(const std::string& path);

// Wipes and removes the variable, so that neither /proc/PID/environ nor a child process shows it. The environment is
// not guarded against other threads: call it before any is started.
absl::StatusOr<Secret> KeyEncryptionKeyFromEnvironment(const std::string& variable);

// $CREDENTIALS_DIRECTORY/NAME, as systemd's LoadCredential= leaves it there. NAME has no slash.
absl::StatusOr<Secret> KeyEncryptionKeyFromCredential(const std::string& name);

// 64 hex digits and a line end, to be written to a private file.
Secret KeyEncryptionKeyText(const Secret& key);

}  // namespace tally::keys
