// Folders and the lock of the private server: who may enter, who holds it, where its socket fits.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "server/postgres/account.h"
#include "server/postgres/settings.h"

namespace tally::postgres {

// An exclusive lock on a file, held until destruction or death, whatever kills us.
class FileLock {
 public:
  // Says which process holds it where another one does.
  static absl::StatusOr<FileLock> Take(const std::filesystem::path& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

// Makes the data folder if it is missing. Where the server runs as another user than we, lets that user pass through
// it (0711), and checks that it can get there.
absl::Status PrepareRoot(const Layout& layout, const Account& own, const Account& server);

// Makes `path` with mode 0700 for the server's user; one that exists must be a folder (no link) of that user.
absl::Status PrivateFolder(const std::filesystem::path& path, const Account& server);

// True if this is a folder, not a link, that belongs to the server's user and nobody else may enter.
bool IsPrivateFolder(const std::filesystem::path& path, const Account& server);

// The longest a socket folder's path may be so that a socket fits in (sun_path holds 107 bytes).
size_t SocketFolderBytesMax();

// The folder in the data folder, or, where its path will not do for a socket, a new one with a random name in /tmp.
absl::StatusOr<std::filesystem::path> SocketFolder(const Layout& layout, const Account& server);

// Removes a folder that SocketFolder made in /tmp; leaves any other alone.
void RemoveSocketFolder(const Layout& layout, const std::filesystem::path& folder);

}  // namespace tally::postgres
