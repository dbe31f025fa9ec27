// What each tool looked like when it was first seen, or accepted: a small file that is replaced whole.
//
// {"format":"tally-pins/1","sha256":HEX,"upstreams":{UPSTREAM:{TOOL:{"since":TIME,"accepted":BOOL,"shape":{MEMBER:HEX}}}}}
//
// The digest is over "upstreams" as it stands there without white space, so that a file that is cut short, damaged or
// put together by hand is not taken for what the gateway wrote. A crash at any moment leaves the file before a change
// or the one after it.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>

#include "gateway/pins/shape.h"

namespace tally::gateway {

struct PinnedTool {
  ToolShape shape;
  std::string since;      // RFC 3339
  bool accepted = false;  // by a person, not by being the first that was seen
};

// By upstream, then by the tool's own name.
using PinTable = std::map<std::string, std::map<std::string, PinnedTool>>;

inline constexpr int64_t kPinFileBytesMax = 64 << 20;

class PinFile {
 public:
  explicit PinFile(std::string path) : path_(std::move(path)) {}

  // Empty where there is no file. DataLoss: it is not what a gateway wrote; what to do is in the message.
  absl::StatusOr<PinTable> Read() const;
  // Reads, changes, and, if `change` says that it did, replaces the file and syncs it: OK means that it is on disk. The
  // table as it then is. Others who change the file wait meanwhile, a few seconds at most.
  absl::StatusOr<PinTable> Change(absl::FunctionRef<bool(PinTable&)> change) const;
  // Changes whenever the file does; 0: there is none.
  uint64_t Version() const;
  const std::string& path() const { return path_; }

 private:
  absl::Status Write(const PinTable& table) const;

  const std::string path_;
};

}  // namespace tally::gateway
