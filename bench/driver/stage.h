#ifndef TALLY_BENCH_DRIVER_STAGE_H_
#define TALLY_BENCH_DRIVER_STAGE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/keys/secret.h"
#include "server/postgres/private.h"
#include "tests/support/postgres/postgres.h"

namespace tally::bench {

// What every run finds: a private PostgreSQL with tallyd's own settings (fsync on), and in it a database that has been
// migrated and holds a tenant, a gateway and its permits. Each run gets a copy, so that no table is larger for one
// system than for the other. All of it is gone with this process.
class Stage {
 public:
  // `permits` of as many subjects, and one more for hot work. Mints them one by one: 300 a second.
  static absl::StatusOr<std::unique_ptr<Stage>> Set(int permits);

  // A fresh copy, and a checkpoint, so that no run pays for the one before it. The connection string.
  absl::StatusOr<std::string> NewDatabase();
  // Nobody may be connected to it any more.
  absl::Status DropDatabase();

  // tallyd's data directory, made by hand in place of `tallyd init`: it lacks only the database.
  const std::string& data_dir() const { return data_dir_; }
  absl::Status WriteConfig(const std::vector<std::string>& settings) const;
  std::string socket() const { return data_dir_ + "/tallyd.sock"; }
  std::string log() const { return data_dir_ + "/log"; }

  const std::string& gateway_credential() const { return gateway_credential_; }
  const std::vector<std::string>& spread_tokens() const { return spread_tokens_; }
  const std::vector<std::string>& hot_tokens() const { return hot_tokens_; }

 private:
  Stage() = default;
  absl::Status Prepare(int permits);
  absl::Status Execute(const std::string& sql) const;

  test::ServerFolder folder_;
  std::unique_ptr<postgres::PrivatePostgres> postgres_;
  std::string data_dir_;
  std::string gateway_credential_;
  std::vector<std::string> spread_tokens_, hot_tokens_;
};

}  // namespace tally::bench

#endif  // TALLY_BENCH_DRIVER_STAGE_H_
