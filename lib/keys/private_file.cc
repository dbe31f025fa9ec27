#include "lib/keys/private_file.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "lib/keys/text.h"

namespace tally::keys {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status Failed(std::string_view doing, const std::string& path) {
  return absl::ErrnoToStatus(errno, Cat("cannot ", doing, " ", path));
}

std::string Octal(mode_t mode) {
  std::string out = "0";
  for (int shift = 6; shift >= 0; shift -= 3) out.push_back(static_cast<char>('0' + (mode >> shift & 7)));
  return out;
}

absl::Status CheckPrivate(const struct stat& found, const std::string& path) {
  if (!S_ISREG(found.st_mode)) return absl::FailedPreconditionError(Cat(path, " is not a regular file"));
  if ((found.st_mode & 077) != 0) {
    return absl::FailedPreconditionError(Cat(path, " holds a secret but has mode ", Octal(found.st_mode & 07777),
                                             ", so others can reach it; nothing was read. Run: chmod 600 ", path));
  }
  if (found.st_uid != geteuid() && found.st_uid != 0) {
    return absl::FailedPreconditionError(Cat(path, " holds a secret but belongs to user id ", found.st_uid,
                                             "; nothing was read. It must belong to the user that reads it (",
                                             geteuid(), ")"));
  }
  if (static_cast<size_t>(found.st_size) > kMaxPrivateFileSize) {
    return absl::FailedPreconditionError(Cat(path, " is larger than a secret can be"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Secret> ReadPrivateFile(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) return Failed("open", path);
  struct stat found {};
  if (fstat(file.get(), &found) != 0) return Failed("inspect", path);
  if (absl::Status status = CheckPrivate(found, path); !status.ok()) return status;

  std::string content(static_cast<size_t>(found.st_size), '\0');
  size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const absl::Status status = Failed("read", path);
      sodium_memzero(content.data(), content.size());
      return status;
    }
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  Secret out = Secret::Copy(std::string_view(content).substr(0, size));
  sodium_memzero(content.data(), content.size());
  return out;
}

absl::Status WritePrivateFile(const std::string& path, std::string_view content) {
  {
    const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) return Failed("create", path);
    while (!content.empty()) {
      const ssize_t wrote = write(file.get(), content.data(), content.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return Failed("write", path);
      content.remove_prefix(static_cast<size_t>(wrote));
    }
    if (fsync(file.get()) != 0) return Failed("fsync", path);
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const Descriptor parent(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (parent.get() < 0 || fsync(parent.get()) != 0) return Failed("fsync", folder);
  return absl::OkStatus();
}

std::string_view WithoutLineEnd(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace tally::keys
