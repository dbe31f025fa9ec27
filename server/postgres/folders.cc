#include "server/postgres/folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tally::postgres {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr char kShortFolderPrefix[] = "/tmp/tallyd-pg-";

}  // namespace

absl::StatusOr<FileLock> FileLock::Take(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path.string()));
  FileLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", path.string()));
    char holder[32] = {};
    const ssize_t got = pread(fd, holder, sizeof holder - 1, 0);
    const std::string who =
        got > 0 ? absl::StrCat("process ", std::string(holder, static_cast<size_t>(got))) : "a process";
    return absl::FailedPreconditionError(absl::StrCat(
        who, " uses this data folder already (", path.string(),
        " is locked). Nothing was changed: stop that one first, or give this one a data folder of its own; "
        "replicas share a database through database_url"));
  }
  const std::string mine = absl::StrCat(getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, mine.data(), mine.size(), 0) != static_cast<ssize_t>(mine.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path.string()));
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

absl::Status PrepareRoot(const Layout& layout, const Account& own, const Account& server) {
  std::error_code error;
  const bool existed = fs::exists(layout.root, error);
  fs::create_directories(layout.root, error);
  if (error) return absl::InternalError(absl::StrCat("cannot make ", layout.root.string(), ": ", error.message()));
  struct stat entry;
  if (stat(layout.root.c_str(), &entry) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", layout.root.string()));
  }
  if (entry.st_uid != own.uid) {
    return absl::FailedPreconditionError(absl::StrCat("the data folder ", layout.root.string(), " does not belong to ",
                                                      own.name, ", who runs tallyd. Nothing was changed"));
  }
  if (own.uid == server.uid) {
    if (!existed && chmod(layout.root.c_str(), 0700) != 0)
      return absl::ErrnoToStatus(errno, "cannot set the folder's mode");
    return absl::OkStatus();
  }
  if (chmod(layout.root.c_str(), 0711) != 0) return absl::ErrnoToStatus(errno, "cannot set the folder's mode");

  // The folder at which the server's user is stopped, seen with that user's own rights.
  fs::path step;
  for (const fs::path& part : layout.root) {
    step /= part;
    const absl::StatusOr<Finished> entered = RunProgram(server, {"/usr/bin/test", "-x", step.string()}, 10s);
    if (!entered.ok()) return entered.status();
    if (entered->exit_code != 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          "PostgreSQL runs as user ", server.name, " (it refuses root), who may not enter ", step.string(),
          ". Choose a data folder elsewhere, for example /var/lib/tallystick, run tallyd as an ordinary user, or open "
          "that folder with chmod a+x"));
    }
  }
  return absl::OkStatus();
}

absl::Status PrivateFolder(const fs::path& path, const Account& server) {
  if (mkdir(path.c_str(), 0700) == 0) {
    if (server.uid != geteuid() && lchown(path.c_str(), server.uid, server.gid) != 0) {
      absl::Status status =
          absl::ErrnoToStatus(errno, absl::StrCat("cannot give ", path.string(), " to ", server.name));
      rmdir(path.c_str());
      return status;
    }
    return absl::OkStatus();
  }
  if (errno != EEXIST) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path.string()));
  if (IsPrivateFolder(path, server)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path.string(), " must be a folder that belongs to ", server.name, " with mode 0700, and is not"));
}

bool IsPrivateFolder(const fs::path& path, const Account& server) {
  struct stat entry;
  return lstat(path.c_str(), &entry) == 0 && S_ISDIR(entry.st_mode) && entry.st_uid == server.uid &&
         (entry.st_mode & 0077) == 0;
}

size_t SocketFolderBytesMax() {
  const std::string socket = absl::StrCat("/.s.PGSQL.", kPort);
  return sizeof(sockaddr_un::sun_path) - 1 - socket.size();
}

absl::StatusOr<fs::path> SocketFolder(const Layout& layout, const Account& server) {
  // libpq takes a comma in a host for the end of one and the start of another.
  if (layout.sockets.string().size() <= SocketFolderBytesMax() && !absl::StrContains(layout.sockets.string(), ',')) {
    if (absl::Status status = PrivateFolder(layout.sockets, server); !status.ok()) return status;
    return layout.sockets;
  }
  std::string name = absl::StrCat(kShortFolderPrefix, "XXXXXX");
  if (mkdtemp(name.data()) == nullptr) return absl::ErrnoToStatus(errno, "cannot make a folder for the socket in /tmp");
  if (server.uid != geteuid() && lchown(name.c_str(), server.uid, server.gid) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot give ", name, " to ", server.name));
  }
  return fs::path(name);
}

void RemoveSocketFolder(const Layout& layout, const fs::path& folder) {
  if (folder == layout.sockets || !absl::StartsWith(folder.string(), kShortFolderPrefix)) return;
  rmdir(folder.c_str());  // fails where a server still has its socket there, which is right
}

}  // namespace tally::postgres
