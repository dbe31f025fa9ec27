#ifndef TALLY_SERVER_TALLYD_DATABASE_H_
#define TALLY_SERVER_TALLYD_DATABASE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/ops/config.h"
#include "server/postgres/private.h"

namespace tally::tallyd {

// The database that the config names, or the private one under the data directory.
class Database {
 public:
  static absl::StatusOr<Database> Open(const ops::Config& config, const std::string& data_dir);

  // For libpq; may hold a password, so it is never logged.
  const std::string& conninfo() const { return conninfo_; }
  bool is_private() const { return private_ != nullptr; }

  // Starts a private server again that has died; does nothing for any other.
  absl::Status KeepRunning() { return private_ == nullptr ? absl::OkStatus() : private_->EnsureRunning(); }
  absl::Status Stop() { return private_ == nullptr ? absl::OkStatus() : private_->Stop(); }

 private:
  std::string conninfo_;
  std::unique_ptr<postgres::PrivatePostgres> private_;
};

}  // namespace tally::tallyd

#endif  // TALLY_SERVER_TALLYD_DATABASE_H_
