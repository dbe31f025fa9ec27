#include "gateway/journal/journal_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using keys::Cat;

absl::Status Failed(std::string_view what, int error) {
  return absl::UnavailableError(Cat(what, ": ", std::strerror(error)));
}

// 0, or errno.
int WriteAt(int file, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(file, bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    if (put == 0) return EIO;
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += put;
  }
  return 0;
}

std::optional<std::string> ReadAt(int file, int64_t offset, int64_t size) {
  std::string bytes(static_cast<size_t>(size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = pread(file, bytes.data() + done, bytes.size() - done, offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<size_t>(got);
  }
  return bytes;
}

// A name in a folder is on disk only once the folder is. 0, or errno.
int SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int descriptor = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error;
}

// A file of ours alone: made with mode 0600, or found with no more than that.
absl::StatusOr<int> OpenPrivate(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return Failed(Cat("cannot open ", path), errno);
  struct stat about {};
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || (about.st_mode & 077) != 0) {
    close(file);
    return absl::FailedPreconditionError(
        Cat(path, " must be a file that only its owner can read and write: chmod 600 ", path));
  }
  return file;
}

// A file's bytes as long as this lives.
class Mapped {
 public:
  Mapped(int file, size_t size) : size_(size) {
    if (size > 0) at_ = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  }
  ~Mapped() {
    if (ok() && size_ > 0) munmap(at_, size_);
  }
  Mapped(const Mapped&) = delete;
  bool ok() const { return at_ != MAP_FAILED; }
  std::string_view bytes() const { return {static_cast<const char*>(at_), size_}; }

 private:
  void* at_ = nullptr;
  const size_t size_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<JournalFile>> JournalFile::Open(const std::string& path, Limits limits, Found* found) {
  // A file of its own is locked, since the journal's is replaced when it is compacted. It is never removed: whoever
  // opened it before would hold a lock on nothing.
  auto lock = OpenPrivate(path + ".lock");
  if (!lock.ok()) return lock.status();
  if (flock(*lock, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(*lock);
    if (error != EWOULDBLOCK) return Failed(Cat("cannot lock ", path, ".lock"), error);
    return absl::UnavailableError(
        Cat(path, " is in use by another gateway: each needs a journal of its own. Nothing was started"));
  }
  std::unique_ptr<JournalFile> journal(new JournalFile(path, limits, *lock));
  auto file = OpenPrivate(path);
  if (!file.ok()) return file.status();
  journal->file_ = *file;
  Found ignored;
  if (auto status = journal->Read(found == nullptr ? ignored : *found); !status.ok()) return status;
  return journal;
}

JournalFile::~JournalFile() {
  if (file_ >= 0) close(file_);
  close(lock_);
}

absl::Status JournalFile::Read(Found& found) {
  struct stat about {};
  if (fstat(file_, &about) != 0) return Failed(Cat("cannot read ", path_), errno);
  std::map<std::string, Record> open;
  Scan scan;
  {
    const Mapped mapped(file_, static_cast<size_t>(about.st_size));
    if (!mapped.ok()) return Failed(Cat("cannot read ", path_), errno);
    scan = ScanRecords(mapped.bytes(), [&](Record record, int64_t offset, int64_t size) {
      Index(record, {offset, size});
      const std::string attempt_id = record.commit.attempt_id();
      if (record.stage == Stage::kDelivered) {
        open.erase(attempt_id);
      } else {
        open.insert_or_assign(attempt_id, std::move(record));
      }
    });
  }
  if (scan.foreign) {
    return absl::FailedPreconditionError(Cat(path_, " is not a journal of this gateway; it was left as it is"));
  }
  found.torn = scan.torn;
  found.damaged = scan.damaged;
  for (auto& [attempt_id, record] : open) found.open.push_back(std::move(record));

  if (scan.damaged > 0) {
    // For whoever wants to know what was lost; the file itself is written anew.
    found.damaged_copy = path_ + ".damaged";
    unlink(found.damaged_copy.c_str());
    if (link(path_.c_str(), found.damaged_copy.c_str()) != 0)
      return Failed(Cat("cannot keep a copy of ", path_), errno);
  }
  // A crash here or before leaves the file as it was found.
  size_ = about.st_size;
  return Rewrite();
}

void JournalFile::Index(const Record& record, Place place) {
  const std::string& attempt_id = record.commit.attempt_id();
  if (const auto before = open_.find(attempt_id); before != open_.end()) {
    open_bytes_ -= before->second.size;
    open_.erase(before);
  }
  if (record.stage == Stage::kDelivered) return;
  open_.emplace(attempt_id, place);
  open_bytes_ += place.size;
}

absl::Status JournalFile::Broken(std::string_view what, int error) {
  broken_ = Failed(Cat("the journal ", path_, " takes nothing any more (", what,
                       "); nothing is sent until the gateway is started again"),
                   error);
  return broken_;
}

absl::Status JournalFile::Append(const std::vector<Record>& records, Durability durability) {
  if (!broken_.ok()) return broken_;
  std::string bytes;
  std::vector<Place> places;
  bool bounded = false;
  for (const Record& record : records) {
    if (record.commit.attempt_id().empty() || (record.stage != Stage::kDelivered && record.commit.call_id().empty())) {
      return absl::InvalidArgumentError("a record of the journal must name call and attempt");
    }
    const std::string one = Encode(record);
    if (one.size() > kPayloadBytesMax) return absl::InvalidArgumentError("the answer is too large for the journal");
    places.push_back({static_cast<int64_t>(bytes.size()), static_cast<int64_t>(one.size())});
    bytes += one;
    bounded |= record.stage == Stage::kSending;
  }
  // The limit refuses what has not been sent; what became of a call that was sent is always taken.
  if (bounded) {
    if (auto status = CheckRoom(static_cast<int64_t>(bytes.size())); !status.ok()) return status;
  }
  const int64_t begin = size_;
  if (auto status = Write(bytes, durability); !status.ok()) return status;
  for (size_t i = 0; i < records.size(); ++i) Index(records[i], {begin + places[i].offset, places[i].size});

  if (size_ > compact_at_ && open_bytes_ < size_ / 2) {
    // Best effort: where there is no room for a copy, the file stays as it is, and is looked at again when it has
    // doubled. Broken is what it made itself, when it could not know any more which file has the name.
    if (!Rewrite().ok()) compact_at_ = size_ * 2;
  }
  return absl::OkStatus();
}

absl::Status JournalFile::CheckRoom(int64_t bytes) {
  if (size_ + bytes <= limits_.bytes_max) return absl::OkStatus();
  // What is done with must not keep calls from being sent. A copy for less than a quarter of the file is not worth it.
  if (size_ - open_bytes_ >= size_ / 4) {
    if (auto status = Rewrite(); !status.ok()) return status;
    if (size_ + bytes <= limits_.bytes_max) return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      Cat("the journal ", path_, " has reached ", limits_.bytes_max, " bytes: tallyd has not taken what is in it"));
}

absl::Status JournalFile::Write(std::string_view bytes, Durability durability) {
  if (const int error = WriteAt(file_, bytes, size_); error != 0) {
    // Perhaps a part was written. It must go: it would be read as damage, or even as a record that nobody knows of.
    if (ftruncate(file_, size_) != 0) return Broken("it cannot be shortened", errno);
    return Failed(Cat("cannot write to the journal ", path_), error);
  }
  // A crash from here on may leave the records or not; nobody was told that they are there.
  if (durability == Durability::kSynced && fdatasync(file_) != 0) {
    // After this nobody knows what is on disk: Linux forgets the pages that it could not write.
    const int error = errno;
    if (ftruncate(file_, size_) != 0) return Broken("it cannot be shortened", errno);
    return Broken("it cannot be synced", error);
  }
  size_ += static_cast<int64_t>(bytes.size());
  return absl::OkStatus();
}

absl::Status JournalFile::Rewrite() {
  const std::string path = path_ + ".new";
  unlink(path.c_str());  // what a crash left of an earlier one
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return Failed(Cat("cannot make ", path), errno);
  const auto give_up = [&](std::string_view what, int error) {
    close(file);
    unlink(path.c_str());
    return Failed(Cat(what, " ", path), error);
  };
  int64_t size = static_cast<int64_t>(kMagic.size());
  if (const int error = WriteAt(file, kMagic, 0); error != 0) return give_up("cannot write", error);
  std::map<std::string, Place> open;
  for (const auto& [attempt_id, place] : open_) {
    const auto bytes = ReadAt(file_, place.offset, place.size);
    if (!bytes) return give_up("cannot copy the journal to", EIO);
    if (const int error = WriteAt(file, *bytes, size); error != 0) return give_up("cannot write", error);
    open.emplace(attempt_id, Place{size, place.size});
    size += place.size;
  }
  if (fsync(file) != 0) return give_up("cannot sync", errno);
  // A crash up to here leaves the old file, which has all.
  if (rename(path.c_str(), path_.c_str()) != 0) return give_up("cannot rename", errno);
  // A crash here leaves one or the other: both say the same. But nothing may be added to the new one before its name is
  // on disk; otherwise the old one could come back without it.
  close(file_);
  file_ = file;
  open_ = std::move(open);
  size_ = size;
  compact_at_ = std::max(limits_.compact_bytes_min, size_ * 2);
  if (const int error = SyncFolderOf(path_); error != 0) return Broken("its folder cannot be synced", error);
  return absl::OkStatus();
}

}  // namespace tally::gateway
