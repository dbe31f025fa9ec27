#include "lib/keys/key_encryption_key.h"

#include <sodium.h>

#include <cstdlib>

#include "lib/keys/encoding.h"
#include "lib/keys/private_file.h"
#include "lib/keys/text.h"

namespace tally::keys {
namespace {

absl::StatusOr<Secret> Parse(std::string_view content, std::string_view where) {
  if (content.size() == kKeyEncryptionKeySize) return Secret::Copy(content);
  const std::string_view text = WithoutLineEnd(content);
  if (text.size() == 2 * kKeyEncryptionKeySize) {
    if (auto bytes = HexDecode(text)) return Secret::Take(*bytes);
  }
  return absl::InvalidArgumentError(
      Cat(where, " does not hold a key-encryption key: expected 64 hex digits (or 32 raw bytes in a file)"));
}

}  // namespace

absl::StatusOr<Secret> KeyEncryptionKeyFromFile(const std::string& path) {
  auto content = ReadPrivateFile(path);
  if (!content.ok()) return content.status();
  return Parse(content->Expose(), path);
}

absl::StatusOr<Secret> KeyEncryptionKeyFromEnvironment(const std::string& variable) {
  char* value = std::getenv(variable.c_str());
  if (value == nullptr) {
    return absl::NotFoundError(Cat("the environment variable ", variable, " is not set"));
  }
  const std::string_view text(value);
  auto key = Parse(text, Cat("the environment variable ", variable));
  sodium_memzero(value, text.size());
  unsetenv(variable.c_str());
  return key;
}

absl::StatusOr<Secret> KeyEncryptionKeyFromCredential(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name.front() == '.') {
    return absl::InvalidArgumentError("a credential's name is a plain file name");
  }
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  if (folder == nullptr) {
    return absl::NotFoundError(
        "CREDENTIALS_DIRECTORY is not set: this process was not started by systemd with LoadCredential= or "
        "LoadCredentialEncrypted=");
  }
  return KeyEncryptionKeyFromFile(Cat(folder, "/", name));
}

Secret KeyEncryptionKeyText(const Secret& key) {
  std::string text = HexEncode(key.Expose()) + "\n";
  return Secret::Take(text);
}

}  // namespace tally::keys
