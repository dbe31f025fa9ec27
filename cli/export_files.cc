#include "cli/export_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "absl/strings/str_cat.h"
#include "lib/keys/public_key.h"
#include "lib/keys/published.h"

namespace tally::cli {

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return absl::UnavailableError(absl::StrCat("cannot make the folder ", path, ": ", error.message()));
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, std::string_view content) {
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const auto fail = [&](int number) {
    std::remove(temporary.c_str());
    return absl::ErrnoToStatus(number, absl::StrCat("cannot write ", path));
  };
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  int number = 0;
  while (!content.empty() && number == 0) {
    const ssize_t written = write(file, content.data(), content.size());
    if (written < 0) {
      number = errno == EINTR ? 0 : errno;
    } else {
      content.remove_prefix(static_cast<size_t>(written));
    }
  }
  if (number == 0 && fsync(file) != 0) number = errno;
  if (close(file) != 0 && number == 0) number = errno;
  if (number != 0) return fail(number);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail(errno);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<keys::KnownKey>> KnownKeys(const v1::KeysResponse& response) {
  std::vector<keys::KnownKey> known;
  for (const v1::PublishedKey& key : response.keys()) {
    const auto checked = keys::PublicKey::Create(key.name(), key.public_key());
    if (!checked.ok()) return checked.status();
    if (checked->id().view() != key.key_id()) {
      return absl::DataLossError(absl::StrCat("the server's id of key ", key.name(), " is not that key's id"));
    }
    known.push_back({.name = key.name(),
                     .bytes = key.public_key(),
                     .not_before_us = key.not_before_us() == 0 ? std::nullopt : std::optional(key.not_before_us()),
                     .not_after_us = key.not_after_us() == 0 ? std::nullopt : std::optional(key.not_after_us()),
                     .status = key.not_after_us() == 0 ? keys::KeyStatus::kActive : keys::KeyStatus::kRetired});
  }
  return known;
}

absl::StatusOr<std::vector<std::string>> WriteKeys(const std::string& folder,
                                                   const std::vector<keys::KnownKey>& known) {
  std::string pem;
  for (const keys::KnownKey& key : known) {
    const auto checked = keys::PublicKey::Create(key.name, key.bytes);
    if (!checked.ok()) return checked.status();
    pem += keys::ToPem(*checked);
  }
  if (absl::Status status = WriteFile(folder + "/keys.json", keys::ToKeysJson(known)); !status.ok()) return status;
  if (absl::Status status = WriteFile(folder + "/keys.pem", pem); !status.ok()) return status;
  return std::vector<std::string>{folder + "/keys.json", folder + "/keys.pem"};
}

}  // namespace tally::cli
