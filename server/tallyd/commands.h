#ifndef TALLY_SERVER_TALLYD_COMMANDS_H_
#define TALLY_SERVER_TALLYD_COMMANDS_H_

#include <string>

#include "absl/status/status.h"

// The commands of tallyd. An error is a sentence for a person: what is wrong, whether anything was done, what to do.
namespace tally::tallyd {

// Config, key-encryption key, schema, signing key and the first admin. Overwrites nothing; after a crash it goes on
// where it was. AlreadyExists: all of it stands already.
absl::Status Init(const std::string& data_dir);

// Until SIGTERM or SIGINT.
absl::Status Serve(const std::string& data_dir);

absl::Status Migrate(const std::string& data_dir);

}  // namespace tally::tallyd

#endif  // TALLY_SERVER_TALLYD_COMMANDS_H_
