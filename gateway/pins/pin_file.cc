#include "gateway/pins/pin_file.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/escaping.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/keys/hash.h"
#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using Json = nlohmann::json;
using keys::Cat;

constexpr char kFormat[] = "tally-pins/1";
constexpr int kLockTries = 100;
constexpr std::chrono::milliseconds kLockPause{50};

absl::Status Failed(std::string_view what, const std::string& path, int error) {
  return absl::UnavailableError(Cat(what, " ", path, ": ", std::strerror(error)));
}

absl::Status Damaged(const std::string& path) {
  return absl::DataLossError(
      Cat(path,
          " is damaged or was changed by hand: what the tools looked like when they were first seen is not known. "
          "Put back a copy of it; or remove it, and the tools as they are now are taken for first seen."));
}

std::string DigestOf(const Json& upstreams) { return absl::BytesToHexString(keys::Sha256(upstreams.dump()).str()); }

Json JsonOf(const PinTable& table) {
  Json upstreams = Json::object();
  for (const auto& [upstream, tools] : table) {
    for (const auto& [tool, pin] : tools) {
      upstreams[upstream][tool] = {{"since", pin.since}, {"accepted", pin.accepted}, {"shape", pin.shape}};
    }
  }
  return upstreams;
}

absl::StatusOr<std::string> ReadWhole(int file, const std::string& path) {
  std::string text;
  char buffer[65536];
  while (true) {
    const ssize_t got = read(file, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("cannot read", path, errno);
    if (got == 0) return text;
    text.append(buffer, static_cast<size_t>(got));
    if (static_cast<int64_t>(text.size()) > kPinFileBytesMax) return Damaged(path);
  }
}

// 0, or errno.
int WriteWhole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(file, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 ? errno : EIO;
    text.remove_prefix(static_cast<size_t>(put));
  }
  return 0;
}

int SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error;
}

}  // namespace

absl::StatusOr<PinTable> PinFile::Read() const {
  const int file = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return PinTable();
  if (file < 0) return Failed("cannot open", path_, errno);
  const auto text = ReadWhole(file, path_);
  close(file);
  if (!text.ok()) return text.status();
  PinTable table;
  try {
    const Json json = Json::parse(*text);
    if (json.at("format") != kFormat || json.at("sha256") != DigestOf(json.at("upstreams"))) return Damaged(path_);
    for (const auto& [upstream, tools] : json.at("upstreams").items()) {
      for (const auto& [tool, pin] : tools.items()) {
        table[upstream][tool] = {pin.at("shape").get<ToolShape>(), pin.at("since").get<std::string>(),
                                 pin.at("accepted").get<bool>()};
      }
    }
  } catch (const Json::exception&) {
    return Damaged(path_);
  }
  return table;
}

absl::StatusOr<PinTable> PinFile::Change(absl::FunctionRef<bool(PinTable&)> change) const {
  // A file of its own is locked, since the other one is replaced.
  const std::string lock_path = path_ + ".lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return Failed("cannot open", lock_path, errno);
  const auto unlock = absl::MakeCleanup([lock] { close(lock); });
  for (int i = 0; flock(lock, LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Failed("cannot lock", lock_path, errno);
    if (i == kLockTries) return absl::UnavailableError(Cat(lock_path, " is held by another process for too long"));
    std::this_thread::sleep_for(kLockPause);
  }
  auto table = Read();
  if (!table.ok() || !change(*table)) return table;
  if (absl::Status written = Write(*table); !written.ok()) return written;
  return table;
}

absl::Status PinFile::Write(const PinTable& table) const {
  const Json upstreams = JsonOf(table);
  const std::string text =
      Json{{"format", kFormat}, {"sha256", DigestOf(upstreams)}, {"upstreams", upstreams}}.dump(1) + "\n";
  if (static_cast<int64_t>(text.size()) > kPinFileBytesMax) {
    return absl::ResourceExhaustedError(Cat(path_, " would grow over ", kPinFileBytesMax, " bytes"));
  }
  const std::string path = path_ + ".new";
  unlink(path.c_str());  // what a crash left of an earlier one
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return Failed("cannot make", path, errno);
  int error = WriteWhole(file, text);
  if (error == 0 && fsync(file) != 0) error = errno;
  close(file);
  // A crash up to here leaves the old file.
  if (error == 0 && rename(path.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(path.c_str());
    return Failed("cannot write", path, error);
  }
  // A crash here leaves the old one or the new one; nobody was told yet that it is the new one.
  if (error = SyncFolderOf(path_); error != 0) return Failed("cannot sync the folder of", path_, error);
  return absl::OkStatus();
}

uint64_t PinFile::Version() const {
  struct stat about {};
  if (stat(path_.c_str(), &about) != 0) return 0;
  // Each change makes a new file, so that its number alone nearly does it.
  uint64_t version = about.st_ino;
  for (const auto part : {static_cast<uint64_t>(about.st_mtim.tv_sec), static_cast<uint64_t>(about.st_mtim.tv_nsec),
                          static_cast<uint64_t>(about.st_size)}) {
    version = version * 1099511628211u + part;
  }
  return version == 0 ? 1 : version;
}

}  // namespace tally::gateway
