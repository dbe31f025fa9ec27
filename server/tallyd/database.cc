#include "server/tallyd/database.h"

#include "server/ops/log.h"

namespace tally::tallyd {

absl::StatusOr<Database> Database::Open(const ops::Config& config, const std::string& data_dir) {
  Database database;
  if (!config.database_url.empty()) {
    database.conninfo_ = std::string(config.database_url.Expose());
    return database;
  }
  auto server = postgres::PrivatePostgres::Start(data_dir);
  if (!server.ok()) return server.status();
  ops::LogInfo("private_postgres", {{"pid", static_cast<int64_t>((*server)->postmaster_pid())},
                                    {"adopted", (*server)->adopted()},
                                    {"note",
                                     "no database_url is set: this PostgreSQL serves one machine and has no "
                                     "standby"}});
  database.private_ = *std::move(server);
  database.conninfo_ = database.private_->ConnectionString();
  return database;
}

}  // namespace tally::tallyd
