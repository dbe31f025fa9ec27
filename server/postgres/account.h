// The operating system's user that runs PostgreSQL, and running programs as that user.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tally::postgres {

struct Account {
  std::string name;
  uid_t uid;
  gid_t gid;
  std::vector<gid_t> groups;
};

// The account this process runs as.
absl::StatusOr<Account> OwnAccount();

// PostgreSQL refuses to run as root: then it is the user `postgres` of Debian's package, otherwise our own account.
absl::StatusOr<Account> ServerAccount();

struct Finished {
  int exit_code;
  std::string output;  // standard output and standard error, at most 64 KiB
};

// Runs argv[0] (an absolute path) as `account` with a minimal environment and waits for it. After `time_limit` it is
// killed and an error returned. A program that fails is not an error here: look at exit_code.
absl::StatusOr<Finished> RunProgram(const Account& account, const std::vector<std::string>& argv,
                                    std::chrono::milliseconds time_limit);

// Starts argv[0] as `account`, in a session of its own so that neither a terminal's Ctrl-C nor our death reaches it,
// with both outputs appended to `log_fd`, and nothing else inherited. It is our child: it must be waited for.
absl::StatusOr<pid_t> Spawn(const Account& account, const std::vector<std::string>& argv, int log_fd);

}  // namespace tally::postgres
